from __future__ import annotations

from datetime import UTC, datetime

from amqp_broker.management.metrics import exposition
from tests.management.asking import Desk
from tests.management.metrics.test_exposition import body, request, samples, value
from tests.memory_journal import MemoryJournal


def test_octets_of_messages_are_counted() -> None:
    desk = Desk()
    peer = desk.lab.connect()
    peer.declare("q", durable=True)
    peer.publish("q", b"1234", delivery_mode=2, timestamp=datetime.fromtimestamp(1_700_000_000, UTC))
    peer.publish("q", b"12", delivery_mode=1)
    peer.publish("q", b"1", delivery_mode=1)
    assert peer.get("q", no_ack=False)
    text = body(exposition.get_per_object(request(desk)))
    found = {
        name: value(text, f"rabbitmq_queue_messages_{name}", vhost="/", queue="q")
        for name in ("bytes", "ready_bytes", "unacked_bytes", "persistent", "persistent_bytes", "ram", "ready_ram")
    }
    assert found == {
        "bytes": 7,
        "ready_bytes": 3,
        "unacked_bytes": 4,
        "persistent": 1,
        "persistent_bytes": 4,
        "ram": 3,
        "ready_ram": 2,
    }


def test_the_timestamp_of_the_first_message_is_a_number_only_if_it_has_one() -> None:
    desk = Desk()
    peer = desk.lab.connect()
    peer.declare("q")
    text = body(exposition.get_per_object(request(desk)))
    assert b'rabbitmq_queue_head_message_timestamp{vhost="/",queue="q"} NaN\n' in text
    # Prometheus could not add it to others.
    assert b"rabbitmq_queue_head_message_timestamp NaN" not in body(exposition.get_summed(request(desk)))
    peer.publish("q", b"m", timestamp=datetime.fromtimestamp(1_700_000_000, UTC))
    text = body(exposition.get_per_object(request(desk)))
    assert value(text, "rabbitmq_queue_head_message_timestamp", vhost="/", queue="q") == 1_700_000_000


def test_messages_on_disk_are_counted_for_classic_queues_alone() -> None:
    desk = Desk()
    journal = desk.broker.journal = MemoryJournal()
    peer = desk.lab.connect()
    for kind in ("classic", "quorum", "stream"):
        peer.declare(kind, durable=True, arguments={"x-queue-type": kind})
        peer.publish(kind, b"m", delivery_mode=2)
    journal.commit()
    text = body(exposition.get_per_object(request(desk)))
    found = {name: labels for name, labels in samples(text) if name.startswith("rabbitmq_queue_disk")}
    assert set(found.values()) == {frozenset({("vhost", "/"), ("queue", "classic")})}
    assert value(text, "rabbitmq_queue_disk_writes_total", vhost="/", queue="classic") == 1
    assert value(text, "rabbitmq_queue_disk_reads_total", vhost="/", queue="classic") == 0
