from __future__ import annotations

import re
from pathlib import Path

import lmdb
import pytest

from amqp_broker.broker.durability.journal import JournalBroken
from amqp_broker.store import pages
from amqp_broker.store.environment import DATA_FILE, LOCK_FILE, TABLES, Environment, StoreDamaged, StoreUnusable
from amqp_broker.store.journal import LmdbJournal, encode_key
from amqp_broker.store.repair import repair
from amqp_broker.store.verify import verify
from tests.present import present
from tests.store.page_damage import fill
from tests.store.stores import PAGE_BYTES
from tests.store.test_repair import bodies


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    fill(folder, messages=40)
    return folder


def zero(folder: Path, table: str) -> bytes:
    """Fill the root of a table with zeros; return the octets of the damaged file."""
    root = pages.survey(folder / DATA_FILE, TABLES, ()).tables[table].root
    octets = bytearray((folder / DATA_FILE).read_bytes())
    octets[root * PAGE_BYTES : (root + 1) * PAGE_BYTES] = bytes(PAGE_BYTES)
    (folder / DATA_FILE).write_bytes(octets)
    return bytes(octets)


def test_a_repair_saves_all_messages_below_a_damaged_page_and_keeps_the_file(store: Path) -> None:
    whole = bodies(store, "quorum")
    octets = zero(store, "messages")
    with pytest.raises(StoreDamaged, match="run `store repair`"):
        verify(store)
    result = repair(store)
    assert re.fullmatch(r"\d+ of \d+ pages are damaged: [\d, ]+\.", result.changes[0])
    assert present(result.replaced).read_bytes() == octets
    assert verify(store).problems == []
    assert len(whole) == 40
    assert bodies(store, "quorum") == whole


def test_a_repair_says_which_messages_of_a_stream_are_lost(store: Path) -> None:
    zero(store, "chunks")
    assert "queue 'stream' in vhost '/' has lost the offsets 0 to 39." in repair(store).changes
    assert verify(store).problems == []


def test_counts_that_are_lost_are_counted_again(store: Path) -> None:
    whole = bodies(store, "quorum")
    zero(store, "windows")
    assert "queue 'classic' in vhost '/' has 40 messages." in repair(store).changes
    assert bodies(store, "quorum") == whole


def test_a_vhost_whose_definition_is_lost_is_declared_again(store: Path) -> None:
    whole = bodies(store, "quorum")
    environment = Environment(store)
    with environment.lmdb.begin(write=True) as txn:
        assert txn.delete(encode_key(("vhost", "/")), db=environment.tables["definitions"])
    environment.close()
    assert repair(store).changes == ["vhost '/' is lost, and declared again."]
    assert bodies(store, "quorum") == whole


def test_the_database_of_another_program_is_left_as_it_is(tmp_path: Path) -> None:
    data = tmp_path / DATA_FILE
    other = lmdb.open(str(data), subdir=False, lock=False)
    with other.begin(write=True) as txn:
        txn.put(b"theirs", b"1")
    other.close()
    octets = data.read_bytes()
    with pytest.raises(StoreUnusable):
        repair(tmp_path)
    assert data.read_bytes() == octets
    assert not list(tmp_path.glob("damaged-*"))


def test_a_broker_checks_the_pages_of_messages_after_a_crash(store: Path) -> None:
    zero(store, "messages")
    Environment(store).close()
    (store / LOCK_FILE).write_text("1\n", "utf-8")
    with pytest.raises(StoreDamaged):
        Environment(store)


def test_a_damaged_page_is_reported_when_it_is_read(store: Path) -> None:
    environment, reasons = Environment(store), list[str]()
    journal = LmdbJournal(environment)
    journal.on_broken = reasons.append
    zero(store, "messages")
    with pytest.raises(JournalBroken, match="MDB_CORRUPTED"):
        journal.read(1, 0, 1000)
    assert len(reasons) == 1
    environment.close()
