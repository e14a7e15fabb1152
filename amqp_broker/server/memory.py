"""How much memory the process has, and how much it may have: read from Linux's /proc and control groups.

What counts is anonymous memory: pages of files (the program, and what LMDB has mapped) are the system's cache, which
it takes back as it likes. Elsewhere than on Linux nothing tells this cheaply, so the process seems to have none.
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
    """Octets of anonymous memory that this process has."""
    try:
        _, resident, of_files, *_ = _STATM.read_bytes().split()
    except OSError:
        return 0
    return (int(resident) - int(of_files)) * PAGE_BYTES


def total_bytes(proc: Path = PROC, cgroups: Path = CGROUPS) -> int:
    """Octets that the machine has, or fewer if a control group limits this process; 0 if nothing tells."""
    limits = [int(text) for path in _limit_files(proc, cgroups) if (text := _read(path).strip()).isdigit()]
    for line in _read(proc / "meminfo").splitlines():
        if line.startswith("MemTotal:"):
            limits.append(int(line.split()[1]) * 1024)
    return min(limits, default=0)


def _limit_files(proc: Path, cgroups: Path) -> Iterator[Path]:
    """The files of all groups that this process is in, both versions; a container may not see all of their path."""
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
        return path.read_text()
    except OSError:
        return ""


def trim() -> None:
    """Give freed memory back to the system, which glibc does by itself only at the end of its heap."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        if hasattr(libc, "malloc_trim"):
            libc.malloc_trim(0)
