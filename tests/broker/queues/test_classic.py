from __future__ import annotations

import sys

from amqp_broker.broker.queues.backlog_queue import FREED_MAX
from tests.broker_parts import CollectingConsumer, new_message, new_queue, pulled, push


def test_messages_are_pulled_in_the_order_of_their_arrival() -> None:
    queue = new_queue()
    push(queue, b"a", b"b", b"c")
    assert queue.ready_count == 3
    assert pulled(queue) == [(b"a", 0, False), (b"b", 1, False), (b"c", 2, False)]
    assert queue.ready_count == 0


def test_an_empty_queue_has_nothing_to_pull() -> None:
    assert new_queue().pull() is None


def test_a_message_goes_straight_to_a_ready_consumer() -> None:
    queue = new_queue()
    collector = CollectingConsumer(queue).start()
    push(queue, b"a", b"b")
    assert collector.bodies == [b"a", b"b"]
    assert [delivery.position for delivery in collector.taken] == [0, 1]
    assert not any(delivery.redelivered for delivery in collector.taken)
    assert (queue.ready_count, queue.unacked_count) == (0, 2)


def test_a_later_consumer_gets_the_ready_messages() -> None:
    queue = new_queue()
    push(queue, b"a", b"b")
    assert CollectingConsumer(queue).start().bodies == [b"a", b"b"]


def test_a_consumer_gets_nothing_before_it_is_resumed() -> None:
    queue = new_queue()
    push(queue, b"a")
    collector = CollectingConsumer(queue)
    queue.subscribe(collector)
    push(queue, b"b")
    assert collector.bodies == []
    queue.resume(collector)
    assert collector.bodies == [b"a", b"b"]


def test_a_new_message_waits_behind_a_requeued_one() -> None:
    queue = new_queue()
    collector = CollectingConsumer(queue, prefetch=1).start()
    push(queue, b"a")
    collector.stop()
    collector.give_back()
    push(queue, b"b")
    assert CollectingConsumer(queue).start().bodies == [b"a", b"b"]


def test_many_purged_messages_are_gone_at_once_and_freed_in_batches() -> None:
    queue, message = new_queue(), new_message(b"m")
    for _ in range(3 * FREED_MAX):
        queue.push(message)
    before = sys.getrefcount(message)
    assert queue.purge() == 3 * FREED_MAX
    assert queue.ready_count == 0
    left = [before - sys.getrefcount(message)]
    while queue.vhost.broker.drain_on():
        left.append(before - sys.getrefcount(message))
    left.append(before - sys.getrefcount(message))
    assert left == [0, FREED_MAX, 2 * FREED_MAX, 3 * FREED_MAX]


def test_messages_that_come_after_a_purge_stay() -> None:
    queue = new_queue()
    for _ in range(FREED_MAX + 1):
        push(queue, b"m")
    queue.purge()
    push(queue, b"new")
    while queue.vhost.broker.drain_on():
        pass
    assert [body for body, _, _ in pulled(queue)] == [b"new"]
