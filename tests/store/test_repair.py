from __future__ import annotations

import json
from pathlib import Path

import lmdb
import pytest

from amqp_broker.broker.admin.access import Permission
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.durability.journal import END
from amqp_broker.settings.settings import Settings
from amqp_broker.store.environment import NUMBER, POSITION, Environment, StoreUnusable, Tables
from amqp_broker.store.journal import LmdbJournal, encode_key
from amqp_broker.store.repair import repair
from amqp_broker.store.store import Store
from amqp_broker.store.verify import verify
from tests.broker_parts import new_broker, new_message, new_queue
from tests.present import present
from tests.store.stores import commit, fill, put


def damage(folder: Path, table: str, key: bytes, bits: int = 3) -> bytes:
    """Change some bits of a record; return the octets that are there then."""
    environment = Environment(folder)
    with environment.lmdb.begin(write=True) as txn:
        octets = bytearray(present(txn.get(key, db=environment.tables[table])))
        for at in range(bits):
            octets[len(octets) // 2 + at] ^= 1
        txn.put(key, bytes(octets), db=environment.tables[table])
    environment.close()
    return bytes(octets)


def bodies(folder: Path, name: str) -> list[bytes]:
    """Return the bodies that a broker delivers from a queue."""
    store = Store(folder)
    broker = Broker(Settings(), bytes, store.journal)
    store.recover(broker)
    found, queue = [], broker.vhosts["/"].queues[name]
    while (pulled := queue.pull()) is not None:
        found.append(pulled[0].body)
    store.environment.close()
    return found


def test_a_whole_store_is_left_as_it_is(tmp_path: Path) -> None:
    fill(tmp_path)
    result = repair(tmp_path)
    assert (result.changes, result.copy) == ([], None)
    assert verify(tmp_path).problems == []


def test_a_damaged_message_is_not_delivered_and_the_log_names_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(tmp_path)
    whole = bodies(tmp_path, "plain")
    damage(tmp_path, "messages", POSITION.pack(1, 3))
    assert len(bodies(tmp_path, "plain")) == len(whole) - 1
    assert caplog.messages == ["queue 'plain' in vhost '/': the message at position 3 is damaged; it is not delivered"]


def test_a_repair_drops_a_damaged_message_and_keeps_a_copy(tmp_path: Path) -> None:
    fill(tmp_path)
    whole, key = bodies(tmp_path, "plain"), POSITION.pack(1, 3)
    octets = damage(tmp_path, "messages", key)
    (problem,) = verify(tmp_path).problems
    assert problem.startswith(
        "queue 'plain' in vhost '/' has 1 messages that cannot be read, at position 3: its checksum"
    )
    result = repair(tmp_path)
    assert result.changes == [
        "the message at position 3 of queue 'plain' in vhost '/' cannot be read and is dropped.",
        "queue 'plain' in vhost '/' has 19 of 20 messages.",
    ]
    copy = json.loads(present(result.copy).read_text("utf-8"))
    assert copy == {"table": "messages", "key": key.hex(), "record": octets.hex()}
    assert verify(tmp_path).problems == []
    # The one at position 3 had 90 octets.
    assert bodies(tmp_path, "plain") == [body for body in whole if len(body) != 90]


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ("definitions", encode_key(("queue", "/", "plain"))),
        ("windows", NUMBER.pack(1)),
        ("meta", b"next_range"),
    ],
)
def test_a_bit_that_changed_in_what_a_broker_needs_to_start_is_restored(tmp_path: Path, table: str, key: bytes) -> None:
    fill(tmp_path)
    whole = bodies(tmp_path, "plain")
    damage(tmp_path, table, key, bits=1)
    with pytest.raises(StoreUnusable, match=r"is damaged: the checksum of .* is wrong; run `store verify`"):
        Environment(tmp_path)
    assert verify(tmp_path).problems
    (change,) = repair(tmp_path).changes
    assert change.endswith("was damaged; the changed bit is restored.")
    assert verify(tmp_path).problems == []
    assert bodies(tmp_path, "plain") == whole


def test_a_state_that_is_lost_is_counted_again(tmp_path: Path) -> None:
    fill(tmp_path)
    whole = bodies(tmp_path, "plain")
    damage(tmp_path, "windows", NUMBER.pack(1))
    repair(tmp_path)
    assert verify(tmp_path).problems == []
    assert bodies(tmp_path, "plain") == whole


