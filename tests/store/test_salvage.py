from __future__ import annotations

import sys
from pathlib import Path

import pytest

from amqp_broker.store import pages
from amqp_broker.store.environment import DATA_FILE, TABLES
from amqp_broker.store.salvage import salvage
from tests.store.page_damage import fill
from tests.store.stores import PAGE_BYTES, outcomes_of

Records = set[tuple[str, bytes, bytes]]
# Places on a meta page: after 16 octets, and after 24 and two trees.
MAP_BYTES_AT = pages.PAGE_HEAD.size + 16
LAST_PAGE_AT = pages.PAGE_HEAD.size + 24 + 2 * pages.TREE.size


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("salvage") / "store"
    fill(folder, messages=40)
    return folder / DATA_FILE


def records_of(path: Path) -> tuple[Records, set[int]]:
    """Return what is salvaged of a file: its records and the numbers of its damaged pages."""
    found: Records = set()
    result = salvage(path, TABLES, lambda *record: found.add(record))
    return found, result.damaged


def changed(store: Path, number: int, at: int, octets: bytes) -> Path:
    """Return a copy of a store with other octets on a page."""
    content, start = bytearray(store.read_bytes()), number * PAGE_BYTES + at
    content[start : start + len(octets)] = octets
    copy = store.parent / "copy"
    copy.write_bytes(content)
    return copy


def root_of_messages(store: Path) -> int:
    return pages.survey(store, TABLES, ()).tables["messages"].root


def leaf_of_messages(store: Path) -> int:
    """Return the second page below the root of the messages."""
    page = store.read_bytes()[root_of_messages(store) * PAGE_BYTES :][:PAGE_BYTES]
    at = int.from_bytes(page[pages.PAGE_HEAD.size + 2 :][:2], sys.byteorder)
    return int(pages.NODE_HEAD.unpack_from(page, at)[0])


def test_all_records_of_a_whole_store_are_found(store: Path) -> None:
    found, damaged = records_of(store)
    expected = {name: tree.entries for name, tree in pages.survey(store, TABLES, ()).tables.items()}
    # The number of the format is no record.
    expected["meta"] -= 1
    assert {name: sum(table == name for table, _, _ in found) for name in TABLES} == expected
    assert not damaged


@pytest.mark.parametrize("at", range(0, pages.PAGE_HEAD.size, 2))
def test_a_leaf_with_a_damaged_head_loses_no_record(store: Path, at: int) -> None:
    number = leaf_of_messages(store)
    octet = store.read_bytes()[number * PAGE_BYTES + at]
    found, damaged = records_of(changed(store, number, at, bytes([octet ^ 4])))
    # Octets 8 and 9 are not used; one of the numbers that are left shows the right one.
    assert damaged <= {number}
    assert found == records_of(store)[0]


def test_records_below_a_branch_of_zeros_are_found(store: Path) -> None:
    number = root_of_messages(store)
    found, damaged = records_of(changed(store, number, 0, bytes(PAGE_BYTES)))
    assert damaged == {number}
    assert found == records_of(store)[0]


def test_a_page_of_zeros_loses_its_own_records_only(store: Path) -> None:
    number = leaf_of_messages(store)
    found, damaged = records_of(changed(store, number, 0, bytes(PAGE_BYTES)))
    assert damaged == {number}
    lost = records_of(store)[0] - found
    assert {table for table, _, _ in lost} == {"messages"}
    assert 0 < len(lost) < 60


def test_a_file_without_a_meta_page_is_beyond_repair(store: Path) -> None:
    copy = changed(store, 0, 0, bytes(2 * PAGE_BYTES))
    with pytest.raises(pages.DamagedFile, match="both of its meta pages"):
        records_of(copy)


def test_a_last_page_far_behind_the_end_of_the_file_is_not_looked_for(store: Path) -> None:
    found, _ = records_of(store)
    root = root_of_messages(store)
    content = bytearray(changed(store, root, 0, bytes(PAGE_BYTES)).read_bytes())
    map_bytes = int.from_bytes(content[MAP_BYTES_AT : MAP_BYTES_AT + 8], sys.byteorder)
    far = (map_bytes // PAGE_BYTES - 1).to_bytes(8, sys.byteorder)
    for number in (0, 1):
        at = number * PAGE_BYTES + LAST_PAGE_AT
        content[at : at + 8] = far
    copy = store.parent / "copy"
    copy.write_bytes(content)
    assert records_of(copy) == (found, {root})


@pytest.mark.verify
@pytest.mark.parametrize("seed", range(1, 4))
def test_whatever_page_is_damaged_nothing_false_is_delivered_and_the_rest_is_saved(tmp_path: Path, seed: int) -> None:
    """`python -m tests.store.page_damage` tries other damages."""
    outcomes_of("tests.store.page_damage", tmp_path, seed=seed, count=100)
