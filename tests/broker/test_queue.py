from __future__ import annotations

import pytest

from amqp_broker.errors import AccessRefused, ResourceLocked
from tests.taker import Taker, new_connection, new_queue, pulled, push

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
