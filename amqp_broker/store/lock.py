"""Files that one process locks at a time. The system releases a lock when its process ends, in any way."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from pathlib import Path
from typing import Final

if sys.platform == "win32":
    import msvcrt

    # Behind the contents: locked octets cannot be read, and the process id must be readable.
    LOCKED_AT: Final = 1 << 30
    HELD: Final = (errno.EACCES, errno.EDEADLK)

    def _take(descriptor: int, is_shared: bool) -> None:
        os.lseek(descriptor, LOCKED_AT, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    HELD: Final = (errno.EWOULDBLOCK,)

    def _take(descriptor: int, is_shared: bool) -> None:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


class Held(Exception):
    """Another process has the lock; `holder` is its process id, as the file has it."""

    def __init__(self, holder: str = "") -> None:
        super().__init__(holder)
        self.holder = holder


class CannotLock(Exception):
    """The file system cannot lock files; the text is the system's reason."""


def acquire(path: Path) -> int:
    """Lock a file, creating it if necessary; return its descriptor, which holds the lock.

    Raise Held, CannotLock and OSError.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _take(descriptor, is_shared=False)
        except OSError as error:
            _check_held(error, descriptor)
            os.lseek(descriptor, 0, os.SEEK_SET)
            holder = os.read(descriptor, 32).decode(errors="replace").strip()
            os.close(descriptor)
            raise Held(holder) from None
        # The former holder may have removed the file meanwhile; others would lock a new one.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        os.close(descriptor)


def is_signed(descriptor: int) -> bool:
    """Return whether the last holder has ended without taking back its signature."""
    return os.fstat(descriptor).st_size > 0


def unsign(descriptor: int) -> None:
    """Take back the signature before the lock is released in an orderly way."""
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)


def sign(descriptor: int) -> None:
    """Write the process id into a locked file. On a full disk it stays empty, and locked."""
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, f"{os.getpid()}\n".encode())


def hold(path: Path, *, is_shared: bool) -> int:
    """Keep a file from being replaced while it is read, alone or with others; return its descriptor.

    Raise Held, CannotLock and OSError.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        # On Windows an open file cannot be replaced.
        if sys.platform != "win32":
            _take(descriptor, is_shared)
    except OSError as error:
        _check_held(error, descriptor)
        os.close(descriptor)
        raise Held from None
    return descriptor


def _check_held(error: OSError, descriptor: int) -> None:
    """Close a file that was not locked, and raise CannotLock, unless another process has the lock."""
    if error.errno not in HELD:
        os.close(descriptor)
        raise CannotLock(error.strerror or str(error)) from None
