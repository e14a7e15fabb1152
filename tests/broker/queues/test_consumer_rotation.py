from __future__ import annotations

import pytest

from amqp_broker.broker.queues.queue import DRAIN_BYTES_MAX, DRAIN_MESSAGES_MAX
from tests.broker_parts import CollectingConsumer, new_message, new_queue, push

# Rotation


def test_consumers_take_turns() -> None:
    queue = new_queue()
    collectors = [CollectingConsumer(queue).start() for _ in range(3)]
    push(queue, *[bytes([number]) for number in range(7)])
    assert [collector.bodies for collector in collectors] == [[b"\0", b"\3", b"\6"], [b"\1", b"\4"], [b"\2", b"\5"]]


@pytest.mark.parametrize("leaving", [[0, 1, 2], [4, 3, 2], [2, 0, 4], [4, 2, 0]])
def test_consumers_that_stay_keep_their_turns(leaving: list[int]) -> None:
    queue = new_queue()
    collectors = [CollectingConsumer(queue).start() for _ in range(5)]
    push(queue, b"a", b"b")
    for number in leaving:
        collectors[number].stop()
    # The first two have had their turns.
    stay = [number for number in (2, 3, 4, 0, 1) if number not in leaving]
    assert list(queue.ready_consumers) == [collectors[number] for number in stay]
    assert list(queue.consumers) == [collectors[number] for number in sorted(stay)]


def test_consumers_take_turns_at_returned_messages() -> None:
    queue = new_queue()
    gone, first, second = (
        CollectingConsumer(queue, prefetch=3).start(),
        CollectingConsumer(queue),
        CollectingConsumer(queue),
    )
    push(queue, b"a", b"b", b"c")
    gone.stop()
    first.start()
    second.start()
    gone.give_back()
    assert (first.bodies, second.bodies) == ([b"a", b"c"], [b"b"])


def test_a_consumer_whose_prefetch_is_used_up_is_skipped() -> None:
    queue = new_queue()
    first, second = CollectingConsumer(queue, prefetch=1).start(), CollectingConsumer(queue).start()
    push(queue, b"a", b"b", b"c")
    assert (first.bodies, second.bodies) == ([b"a"], [b"b", b"c"])


def test_prefetch_limits_unacked_messages_and_not_deliveries() -> None:
    queue = new_queue()
    collector = CollectingConsumer(queue, prefetch=2).start()
    push(queue, b"a", b"b", b"c", b"d")
    assert collector.bodies == [b"a", b"b"]
    collector.ack()
    assert collector.bodies == [b"a", b"b", b"c"]
    assert (queue.ready_count, queue.unacked_count) == (1, 2)


def test_consumers_without_acks_have_no_prefetch() -> None:
    queue = new_queue()
    collector = CollectingConsumer(queue, no_ack=True, prefetch=1).start()
    push(queue, b"a", b"b")
    assert collector.bodies == [b"a", b"b"]
    assert queue.unacked_count == 0


def test_a_consumer_that_is_ready_again_joins_the_end_of_the_rotation() -> None:
    queue = new_queue()
    first, second, third = (
        CollectingConsumer(queue, prefetch=1).start(),
        CollectingConsumer(queue).start(),
        CollectingConsumer(queue).start(),
    )
    push(queue, b"a")
    first.ack()
    push(queue, b"b", b"c", b"d")
    assert (first.bodies, second.bodies, third.bodies) == ([b"a", b"d"], [b"b"], [b"c"])


def test_a_full_consumer_that_has_room_before_its_turn_keeps_its_place() -> None:
    queue = new_queue()
    first, second = CollectingConsumer(queue, prefetch=1).start(), CollectingConsumer(queue).start()
    push(queue, b"a", b"b")
    first.ack()
    push(queue, b"c")
    assert (first.bodies, second.bodies) == ([b"a", b"c"], [b"b"])


def test_a_full_consumer_that_was_passed_over_joins_the_end_of_the_rotation() -> None:
    queue = new_queue()
    first, second = CollectingConsumer(queue, prefetch=1).start(), CollectingConsumer(queue).start()
    push(queue, b"a", b"b", b"c")
    first.ack()
    push(queue, b"d", b"e")
    assert (first.bodies, second.bodies) == ([b"a", b"e"], [b"b", b"c", b"d"])


def test_when_all_consumers_are_full_messages_wait() -> None:
    queue = new_queue()
    collectors = [CollectingConsumer(queue, prefetch=1).start() for _ in range(2)]
    push(queue, b"a", b"b", b"c", b"d")
    assert queue.ready_count == 2
    collectors[1].ack()
    assert [collector.bodies for collector in collectors] == [[b"a"], [b"b", b"c"]]


def test_a_consumer_of_higher_priority_is_served_first() -> None:
    queue = new_queue()
    low, high = CollectingConsumer(queue).start(), CollectingConsumer(queue, priority=1).start()
    push(queue, b"a", b"b")
    assert (low.bodies, high.bodies) == ([], [b"a", b"b"])


def test_a_consumer_of_lower_priority_is_served_when_the_higher_ones_cannot_take() -> None:
    queue = new_queue()
    low, high = CollectingConsumer(queue, priority=-1).start(), CollectingConsumer(queue, prefetch=1).start()
    push(queue, b"a", b"b")
    assert (low.bodies, high.bodies) == ([b"b"], [b"a"])
    high.ack()
    push(queue, b"c")
    assert (low.bodies, high.bodies) == ([b"b"], [b"a", b"c"])


