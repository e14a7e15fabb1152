from __future__ import annotations

from tests.broker_parts import CollectingConsumer, new_message, new_queue


def test_a_new_consumer_is_not_ready_and_holds_nothing() -> None:
    consumer = CollectingConsumer(new_queue(), prefetch=5)
    assert not consumer.is_taking
    assert not consumer.is_full
    assert (consumer.in_flight, consumer.prefetch) == (0, 5)


def test_a_consumer_without_acks_has_no_prefetch() -> None:
    assert CollectingConsumer(new_queue(), no_ack=True, prefetch=5).prefetch == 0


def test_a_reserved_message_is_delivered_later() -> None:
    consumer = CollectingConsumer(new_queue())
    consumer.reserve()
    consumer.deliver_reserved(new_message(b"late"), 0, False)
    consumer.release()
    assert consumer.bodies == [b"late"]
