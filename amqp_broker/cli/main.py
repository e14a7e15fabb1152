"""`amqp-broker`: the program and its exit codes (sysexits.h)."""

from __future__ import annotations

import os
import sys
from typing import Final

import click

from amqp_broker.cli.check_config import check_config
from amqp_broker.cli.definitions import definitions, exit_code_of_definitions
from amqp_broker.cli.serve import CommandError, serve
from amqp_broker.cli.store import exit_code_of, store
from amqp_broker.cli.tls import tls
from amqp_broker.config import ConfigError
from amqp_broker.management.importing import DefinitionsError
from amqp_broker.server.tls import TlsError
from amqp_broker.store.environment import StoreError

EX_USAGE: Final = 64
EX_CONFIG: Final = 78


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="amqp-minibroker", prog_name="amqp-broker")
def cli() -> None:
    """An AMQP 0-9-1 broker that RabbitMQ's clients cannot tell from RabbitMQ."""


cli.add_command(serve)
cli.add_command(check_config)
cli.add_command(store)
cli.add_command(definitions)
cli.add_command(tls)


def main() -> None:
    """Run the program; whatever goes wrong is one sentence on stderr and an exit code."""
    _open_standard_files()
    try:
        cli.main(prog_name="amqp-broker", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(EX_USAGE)
    except click.UsageError as error:
        _fail(error.format_message(), EX_USAGE)
    except click.Abort:
        sys.exit(130)
    except ConfigError as error:
        _fail(str(error), EX_CONFIG)
    except (CommandError, TlsError) as error:
        _fail(str(error), error.exit_code)
    except DefinitionsError as error:
        _fail(" ".join(str(error).split()), exit_code_of_definitions(error))
    except StoreError as error:
        _fail(str(error), exit_code_of(error))
    except BrokenPipeError:
        pass  # whoever read our output has gone
    finally:
        _give_up_output()


def _give_up_output() -> None:
    """What cannot be written is lost; the interpreter would complain about it while it ends, and exit with 120."""
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_standard_files() -> None:
    """Whoever started us may have closed some of them, and libuv aborts if a socket takes their number."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)


def _fail(sentence: str, code: int) -> None:
    for line in sentence.splitlines():
        end = "" if line.endswith((".", "?")) else "."
        click.echo(f"amqp-broker: {line}{end}", err=True)
    sys.exit(code)
