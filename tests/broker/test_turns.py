from __future__ import annotations

from amqp_broker.broker.queue import DRAIN_BYTES_MAX, DRAIN_MESSAGES_MAX
from tests.taker import Taker, new_message, new_queue, push

# Turns


def test_consumers_take_turns() -> None:
    queue = new_queue()
    takers = [Taker(queue).start() for _ in range(3)]
    push(queue, *[bytes([number]) for number in range(7)])
    assert [taker.bodies for taker in takers] == [[b"\0", b"\3", b"\6"], [b"\1", b"\4"], [b"\2", b"\5"]]


def test_consumers_take_turns_at_what_comes_back_too() -> None:
    queue = new_queue()
    gone, first, second = Taker(queue, prefetch=3).start(), Taker(queue), Taker(queue)
    push(queue, b"a", b"b", b"c")
    gone.stop()
    first.start()
    second.start()
    gone.give_back()
    assert (first.bodies, second.bodies) == ([b"a", b"c"], [b"b"])


def test_a_consumer_whose_prefetch_is_used_up_is_skipped() -> None:
    queue = new_queue()
    first, second = Taker(queue, prefetch=1).start(), Taker(queue).start()
    push(queue, b"a", b"b", b"c")
    assert (first.bodies, second.bodies) == ([b"a"], [b"b", b"c"])


def test_prefetch_limits_what_is_unacked_not_what_is_delivered() -> None:
    queue = new_queue()
    taker = Taker(queue, prefetch=2).start()
    push(queue, b"a", b"b", b"c", b"d")
    assert taker.bodies == [b"a", b"b"]
    taker.ack()
    assert taker.bodies == [b"a", b"b", b"c"]
    assert (queue.ready_count, queue.unacked_count) == (1, 2)


def test_without_acks_there_is_no_prefetch() -> None:
    queue = new_queue()
    taker = Taker(queue, no_ack=True, prefetch=1).start()
    push(queue, b"a", b"b")
    assert taker.bodies == [b"a", b"b"]
    assert queue.unacked_count == 0


def test_a_consumer_that_can_take_again_lines_up_behind_the_others() -> None:
    queue = new_queue()
    first, second, third = Taker(queue, prefetch=1).start(), Taker(queue).start(), Taker(queue).start()
    push(queue, b"a")
    first.ack()
    push(queue, b"b", b"c", b"d")
    assert (first.bodies, second.bodies, third.bodies) == ([b"a", b"d"], [b"b"], [b"c"])


def test_a_full_consumer_that_gets_room_in_time_keeps_its_place() -> None:
    queue = new_queue()
    first, second = Taker(queue, prefetch=1).start(), Taker(queue).start()
    push(queue, b"a", b"b")
    first.ack()
    push(queue, b"c")
    assert (first.bodies, second.bodies) == ([b"a", b"c"], [b"b"])


def test_a_full_consumer_that_was_passed_over_lines_up_anew() -> None:
    queue = new_queue()
    first, second = Taker(queue, prefetch=1).start(), Taker(queue).start()
    push(queue, b"a", b"b", b"c")
    first.ack()
    push(queue, b"d", b"e")
    assert (first.bodies, second.bodies) == ([b"a", b"e"], [b"b", b"c", b"d"])


def test_when_all_consumers_are_full_messages_wait() -> None:
    queue = new_queue()
    takers = [Taker(queue, prefetch=1).start() for _ in range(2)]
    push(queue, b"a", b"b", b"c", b"d")
    assert queue.ready_count == 2
    takers[1].ack()
    assert [taker.bodies for taker in takers] == [[b"a"], [b"b", b"c"]]


def test_a_consumer_of_higher_priority_is_served_first() -> None:
    queue = new_queue()
    low, high = Taker(queue).start(), Taker(queue, priority=1).start()
    push(queue, b"a", b"b")
    assert (low.bodies, high.bodies) == ([], [b"a", b"b"])


def test_a_consumer_of_lower_priority_is_served_when_the_higher_ones_cannot_take() -> None:
    queue = new_queue()
    low, high = Taker(queue, priority=-1).start(), Taker(queue, prefetch=1).start()
    push(queue, b"a", b"b")
    assert (low.bodies, high.bodies) == ([b"b"], [b"a"])
    high.ack()
    push(queue, b"c")
    assert (low.bodies, high.bodies) == ([b"b"], [b"a", b"c"])


def test_consumers_of_equal_priority_take_turns() -> None:
    queue = new_queue()
    low, one, other = (
        Taker(queue, priority=1).start(),
        Taker(queue, priority=5).start(),
        Taker(queue, priority=5).start(),
    )
    push(queue, b"a", b"b", b"c")
    assert (low.bodies, one.bodies, other.bodies) == ([], [b"a", b"c"], [b"b"])


