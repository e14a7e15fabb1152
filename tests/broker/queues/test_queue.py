from __future__ import annotations

import pytest

from amqp_broker.amqp.errors import AccessRefused
from tests.broker_parts import CollectingConsumer, new_queue, push


def test_a_queue_is_named_in_errors_with_its_vhost() -> None:
    assert str(new_queue()) == "queue 'q' in vhost '/'"


# Consumers


def test_an_exclusive_consumer_prevents_other_consumers() -> None:
    queue = new_queue()
    CollectingConsumer(queue, is_exclusive=True).start()
    with pytest.raises(AccessRefused) as caught:
        queue.subscribe(CollectingConsumer(queue))
    assert str(caught.value) == "queue 'q' in vhost '/' in exclusive use"
    assert len(queue.consumers) == 1


def test_a_queue_with_consumers_takes_no_exclusive_one() -> None:
    queue = new_queue()
    CollectingConsumer(queue).start()
    with pytest.raises(AccessRefused):
        queue.subscribe(CollectingConsumer(queue, is_exclusive=True))


def test_a_queue_with_a_single_active_consumer_takes_no_exclusive_one() -> None:
    queue = new_queue(arguments={"x-single-active-consumer": True})
    with pytest.raises(AccessRefused):
        queue.subscribe(CollectingConsumer(queue, is_exclusive=True))
    queue.subscribe(CollectingConsumer(queue))


def test_other_consumers_may_subscribe_after_an_exclusive_one_has_left() -> None:
    queue = new_queue()
    CollectingConsumer(queue, is_exclusive=True).start().stop()
    push(queue, b"a")
    assert CollectingConsumer(queue).start().bodies == [b"a"]


def test_a_consumer_that_has_left_gets_no_messages() -> None:
    queue = new_queue()
    collector = CollectingConsumer(queue).start()
    collector.stop()
    push(queue, b"a")
    assert collector.bodies == []
    assert queue.ready_count == 1


def test_messages_of_a_consumer_that_has_left_can_be_settled() -> None:
    queue = new_queue()
    collector = CollectingConsumer(queue).start()
    push(queue, b"a")
    collector.stop()
    collector.ack()
    assert queue.unacked_count == 0


def test_an_auto_delete_queue_is_deleted_with_its_last_consumer() -> None:
    queue = new_queue(is_auto_delete=True)
    first, second = CollectingConsumer(queue).start(), CollectingConsumer(queue).start()
    first.stop()
    assert queue.vhost.queues == {"q": queue}
    second.stop()
    assert queue.is_deleted
    assert queue.vhost.queues == {}


def test_an_auto_delete_queue_that_never_had_a_consumer_stays() -> None:
    queue = new_queue(is_auto_delete=True)
    push(queue, b"a")
    queue.pull()
    assert not queue.is_deleted


def test_a_queue_without_auto_delete_stays_without_consumers() -> None:
    queue = new_queue()
    CollectingConsumer(queue).start().stop()
    assert not queue.is_deleted