def test_consumers_of_equal_priority_take_turns() -> None:
    queue = new_queue()
    low, one, other = (
        CollectingConsumer(queue, priority=1).start(),
        CollectingConsumer(queue, priority=5).start(),
        CollectingConsumer(queue, priority=5).start(),
    )
    push(queue, b"a", b"b", b"c")
    assert (low.bodies, one.bodies, other.bodies) == ([], [b"a", b"c"], [b"b"])


def test_suspending_and_resuming_twice_changes_nothing() -> None:
    queue = new_queue()
    first, second = CollectingConsumer(queue).start(), CollectingConsumer(queue).start()
    queue.resume(first)
    assert list(queue.ready_consumers) == [first, second]
    queue.rotation.suspend(second)
    queue.rotation.suspend(second)
    assert list(queue.ready_consumers) == [first]


def test_ready_consumers_are_exactly_those_that_are_taking() -> None:
    queue = new_queue()
    collectors = [CollectingConsumer(queue, prefetch=prefetch).start() for prefetch in (1, 2, 0)]
    push(queue, b"a", b"b", b"c", b"d")
    assert [collector.is_taking for collector in collectors] == [False, True, True]
    assert set(queue.ready_consumers) == {collector for collector in collectors if collector.is_taking}


# Batches


def test_a_backlog_of_many_messages_is_delivered_in_batches() -> None:
    queue = new_queue()
    message = new_message(b"x")
    for _ in range(DRAIN_MESSAGES_MAX + 10):
        queue.push(message)
    collector = CollectingConsumer(queue).start()
    assert len(collector.taken) == DRAIN_MESSAGES_MAX
    assert queue.is_undrained
    queue.drain()
    assert len(collector.taken) == DRAIN_MESSAGES_MAX + 10


def test_a_backlog_of_large_messages_is_delivered_in_batches() -> None:
    queue = new_queue()
    message = new_message(b"x" * (DRAIN_BYTES_MAX // 2))
    for _ in range(5):
        queue.push(message)
    collector = CollectingConsumer(queue).start()
    assert len(collector.taken) == 2
    assert queue.is_undrained


def test_a_message_larger_than_a_batch_is_delivered() -> None:
    queue = new_queue()
    push(queue, b"x" * (DRAIN_BYTES_MAX + 1))
    assert len(CollectingConsumer(queue).start().taken) == 1


def test_a_message_pushed_between_two_batches_waits_for_its_turn() -> None:
    queue = new_queue()
    message = new_message(b"x")
    for _ in range(DRAIN_MESSAGES_MAX + 1):
        queue.push(message)
    collector = CollectingConsumer(queue).start()
    push(queue, b"last")
    assert queue.ready_count == 2
    queue.drain()
    assert [delivery.position for delivery in collector.taken] == list(range(DRAIN_MESSAGES_MAX + 2))
    assert collector.bodies[-1] == b"last"


def test_a_message_pushed_between_two_batches_of_requeued_messages_waits() -> None:
    queue = new_queue()
    message = new_message(b"x")
    gone = CollectingConsumer(queue).start()
    for _ in range(DRAIN_MESSAGES_MAX + 1):
        queue.push(message)
    gone.stop()
    collector = CollectingConsumer(queue).start()
    gone.give_back()
    push(queue, b"last")
    assert queue.ready_count == 2
    queue.drain()
    assert [delivery.position for delivery in collector.taken] == list(range(DRAIN_MESSAGES_MAX + 2))


def test_a_queue_waits_for_its_next_portion_once() -> None:
    queue = new_queue()
    message = new_message(b"x")
    for _ in range(2 * DRAIN_MESSAGES_MAX + 1):
        queue.push(message)
    collector = CollectingConsumer(queue).start()
    queue.drain()
    assert len(queue.vhost.broker.undrained) == 1
    queue.vhost.broker.drain_on()
    assert len(collector.taken) == 2 * DRAIN_MESSAGES_MAX + 1
    assert queue.vhost.broker.undrained == []


def test_a_message_that_waits_for_a_backlog_congests_the_broker() -> None:
    queue = new_queue()
    message = new_message(b"x")
    for _ in range(DRAIN_MESSAGES_MAX + 1):
        queue.push(message)
    assert not queue.vhost.broker.is_congested
    CollectingConsumer(queue).start()
    queue.push(message)
    assert queue.vhost.broker.is_congested


def test_a_message_that_waits_for_a_full_socket_congests_the_broker() -> None:
    queue = new_queue()
    broker = queue.vhost.broker
    push(queue, b"a")
    assert not broker.is_congested
    collector = CollectingConsumer(queue).start()
    queue.rotation.suspend(collector)
    queue.backpressured.add(collector)
    push(queue, b"b")
    assert broker.is_congested


def test_a_consumer_that_leaves_does_not_congest_the_broker() -> None:
    queue = new_queue()
    collector = CollectingConsumer(queue).start()
    queue.rotation.suspend(collector)
    queue.backpressured.add(collector)
    collector.stop()
    push(queue, b"a")
    assert not queue.vhost.broker.is_congested
