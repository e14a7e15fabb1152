"""Resources that a process uses, from Linux's /proc."""

from __future__ import annotations

from pathlib import Path

import pytest

MIB = 1024 * 1024

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="only Linux reports the resources of a process"
)


def open_files(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def memory_bytes(pid: int, kind: str = "VmRSS") -> int:
    """Return the memory of a process in octets; with `RssAnon` without pages of mapped files."""
    for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
        if line.startswith(f"{kind}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("a process without memory")
