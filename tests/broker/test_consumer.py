from __future__ import annotations

import pytest

from amqp_broker.broker.consumer import Consumer
from tests.taker import new_connection, new_message, new_queue


def new_consumer(no_ack: bool = False, prefetch: int = 0) -> Consumer:
    return Consumer(
        new_connection(),
        new_queue(),
        "tag",
        no_ack=no_ack,
        is_exclusive=False,
        prefetch=prefetch,
        priority=0,
        arguments={},
    )


def test_a_new_consumer_takes_nothing_and_holds_nothing() -> None:
    consumer = new_consumer(prefetch=5)
    assert not consumer.is_taking
    assert not consumer.is_full
    assert (consumer.in_flight, consumer.prefetch) == (0, 5)


def test_a_consumer_that_need_not_ack_has_no_prefetch() -> None:
    assert new_consumer(no_ack=True, prefetch=5).prefetch == 0


def test_the_verbs_are_the_sessions() -> None:
    consumer = new_consumer()
    with pytest.raises(NotImplementedError):
        consumer.can_take()
    with pytest.raises(NotImplementedError):
        consumer.deliver(new_message(), 0, False)
    with pytest.raises(NotImplementedError):
        consumer.on_queue_deleted()
