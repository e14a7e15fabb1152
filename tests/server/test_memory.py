from __future__ import annotations

import sys
from pathlib import Path

import pytest

from amqp_broker.server import memory

MIB = 1024 * 1024


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Simulate a machine with 8 GiB, without control groups."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal:        8388608 kB\nMemFree:         1000 kB\n", "utf-8")
    return tmp_path


def in_group(machine: Path, line: str, **limits: str) -> int:
    """Return the total for a process in this group; `limits` has files by path, with `__` for `/`."""
    (machine / "proc/self/cgroup").write_text(f"3:cpu:/other\n{line}\n", "utf-8")
    for path, limit in limits.items():
        file = machine / "cgroup" / path.replace("__", "/").replace("_max", ".max").replace("_limit", ".limit")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{limit}\n", "utf-8")
    return memory.total_bytes(machine / "proc", machine / "cgroup")


def test_without_control_groups_the_machines_memory_counts(machine: Path) -> None:
    assert memory.total_bytes(machine / "proc", machine / "cgroup") == 8192 * MIB


def test_a_limit_of_the_control_group_counts(machine: Path) -> None:
    assert in_group(machine, "0::/a/b", a__b__memory_max=str(512 * MIB)) == 512 * MIB


def test_a_limit_of_a_parent_group_counts(machine: Path) -> None:
    assert in_group(machine, "0::/a/b", a__b__memory_max="max", a__memory_max=str(256 * MIB)) == 256 * MIB


def test_the_limit_of_a_container_is_at_its_root(machine: Path) -> None:
    assert in_group(machine, "0::/docker/123", memory_max=str(128 * MIB)) == 128 * MIB


def test_limits_of_version_1_groups_count(machine: Path) -> None:
    line, limits = "4:memory:/a", {"memory__a__memory_limit_in_bytes": str(64 * MIB)}
    assert in_group(machine, line, **limits) == 64 * MIB


def test_a_limit_above_the_machines_memory_is_ignored(machine: Path) -> None:
    assert in_group(machine, "0::/a", a__memory_max=str(1 << 62)) == 8192 * MIB


def test_without_information_the_total_is_0(tmp_path: Path) -> None:
    assert memory.total_bytes(tmp_path, tmp_path) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports it")
def test_memory_counts_as_used_until_it_is_freed() -> None:
    before = memory.used_bytes()
    taken = b"x" * (64 * MIB)
    assert memory.used_bytes() - before > 60 * MIB
    del taken
    memory.trim()
    assert memory.used_bytes() - before < 30 * MIB