def test_a_queue_whose_definition_is_lost_goes_with_its_bindings_and_messages_into_the_copy(tmp_path: Path) -> None:
    fill(tmp_path)
    damage(tmp_path, "definitions", encode_key(("queue", "/", "plain")))
    result = repair(tmp_path)
    assert result.changes == [
        "a definition (queue) cannot be read and is dropped.",
        "binding 'key' of exchange 'events' to queue 'plain' in vhost '/' is dropped: what it belongs to is lost.",
        "the messages of range 1, which belongs to nothing, are dropped.",
    ]
    rows = [json.loads(line)["table"] for line in present(result.copy).read_text("utf-8").splitlines()]
    assert (rows[:2], rows.count("messages")) == (["definitions", "definitions"], 20)
    assert verify(tmp_path).problems == []


def test_a_store_of_format_1_gets_checksums(tmp_path: Path) -> None:
    fill(tmp_path)
    whole = bodies(tmp_path, "plain")
    environment = Environment(tmp_path)
    with environment.lmdb.begin(write=True) as txn:
        _strip_checksums(txn, environment.tables)
    environment.close()
    Environment(tmp_path).close()
    assert verify(tmp_path).problems == []
    assert bodies(tmp_path, "plain") == whole


def _strip_checksums(txn: lmdb.Transaction, tables: Tables) -> None:
    for table in tables.values():
        with txn.cursor(table) as cursor:
            rows = [(key, value) for key, value in cursor]
        for key, value in rows:
            txn.put(key, NUMBER.pack(1) if key == b"format" else value[:-8], db=table)


def test_new_messages_get_no_position_that_is_still_to_be_deleted(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    journal = LmdbJournal(environment)
    queue = new_queue(new_broker(journal).vhosts["/"], "purged", is_durable=True)
    queue.push(new_message(b"m", delivery_mode=2))
    commit(environment, journal)
    (range_id,) = queue.ranges
    with environment.lmdb.begin(write=True) as txn:
        tables = environment.tables
        # The state of the queue is lost, and so is the number behind the range of a deleted one.
        put(txn, POSITION.pack(range_id, 0), NUMBER.pack(50), tables["garbage"])
        put(txn, POSITION.pack(range_id + 1, 0), NUMBER.pack(END), tables["garbage"])
        txn.delete(NUMBER.pack(range_id), db=tables["windows"])
        txn.delete(b"next_range", db=tables["meta"])
    environment.close()
    repair(tmp_path)
    assert verify(tmp_path).problems == []
    store = Store(tmp_path)
    assert store.journal.state_of(range_id).next == 50
    assert store.journal.new_ranges(1) == range_id + 2
    store.environment.close()


def test_permissions_in_a_lost_vhost_keep_it(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    journal = LmdbJournal(environment)
    broker = new_broker(journal)
    broker.add_vhost("v")
    broker.users["guest"].permissions["v"] = Permission()
    journal.define(("vhost", "v"), {"limits": {}})
    journal.define(("user", "guest"), {"password_hash": b"", "tags": [], "limits": {}})
    journal.define(("permission", "guest", "v"), {"configure": "", "write": "", "read": ""})
    commit(environment, journal)
    environment.close()
    damage(tmp_path, "definitions", encode_key(("vhost", "v")))
    repair(tmp_path)
    assert verify(tmp_path).problems == []


def test_a_stream_without_its_state_gets_the_offsets_of_a_lost_chunk(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    journal = LmdbJournal(environment)
    stream = new_queue(new_broker(journal).vhosts["/"], "log", is_durable=True, arguments={"x-queue-type": "stream"})
    for _ in range(3):
        stream.push(new_message(b"m", delivery_mode=2))
        commit(environment, journal)
    with environment.lmdb.begin(write=True) as txn:
        (range_id,) = stream.ranges
        txn.delete(NUMBER.pack(range_id), db=environment.tables["windows"])
        txn.delete(POSITION.pack(range_id, 1), db=environment.tables["chunks"])
    environment.close()
    result = repair(tmp_path)
    assert "queue 'log' in vhost '/' has lost the offsets 1 to 1." in result.changes
    assert verify(tmp_path).problems == []
