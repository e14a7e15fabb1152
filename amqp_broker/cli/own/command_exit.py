"""The end of a command: an error becomes a sentence on stderr and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NoReturn

from amqp_broker.cli.shared.standard_streams import finish_output, leave_interrupted_line, not_text, output_lost
from amqp_broker.exit_codes import EX_CONFIG, EX_USAGE


def run_and_exit(command: Callable[[], object]) -> NoReturn:
    """Run a command and exit."""
    _open_standard_files()
    if word := not_text(sys.argv):
        fail(f"{word} is not text in UTF-8.", EX_USAGE)
    try:
        command()
    except KeyboardInterrupt:
        leave_interrupted_line()
        sys.exit(130)
    except BrokenPipeError:
        pass  # the reader of the output has gone
    except OSError as error:
        # Commands handle errors of the files that they use.
        if error.filename is not None:
            raise
        sys.exit(output_lost(error))
    except Exception as error:
        expected = _expected(error)
        if expected is None:
            raise
        fail(*expected)
    finally:
        lost = finish_output(0)
    sys.exit(lost)


def _expected(error: Exception) -> tuple[str, int] | None:
    """Return sentence and exit code of an expected error; None for a bug.

    The imports cost little: the code that raised the error has imported most of them.
    """
    from amqp_broker.cli.own.command_error import CommandError
    from amqp_broker.cli.own.definitions import exit_code_of_definitions
    from amqp_broker.cli.own.store import exit_code_of
    from amqp_broker.management.documents.definition import DefinitionsError
    from amqp_broker.server.tls import TlsError
    from amqp_broker.settings.settings import SettingsError
    from amqp_broker.store.environment import StoreError

    if isinstance(error, (CommandError, TlsError)):
        return str(error), error.exit_code
    if isinstance(error, SettingsError):
        return str(error), EX_CONFIG
    if isinstance(error, DefinitionsError):
        # RabbitMQ's messages have several lines.
        return " ".join(str(error).split()), exit_code_of_definitions(error)
    return (str(error), exit_code_of(error)) if isinstance(error, StoreError) else None


def _open_standard_files() -> None:
    """Open standard files that the parent has closed; libuv aborts if a socket gets their number."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)


def fail(sentence: str, code: int) -> NoReturn:
    """Exit with sentences, each on its own line. An indented line is a command, to be copied as it is."""
    for line in sentence.splitlines() if sys.stderr is not None else ():
        if line.startswith("  "):
            print(line, file=sys.stderr)
            continue
        end = "" if line.endswith((".", "?", ":")) else "."
        print(f"amqp-broker: {line}{end}", file=sys.stderr)
    sys.exit(code)
