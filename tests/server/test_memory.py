from __future__ import annotations

import sys
from pathlib import Path

import pytest

from amqp_broker.server import memory

MIB = 1024 * 1024


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine with 8 GiB, and no control groups yet."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal:        8388608 kB\nMemFree:         1000 kB\n")
    return tmp_path


def in_group(machine: Path, line: str, **limits: str) -> int:
    """The total for a process in this group; limits are those of files, by path with `__` for `/`."""
    (machine / "proc/self/cgroup").write_text(f"3:cpu:/other\n{line}\n")
    for path, limit in limits.items():
        file = machine / "cgroup" / path.replace("__", "/").replace("_max", ".max").replace("_limit", ".limit")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{limit}\n")
    return memory.total_bytes(machine / "proc", machine / "cgroup")


def test_without_control_groups_all_of_the_machines_memory_counts(machine: Path) -> None:
    assert memory.total_bytes(machine / "proc", machine / "cgroup") == 8192 * MIB


def test_a_limit_of_the_control_group_counts(machine: Path) -> None:
    assert in_group(machine, "0::/a/b", a__b__memory_max=str(512 * MIB)) == 512 * MIB


def test_a_limit_of_a_group_above_counts(machine: Path) -> None:
    assert in_group(machine, "0::/a/b", a__b__memory_max="max", a__memory_max=str(256 * MIB)) == 256 * MIB


def test_a_container_sees_its_limit_at_the_root(machine: Path) -> None:
    assert in_group(machine, "0::/docker/123", memory_max=str(128 * MIB)) == 128 * MIB


def test_groups_of_the_first_version_count(machine: Path) -> None:
    line, limits = "4:memory:/a", {"memory__a__memory_limit_in_bytes": str(64 * MIB)}
    assert in_group(machine, line, **limits) == 64 * MIB


def test_a_limit_beyond_the_machine_is_none(machine: Path) -> None:
    assert in_group(machine, "0::/a", a__memory_max=str(1 << 62)) == 8192 * MIB


def test_where_nothing_tells_there_is_nothing(tmp_path: Path) -> None:
    assert memory.total_bytes(tmp_path, tmp_path) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it")
def test_memory_that_the_process_takes_is_counted_until_it_is_given_back() -> None:
    before = memory.used_bytes()
    taken = b"x" * (64 * MIB)
    assert memory.used_bytes() - before > 60 * MIB
    del taken
    memory.trim()
    assert memory.used_bytes() - before < 30 * MIB
