"""Standard streams that are closed or full, and arguments that are not text."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from amqp_broker.exit_codes import EX_IOERR


def finish_output(code: int) -> int:
    """Flush the output, and return the exit code: `code`, or EX_IOERR if that fails.

    If the reader of the output has gone, it is dropped, and the interpreter must not report that at exit.
    """
    if sys.stdout is None:
        return code
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _give_up_output()
    except OSError as error:
        return output_lost(error)
    return code


def _give_up_output() -> None:
    """Drop all further output; the rest of the buffer would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def output_lost(error: OSError) -> int:
    """Report that the output cannot be written, drop the rest, and return the exit code."""
    _give_up_output()
    print(f"amqp-broker: the output cannot be written: {error.strerror}.", file=sys.stderr)
    return EX_IOERR


def leave_interrupted_line() -> None:
    """Begin a new line after Ctrl-C: a terminal shows `^C`, and what follows would stand behind it."""
    if sys.stderr is not None and sys.stderr.isatty():
        print(file=sys.stderr)


def read_input() -> bytes:
    """Return all of standard input; nothing if it is closed."""
    return b"" if sys.stdin is None else sys.stdin.buffer.read()


def not_text(words: Sequence[str]) -> str:
    """Return the first word that is not in the terminal's encoding, in ASCII; "" if there is none."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            return ascii(word)
    return ""
