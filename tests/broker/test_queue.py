from __future__ import annotations

import pytest

from amqp_broker.broker.queue import DRAIN_BYTES_MAX, DRAIN_MESSAGES_MAX, Queue
from amqp_broker.errors import AccessRefused, ResourceLocked
from tests.taker import RecordingJournal, Taker, new_broker, new_connection, new_message, new_queue, new_vhost


def push(queue: Queue, *bodies: bytes) -> None:
    for body in bodies:
        queue.push(new_message(body))


def pulled(queue: Queue) -> list[tuple[bytes, int, bool]]:
    """All that is ready: body, position, and whether it was delivered before."""
    found = []
    while (got := queue.pull()) is not None:
        found.append((got[0].body, got[1], got[2]))
    return found


def ready_bodies(queue: Queue) -> list[bytes]:
    return [body for body, _, _ in pulled(queue)]


# Order


def test_a_queue_is_named_in_errors_with_its_vhost() -> None:
    assert str(new_queue()) == "queue 'q' in vhost '/'"


def test_messages_are_pulled_in_the_order_of_their_arrival() -> None:
    queue = new_queue()
    push(queue, b"a", b"b", b"c")
    assert queue.ready_count == 3
    assert pulled(queue) == [(b"a", 0, False), (b"b", 1, False), (b"c", 2, False)]
    assert queue.ready_count == 0


def test_an_empty_queue_has_nothing_to_pull() -> None:
    assert new_queue().pull() is None


def test_a_message_goes_straight_to_a_consumer_that_waits() -> None:
    queue = new_queue()
    taker = Taker(queue).start()
    push(queue, b"a", b"b")
    assert taker.bodies == [b"a", b"b"]
    assert [delivery.position for delivery in taker.taken] == [0, 1]
    assert not any(delivery.redelivered for delivery in taker.taken)
    assert (queue.ready_count, queue.unacked_count) == (0, 2)


def test_a_consumer_that_comes_later_gets_what_is_ready() -> None:
    queue = new_queue()
    push(queue, b"a", b"b")
    assert Taker(queue).start().bodies == [b"a", b"b"]


def test_a_consumer_gets_nothing_before_it_takes() -> None:
    queue = new_queue()
    push(queue, b"a")
    taker = Taker(queue)
    queue.subscribe(taker)
    push(queue, b"b")
    assert taker.bodies == []
    queue.resume(taker)
    assert taker.bodies == [b"a", b"b"]


def test_a_requeued_message_goes_back_to_its_original_position() -> None:
    queue = new_queue()
    push(queue, b"a", b"b", b"c")
    taker = Taker(queue, prefetch=2).start()
    taker.stop()
    taker.give_back(1)
    assert pulled(queue) == [(b"b", 1, True), (b"c", 2, False)]


def test_requeued_messages_keep_their_order_whatever_the_order_they_came_back_in() -> None:
    queue = new_queue()
    push(queue, b"a", b"b", b"c", b"d")
    taker = Taker(queue, prefetch=3).start()
    taker.stop()
    taker.give_back(2, 0, 1)
    assert pulled(queue) == [(b"a", 0, True), (b"b", 1, True), (b"c", 2, True), (b"d", 3, False)]


def test_a_requeued_message_is_delivered_as_redelivered() -> None:
    queue = new_queue()
    taker = Taker(queue, prefetch=1).start()
    push(queue, b"a")
    taker.give_back()
    assert [(delivery.position, delivery.redelivered) for delivery in taker.taken] == [(0, False), (0, True)]


def test_a_message_pushed_behind_a_requeued_one_waits_for_it() -> None:
    queue = new_queue()
    taker = Taker(queue, prefetch=1).start()
    push(queue, b"a")
    taker.stop()
    taker.give_back()
    push(queue, b"b")
    assert Taker(queue).start().bodies == [b"a", b"b"]


def test_an_acked_message_is_gone() -> None:
    queue = new_queue()
    taker = Taker(queue).start()
    push(queue, b"a")
    taker.ack()
    assert (queue.ready_count, queue.unacked_count) == (0, 0)
    taker.stop()
    assert pulled(queue) == []


def test_what_is_requeued_to_a_deleted_queue_is_gone() -> None:
    queue = new_queue()
    taker = Taker(queue).start()
    push(queue, b"a")
    queue.vhost.remove_queue(queue)
    taker.give_back()
    assert (queue.ready_count, queue.unacked_count) == (0, 0)


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


# Purge


def test_purging_drops_what_is_ready_and_counts_it() -> None:
    queue = new_queue()
    taker = Taker(queue, prefetch=2).start()
    push(queue, b"a", b"b", b"c", b"d")
    taker.stop()
    taker.give_back(0)
    assert queue.purge() == 3
    assert (queue.ready_count, queue.unacked_count) == (0, 1)


