"""What a process uses, as Linux tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

MIB = 1024 * 1024

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="only Linux says what a process uses")


def open_files(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def memory_bytes(pid: int) -> int:
    """The memory of a process that is in use (VmRSS)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("a process without memory")
