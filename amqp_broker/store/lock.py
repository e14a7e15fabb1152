"""Files that one process at a time has locked; the system lets go of a lock when its process ends, however it does."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Final

if sys.platform == "win32":
    import msvcrt

    # Where nothing is: what is locked cannot be read there, and the process id must be.
    LOCKED_AT: Final = 1 << 30

    def _take(descriptor: int, is_shared: bool) -> None:
        os.lseek(descriptor, LOCKED_AT, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _take(descriptor: int, is_shared: bool) -> None:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


class Held(Exception):
    """Another process has the lock; `holder` is the text in the file, its process id."""

    def __init__(self, holder: str = "") -> None:
        super().__init__(holder)
        self.holder = holder


def acquire(path: Path) -> int:
    """Lock a file, made if there is none; returns it open, and the lock goes with it. Raises Held and OSError."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _take(descriptor, is_shared=False)
        except OSError:
            os.lseek(descriptor, 0, os.SEEK_SET)
            holder = os.read(descriptor, 32).decode(errors="replace").strip()
            os.close(descriptor)
            raise Held(holder) from None
        # Who had it before may have removed it meanwhile, and others would lock a new one.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        os.close(descriptor)


def sign(descriptor: int) -> None:
    """Write the process id into a file that is locked. On a full disk it is locked all the same."""
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, f"{os.getpid()}\n".encode())


def hold(path: Path, *, is_shared: bool) -> int:
    """Keep a file that is read in its place, alone or with others who read it; returns it open.

    Raises Held and OSError.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        # Windows does not let anybody replace a file that is open.
        if sys.platform != "win32":
            _take(descriptor, is_shared)
    except OSError:
        os.close(descriptor)
        raise Held from None
    return descriptor
