"""Memory that the process uses and may use, from Linux's /proc and control groups.

Only anonymous memory counts: pages of files (the program, and LMDB's map) are the system's cache, which it can reclaim.
On systems other than Linux the figure is not available cheaply, and the used memory is 0.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
CGROUPS: Final = Path("/sys/fs/cgroup")
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_STATM: Final = PROC / "self/statm"


def used_bytes() -> int:
    """Return the octets of anonymous memory of this process."""
    try:
        _, resident, of_files, *_ = _STATM.read_bytes().split()
    except OSError:
        return 0
    return (int(resident) - int(of_files)) * PAGE_BYTES


def total_bytes(proc: Path = PROC, cgroups: Path = CGROUPS) -> int:
    """Return the octets of memory of the machine, or of the control group if lower; 0 if unknown."""
    limits = [int(text) for path in _limit_files(proc, cgroups) if (text := _read(path).strip()).isdigit()]
    for line in _read(proc / "meminfo").splitlines():
        if line.startswith("MemTotal:"):
            limits.append(int(line.split()[1]) * 1024)
    return min(limits, default=0)


def _limit_files(proc: Path, cgroups: Path) -> Iterator[Path]:
    """Yield the limit files of this process's control groups. A container may see only part of their paths."""
    for line in _read(proc / "self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            root, name = cgroups, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = cgroups / "memory", "memory.limit_in_bytes"
        else:
            continue
        folder = Path(group.lstrip("/"))
        for part in (folder, *folder.parents):
            yield root / part / name


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError:
        return ""


def trim() -> None:
    """Return freed memory to the system, which glibc does by itself only at the end of its heap."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        if hasattr(libc, "malloc_trim"):
            libc.malloc_trim(0)
