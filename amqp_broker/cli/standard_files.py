"""Standard files that are closed or full, and words that are no text: what every command may be started with."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from amqp_broker.exit_codes import EX_IOERR


def finish_output(code: int) -> int:
    """Write what is still to be written; the exit code, which is EX_IOERR if that fails.

    Whoever read our output may have gone: then it is lost, and the interpreter must not complain while it ends.
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
    """Nothing more is written: what is still in the buffer would fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def output_lost(error: OSError) -> int:
    """Say that the output could not be written, and write nothing more; the exit code of that."""
    _give_up_output()
    print(f"amqp-broker: the output cannot be written: {error.strerror}.", file=sys.stderr)
    return EX_IOERR


def read_input() -> bytes:
    """All of the standard input; nothing if it is closed."""
    return b"" if sys.stdin is None else sys.stdin.buffer.read()


def not_text(words: Sequence[str]) -> str:
    """The first word that is not in the terminal's encoding, as it can be shown; "" if there is none."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            return ascii(word)
    return ""
