"""Pages of the store's file that were read do not stay in the memory of the process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from amqp_broker.store.environment import DATA_FILE, Environment
from amqp_broker.store.page_cache import MAPPED_BYTES_MAX, Mapping, areas_of, mapped_bytes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there it is done")

MAPS = """\
7f0000000000-7f0000002000 r--s 00000000 fe:00 42                         /data/data.mdb
7f0000004000-7f0000005000 r--p 00000000 fe:00 43                         /data/data.mdb.bak
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
"""


def now_mapped() -> int:
    return mapped_bytes(Path("/proc/self/statm").read_text("utf-8"))


def test_the_areas_of_a_file_are_found() -> None:
    assert areas_of(Path("/data/data.mdb"), MAPS) == [(0x7F0000000000, 0x2000)]
    assert areas_of(Path("/data/other"), MAPS) == []


def test_released_pages_can_be_read_again(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    value, table = b"x" * 1_000_000, environment.tables["messages"]
    with environment.lmdb.begin(write=True) as txn:
        for number in range(64):
            txn.put(b"%d" % number, value, db=table)
    mapping = Mapping(tmp_path / DATA_FILE)
    mapping.release()
    before = now_mapped()

    def read() -> None:
        with environment.lmdb.begin() as txn:
            assert all(txn.get(b"%d" % number, db=table) == value for number in range(64))

    read()
    assert now_mapped() - before > 60_000_000
    assert mapping.release()
    assert now_mapped() - before < MAPPED_BYTES_MAX
    read()
    environment.close()


def test_a_little_that_was_read_may_stay(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    mapping = Mapping(tmp_path / DATA_FILE)
    mapping.release()
    if now_mapped() < MAPPED_BYTES_MAX:
        assert not mapping.release()
    environment.close()