def test_positions_go_on_after_a_purge() -> None:
    queue = new_queue()
    taker = Taker(queue, prefetch=1).start()
    push(queue, b"a", b"b", b"c")
    queue.purge()
    push(queue, b"d")
    taker.stop()
    taker.give_back()
    assert pulled(queue) == [(b"a", 0, True), (b"d", 3, False)]


# Limits


def test_a_queue_of_limited_length_drops_its_oldest_messages() -> None:
    queue = new_queue(arguments_={"x-max-length": 2})
    push(queue, b"a", b"b", b"c")
    assert pulled(queue) == [(b"b", 1, False), (b"c", 2, False)]


def test_a_queue_of_limited_bytes_drops_until_the_rest_fits() -> None:
    queue = new_queue(arguments_={"x-max-length-bytes": 5})
    push(queue, b"aa", b"bb", b"c")
    assert queue.ready_count == 3
    push(queue, b"ddd")
    assert ready_bodies(queue) == [b"c", b"ddd"]


def test_a_message_larger_than_the_limit_is_dropped_with_all_before_it() -> None:
    queue = new_queue(arguments_={"x-max-length-bytes": 5})
    push(queue, b"aa", b"123456")
    assert queue.ready_count == 0


def test_the_limit_is_about_what_is_ready_not_what_is_unacked() -> None:
    queue = new_queue(arguments_={"x-max-length": 1})
    taker = Taker(queue, prefetch=2).start()
    push(queue, b"a", b"b", b"c")
    assert taker.bodies == [b"a", b"b"]
    assert (queue.ready_count, queue.unacked_count) == (1, 2)


def test_a_queue_of_length_zero_hands_on_but_keeps_nothing() -> None:
    queue = new_queue(arguments_={"x-max-length": 0})
    push(queue, b"a")
    taker = Taker(queue, prefetch=1).start()
    push(queue, b"b", b"c")
    assert taker.bodies == [b"b"]
    assert queue.ready_count == 0


def test_requeued_messages_push_the_oldest_over_the_limit() -> None:
    queue = new_queue(arguments_={"x-max-length": 2})
    taker = Taker(queue, prefetch=2).start()
    push(queue, b"a", b"b", b"c", b"d")
    taker.stop()
    taker.give_back()
    assert pulled(queue) == [(b"c", 2, False), (b"d", 3, False)]
    assert queue.unacked_count == 0


def test_bytes_are_counted_through_deliveries_requeues_and_purges() -> None:
    queue = new_queue(arguments_={"x-max-length-bytes": 100})
    push(queue, b"aaa", b"bb")
    assert queue.ready_bytes == 5
    taker = Taker(queue, prefetch=1).start()
    assert queue.ready_bytes == 2
    taker.stop()
    taker.give_back()
    assert queue.ready_bytes == 5
    queue.pull()
    assert queue.ready_bytes == 2
    queue.purge()
    assert queue.ready_bytes == 0


@pytest.mark.parametrize("overflow", ["reject-publish", "reject-publish-dlx"])
def test_a_full_queue_that_refuses_says_so_before_the_push(overflow: str) -> None:
    queue = new_queue(arguments_={"x-max-length": 1, "x-max-length-bytes": 5, "x-overflow": overflow})
    assert not queue.will_reject(new_message(b"12345"))
    assert queue.will_reject(new_message(b"123456"))
    push(queue, b"a")
    assert queue.will_reject(new_message(b""))


def test_a_queue_that_drops_its_head_refuses_nothing() -> None:
    queue = new_queue(arguments_={"x-max-length": 0})
    assert not queue.will_reject(new_message(b"a"))


def test_a_queue_without_limits_refuses_nothing() -> None:
    assert not new_queue(arguments_={"x-overflow": "reject-publish"}).will_reject(new_message(b"a"))


def test_a_queue_that_refuses_drops_nothing_when_messages_come_back() -> None:
    queue = new_queue(arguments_={"x-max-length": 1, "x-overflow": "reject-publish"})
    taker = Taker(queue, prefetch=1).start()
    push(queue, b"a", b"b")
    taker.stop()
    taker.give_back()
    assert ready_bodies(queue) == [b"a", b"b"]


# Consumers


def test_an_exclusive_consumer_keeps_others_out() -> None:
    queue = new_queue()
    Taker(queue, is_exclusive=True).start()
    with pytest.raises(AccessRefused) as caught:
        queue.subscribe(Taker(queue))
    assert str(caught.value) == "queue 'q' in vhost '/' in exclusive use"
    assert len(queue.consumers) == 1


def test_a_queue_with_consumers_takes_no_exclusive_one() -> None:
    queue = new_queue()
    Taker(queue).start()
    with pytest.raises(AccessRefused):
        queue.subscribe(Taker(queue, is_exclusive=True))


def test_a_queue_with_a_single_active_consumer_takes_no_exclusive_one() -> None:
    queue = new_queue(arguments_={"x-single-active-consumer": True})
    with pytest.raises(AccessRefused):
        queue.subscribe(Taker(queue, is_exclusive=True))
    queue.subscribe(Taker(queue))


