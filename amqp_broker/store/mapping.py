"""Where LMDB's file is mapped into memory, and how to let go of what was read of it.

Pages that were read count as the process's memory until the system wants them back, though they are the page cache's:
a container's limit would be met by a backlog that is only passed through. Letting go keeps them in the cache, and
reading them again costs a page fault (madvise(2), MADV_DONTNEED: a shared mapping of a file is repopulated from it).
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Final

MADV_DONTNEED: Final = 4
# As much as may stay mapped: what a busy store reads again and again is less.
MAPPED_BYTES_MAX: Final = 32 * 1024 * 1024
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_MAPS: Final = Path("/proc/self/maps")
_STATM: Final = Path("/proc/self/statm")


class Mapping:
    """The mapping of a file in this process. Where the system has no such thing, nothing is let go of."""

    def __init__(self, path: Path) -> None:
        self._libc = ctypes.CDLL(None) if sys.platform == "linux" else None
        self._areas = areas_of(path, _MAPS.read_text()) if self._libc else []

    def release(self) -> bool:
        """Let go of what was read, if that is much; returns whether it was."""
        if self._libc is None or mapped_bytes(_STATM.read_text()) < MAPPED_BYTES_MAX:
            return False
        for start, size in self._areas:
            self._libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), MADV_DONTNEED)
        return bool(self._areas)


def areas_of(path: Path, maps: str) -> list[tuple[int, int]]:
    """Address and size of what is mapped of a file, as /proc/PID/maps tells it."""
    areas = []
    for line in maps.splitlines():
        addresses, _, rest = line.partition(" ")
        if rest.endswith(f" {path.resolve()}"):
            start, end = (int(address, 16) for address in addresses.split("-"))
            areas.append((start, end - start))
    return areas


def mapped_bytes(statm: str) -> int:
    """Octets of files that a process has in its memory, as /proc/PID/statm tells them."""
    return int(statm.split()[2]) * PAGE_BYTES