def test_suspending_and_resuming_twice_changes_nothing() -> None:
    queue = new_queue()
    first, second = Taker(queue).start(), Taker(queue).start()
    queue.resume(first)
    assert list(queue.takers) == [first, second]
    queue.suspend(second)
    queue.suspend(second)
    assert list(queue.takers) == [first]


def test_takers_are_exactly_the_consumers_that_are_taking() -> None:
    queue = new_queue()
    takers = [Taker(queue, prefetch=prefetch).start() for prefetch in (1, 2, 0)]
    push(queue, b"a", b"b", b"c", b"d")
    assert [taker.is_taking for taker in takers] == [False, True, True]
    assert set(queue.takers) == {taker for taker in takers if taker.is_taking}


# Portions


def test_a_backlog_of_many_messages_is_handed_out_in_portions() -> None:
    queue = new_queue()
    message = new_message(b"x")
    for _ in range(DRAIN_MESSAGES_MAX + 10):
        queue.push(message)
    taker = Taker(queue).start()
    assert len(taker.taken) == DRAIN_MESSAGES_MAX
    assert queue in queue.vhost.broker.undrained
    queue.drain()
    assert len(taker.taken) == DRAIN_MESSAGES_MAX + 10


def test_a_backlog_of_large_messages_is_handed_out_in_portions() -> None:
    queue = new_queue()
    message = new_message(b"x" * (DRAIN_BYTES_MAX // 2))
    for _ in range(5):
        queue.push(message)
    taker = Taker(queue).start()
    assert len(taker.taken) == 2
    assert queue in queue.vhost.broker.undrained


def test_a_message_larger_than_a_portion_is_handed_out() -> None:
    queue = new_queue()
    push(queue, b"x" * (DRAIN_BYTES_MAX + 1))
    assert len(Taker(queue).start().taken) == 1


def test_what_is_pushed_between_two_portions_waits_for_its_turn() -> None:
    queue = new_queue()
    message = new_message(b"x")
    for _ in range(DRAIN_MESSAGES_MAX + 1):
        queue.push(message)
    taker = Taker(queue).start()
    push(queue, b"last")
    assert queue.ready_count == 2
    queue.drain()
    assert [delivery.position for delivery in taker.taken] == list(range(DRAIN_MESSAGES_MAX + 2))
    assert taker.bodies[-1] == b"last"


def test_what_is_pushed_between_two_portions_of_requeued_messages_waits_too() -> None:
    queue = new_queue()
    message = new_message(b"x")
    gone = Taker(queue).start()
    for _ in range(DRAIN_MESSAGES_MAX + 1):
        queue.push(message)
    gone.stop()
    taker = Taker(queue).start()
    gone.give_back()
    push(queue, b"last")
    assert queue.ready_count == 2
    queue.drain()
    assert [delivery.position for delivery in taker.taken] == list(range(DRAIN_MESSAGES_MAX + 2))


def test_a_queue_waits_for_its_next_portion_once() -> None:
    queue = new_queue()
    message = new_message(b"x")
    for _ in range(2 * DRAIN_MESSAGES_MAX + 1):
        queue.push(message)
    taker = Taker(queue).start()
    queue.drain()
    assert queue.vhost.broker.undrained == [queue]
    queue.vhost.broker.drain_on()
    assert len(taker.taken) == 2 * DRAIN_MESSAGES_MAX + 1
    assert queue.vhost.broker.undrained == []


def test_a_message_that_waits_for_a_backlog_is_told_to_the_broker() -> None:
    queue = new_queue()
    message = new_message(b"x")
    for _ in range(DRAIN_MESSAGES_MAX + 1):
        queue.push(message)
    assert not queue.vhost.broker.is_congested
    Taker(queue).start()
    queue.push(message)
    assert queue.vhost.broker.is_congested


def test_a_message_that_waits_for_a_full_socket_is_told_to_the_broker() -> None:
    queue = new_queue()
    broker = queue.vhost.broker
    push(queue, b"a")
    assert not broker.is_congested
    taker = Taker(queue).start()
    queue.suspend(taker)
    queue.clogged.add(taker)
    push(queue, b"b")
    assert broker.is_congested


def test_a_consumer_that_leaves_is_no_longer_waited_for() -> None:
    queue = new_queue()
    taker = Taker(queue).start()
    queue.suspend(taker)
    queue.clogged.add(taker)
    taker.stop()
    push(queue, b"a")
    assert not queue.vhost.broker.is_congested
