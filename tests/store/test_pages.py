from __future__ import annotations

import random
import struct
import subprocess
import sys
from pathlib import Path

import lmdb
import pytest

from amqp_broker.store import copies, pages
from amqp_broker.store.environment import DATA_FILE, LARGE_TABLES, TABLES
from tests.store.stores import PAGE_BYTES, fill


def leak(environment: lmdb.Environment, survey: pages.Survey) -> int:
    """Return the number of pages that are neither free nor in use."""
    in_tables = sum(tree.branch_pages + tree.leaf_pages + tree.overflow_pages for tree in survey.tables.values())
    with environment.begin() as txn:
        main = txn.stat()
    in_main = main["branch_pages"] + main["leaf_pages"] + main["overflow_pages"]
    return survey.page_count - 2 - survey.free_pages - in_tables - in_main


def test_a_file_as_lmdb_writes_it_is_whole_whatever_is_put_and_deleted(tmp_path: Path) -> None:
    chance, keys = random.Random(1), []
    environment = lmdb.open(str(tmp_path), map_size=1 << 30, max_dbs=2)
    table = environment.open_db(b"messages")
    for _ in range(60):
        with environment.begin(write=True) as txn:
            for _ in range(100):
                key = chance.randbytes(16)
                keys.append(key)
                txn.put(key, chance.randbytes(chance.choice([3, 100, 1000, 2000, 2100, 5000, 70_000])), db=table)
            for _ in range(80):
                txn.delete(keys.pop(chance.randrange(len(keys))), db=table)
        survey = pages.survey(tmp_path / DATA_FILE, TABLES, ())
        assert survey.tables["messages"].entries == len(keys)
        # Of the pages that are left, some have the tree of free pages on them.
        assert 0 <= leak(environment, survey) < 20
    assert survey.free_pages > 0
    assert survey.tables["messages"].depth > 1
    environment.close()


def test_large_tables_are_passed_over_if_wanted(tmp_path: Path) -> None:
    fill(tmp_path, messages=200)
    told: list[int] = []
    quick = pages.survey(tmp_path / DATA_FILE, TABLES, LARGE_TABLES, told.append)
    few = len(told)
    whole = pages.survey(tmp_path / DATA_FILE, TABLES, (), told.append)
    assert quick == whole
    assert set(told) == {whole.page_count}
    assert 0 < few < (len(told) - few) / 3


def test_a_page_that_is_free_and_in_use_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, messages=200)
    path, free = tmp_path / DATA_FILE, list[bytes]()
    monkeypatch.setattr(pages._Walk, "_check_free", lambda self, values, is_complete: free.extend(values))
    root = pages.survey(path, TABLES, ()).tables["messages"].root
    monkeypatch.undo()
    freed = next(value for value in free if value[0])
    path.write_bytes(path.read_bytes().replace(freed, struct.pack("=QQ", 1, root) + freed[16:]))
    with pytest.raises(pages.DamagedFile, match=f"page {root} is free and in use"):
        pages.survey(path, TABLES, ())


def test_every_page_that_is_cut_off_is_missed(tmp_path: Path) -> None:
    fill(tmp_path)
    copies.compact(tmp_path)
    octets = (tmp_path / DATA_FILE).read_bytes()
    for count in range(len(octets) // PAGE_BYTES):
        (tmp_path / "cut").write_bytes(octets[: count * PAGE_BYTES])
        with pytest.raises((pages.DamagedFile, pages.ForeignFile)):
            pages.survey(tmp_path / "cut", TABLES, LARGE_TABLES)


@pytest.mark.parametrize(
    ("offset", "octets", "reason"),
    [
        (16, b"\0", "a meta page is not one of LMDB 0.9"),
        (20, b"\2", "a meta page is not one of LMDB 0.9"),
        (PAGE_BYTES + 16, b"\0", "a meta page is not one of LMDB 0.9"),
        (40, b"\1", "a meta page has an impossible page size"),
        (44, b"\0", "a meta page is not one that LMDB writes"),
        (16 + 24 + 96 + 7, b"\1", "a meta page is not one that LMDB writes"),
        (16 + 24 + 96 + 8, b"\xff\xff", "its two meta pages contradict each other"),
    ],
)
def test_a_meta_page_that_lmdb_did_not_write_is_found(tmp_path: Path, offset: int, octets: bytes, reason: str) -> None:
    fill(tmp_path)
    content = bytearray((tmp_path / DATA_FILE).read_bytes())
    content[offset : offset + len(octets)] = octets
    (tmp_path / DATA_FILE).write_bytes(content)
    with pytest.raises((pages.DamagedFile, pages.ForeignFile), match=reason):
        pages.survey(tmp_path / DATA_FILE, TABLES, ())


@pytest.mark.parametrize("is_compact", [False, True])
def test_no_damage_ends_the_process(tmp_path: Path, is_compact: bool) -> None:
    """`python -m tests.store.corruption` tries more damages."""
    fill(tmp_path)
    if is_compact:
        copies.compact(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.corruption", str(tmp_path), "7", "300"],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, (done.stderr, (tmp_path / "case").read_text("utf-8"))
    assert "refused by verify" in done.stdout
