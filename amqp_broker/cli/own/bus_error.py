"""The end of a process that reads a page of its store which the disk does not give.

LMDB reads through a memory mapping: where the system cannot read a page, or the file was cut, it sends SIGBUS, and the
read can neither go on nor return an error.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from amqp_broker.exit_codes import EX_IOERR

_kept: list[Callable[[int], None]] = []


def explain(data: Path) -> None:
    """End this process with a sentence and EX_IOERR at a page of the file that cannot be read."""
    if sys.platform == "win32":
        return
    text = (
        f"amqp-broker: '{data}' cannot be read: the disk gives no answer for a page, or the file was cut; "
        "what was confirmed is as the disk has it. Check the disk, then run `store verify`, or restore a backup.\n"
    ).encode(errors="replace")

    def end(number: int) -> None:
        os.write(2, text)
        os._exit(EX_IOERR)

    # A handler of Python's own would run after the read, which never ends.
    handler = HANDLER(end)
    _kept.append(handler)
    ctypes.CDLL(None).signal(int(signal.SIGBUS), handler)


HANDLER: Final = ctypes.CFUNCTYPE(None, ctypes.c_int)