def test_an_exclusive_consumer_that_leaves_lets_others_in() -> None:
    queue = new_queue()
    Taker(queue, is_exclusive=True).start().stop()
    push(queue, b"a")
    assert Taker(queue).start().bodies == [b"a"]


def test_a_consumer_that_left_gets_nothing_more() -> None:
    queue = new_queue()
    taker = Taker(queue).start()
    taker.stop()
    push(queue, b"a")
    assert taker.bodies == []
    assert queue.ready_count == 1


def test_what_a_consumer_holds_when_it_leaves_can_still_be_settled() -> None:
    queue = new_queue()
    taker = Taker(queue).start()
    push(queue, b"a")
    taker.stop()
    taker.ack()
    assert queue.unacked_count == 0


def test_an_auto_delete_queue_goes_with_its_last_consumer() -> None:
    queue = new_queue(is_auto_delete=True)
    first, second = Taker(queue).start(), Taker(queue).start()
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
    Taker(queue).start().stop()
    assert not queue.is_deleted


def test_an_exclusive_queue_is_locked_for_other_connections() -> None:
    owner = new_connection()
    queue = new_queue(owner=owner, connection=owner)
    queue.check_owner(owner)
    for other in (new_connection(), None):
        with pytest.raises(ResourceLocked) as caught:
            queue.check_owner(other)
    assert str(caught.value) == (
        "cannot obtain exclusive access to locked queue 'q' in vhost '/'. It could be originally declared on another "
        "connection or the exclusive property value does not match that of the original declaration."
    )


def test_a_queue_without_an_owner_is_everybodys() -> None:
    new_queue().check_owner(new_connection())
    new_queue().check_owner(None)


# What the journal is told


def test_a_durable_queue_tells_its_journal_about_persistent_messages() -> None:
    journal = RecordingJournal()
    queue = new_queue(new_vhost(journal), is_durable=True)
    queue.push(new_message(b"a", delivery_mode=2))
    queue.push(new_message(b"b", delivery_mode=1))
    queue.push(new_message(b"c", delivery_mode=2))
    assert journal.records == [("put", "q", 0), ("put", "q", 2)]


def test_a_transient_queue_tells_its_journal_nothing() -> None:
    journal = RecordingJournal()
    queue = new_queue(new_vhost(journal))
    queue.push(new_message(b"a", delivery_mode=2))
    queue.purge()
    assert journal.records == []


def test_an_exclusive_queue_tells_its_journal_nothing() -> None:
    journal = RecordingJournal()
    owner = new_connection()
    queue = new_queue(new_vhost(journal), is_durable=True, owner=owner, connection=owner)
    queue.push(new_message(b"a", delivery_mode=2))
    assert journal.records == []


def test_a_broker_without_a_journal_tells_nobody() -> None:
    assert new_queue(new_broker().vhosts["/"], is_durable=True).journal is None


def test_a_delivered_message_is_put_before_it_is_delivered_and_removed_when_it_is_settled() -> None:
    journal = RecordingJournal()
    queue = new_queue(new_vhost(journal), is_durable=True)
    taker = Taker(queue).start()
    queue.push(new_message(b"a", delivery_mode=2))
    queue.push(new_message(b"b", delivery_mode=2))
    assert journal.records == [("put", "q", 0), ("put", "q", 1)]
    taker.ack(1)
    assert journal.records[2:] == [("remove", "q", 1)]


def test_a_requeued_message_is_not_put_again() -> None:
    journal = RecordingJournal()
    queue = new_queue(new_vhost(journal), is_durable=True)
    taker = Taker(queue, prefetch=1).start()
    queue.push(new_message(b"a", delivery_mode=2))
    taker.give_back()
    taker.ack()
    assert journal.records == [("put", "q", 0), ("remove", "q", 0)]


def test_purged_messages_are_removed_at_their_positions() -> None:
    journal = RecordingJournal()
    queue = new_queue(new_vhost(journal), is_durable=True)
    for mode in (2, 2, 1, 2):
        queue.push(new_message(b"", delivery_mode=mode))
    taker = Taker(queue, prefetch=1).start()
    taker.stop()
    taker.give_back()
    queue.purge()
    assert journal.records[3:] == [("remove", "q", 0), ("remove", "q", 1), ("remove", "q", 3)]


def test_dropped_messages_are_removed() -> None:
    journal = RecordingJournal()
    queue = new_queue(new_vhost(journal), is_durable=True, arguments_={"x-max-length": 1})
    queue.push(new_message(b"a", delivery_mode=2))
    queue.push(new_message(b"b", delivery_mode=2))
    assert journal.records == [("put", "q", 0), ("put", "q", 1), ("remove", "q", 0)]


def test_a_deleted_queues_ready_messages_are_removed() -> None:
    journal = RecordingJournal()
    queue = new_queue(new_vhost(journal), is_durable=True)
    queue.push(new_message(b"a", delivery_mode=2))
    queue.vhost.remove_queue(queue)
    assert journal.records == [("put", "q", 0), ("remove", "q", 0)]
