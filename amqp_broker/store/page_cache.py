"""The memory mapping of LMDB's file, and the release of pages that were read.

Pages that were read count as memory of the process until the system reclaims them, although they belong to the page
cache. A backlog that is only passed through would reach a container's limit. After a release they stay in the cache,
and reading them again costs a page fault (madvise(2), MADV_DONTNEED).
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Final

MADV_DONTNEED: Final = 4
# Octets that may stay mapped; the pages that a busy store reads repeatedly are fewer.
MAPPED_BYTES_MAX: Final = 32 * 1024 * 1024
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_MAPS: Final = Path("/proc/self/maps")
_STATM: Final = Path("/proc/self/statm")


class Mapping:
    """The mapping of a file in this process. On systems other than Linux nothing is released."""

    def __init__(self, path: Path) -> None:
        self._libc = ctypes.CDLL(None) if sys.platform == "linux" else None
        self._areas = areas_of(path, _MAPS.read_text("utf-8", "surrogateescape")) if self._libc else []

    def release(self) -> bool:
        """Release the pages that were read, if they are many; return whether they were."""
        if self._libc is None or mapped_bytes(_STATM.read_text("utf-8")) < MAPPED_BYTES_MAX:
            return False
        for start, size in self._areas:
            self._libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), MADV_DONTNEED)
        return bool(self._areas)


def areas_of(path: Path, maps: str) -> list[tuple[int, int]]:
    """Return address and size of each mapped area of a file, from the text of /proc/PID/maps."""
    areas = []
    for line in maps.splitlines():
        addresses, _, rest = line.partition(" ")
        if rest.endswith(f" {path.resolve()}"):
            start, end = (int(address, 16) for address in addresses.split("-"))
            areas.append((start, end - start))
    return areas


def mapped_bytes(statm: str) -> int:
    """Return the octets of files in a process's memory, from the text of /proc/PID/statm."""
    return int(statm.split()[2]) * PAGE_BYTES
