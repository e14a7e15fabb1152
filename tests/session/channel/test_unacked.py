"""The deliveries that a client has to settle, by tag."""

from __future__ import annotations

import gc
import weakref

import pytest
from pamqp import commands

from amqp_broker.session.channel.unacked import LOOKED_UP_MAX, Unacked
from tests.peer import Lab


def with_deliveries(count: int) -> Unacked:
    """Return the deliveries of a client that got this many messages from one queue."""
    peer = Lab().connect()
    peer.declare("q")
    for _ in range(count):
        peer.publish("q", b"x")
    peer.consume("q")
    assert len(peer.bodies()) == count
    return peer.session.channels[1].unacked


@pytest.mark.parametrize("settled", [0, 2, LOOKED_UP_MAX + 300])
def test_all_up_to_a_tag_are_taken_whatever_was_settled_one_by_one(settled: int) -> None:
    unacked = with_deliveries(LOOKED_UP_MAX + 320)
    last = LOOKED_UP_MAX + 310
    for tag in range(5, 5 + settled):
        del unacked.deliveries[tag]
    assert [tag for tag, _ in unacked.take_up_to(last)] == [*range(1, 5), *range(5 + settled, last + 1)]
    assert list(unacked.deliveries) == list(range(last + 1, last + 11))
    assert [tag for tag, _ in unacked.take_up_to(last + 2)] == [last + 1, last + 2]
    assert [tag for tag, _ in unacked.take_up_to(0)] == list(range(last + 3, last + 11))


def test_deliveries_that_are_put_back_are_taken_again_in_the_order_of_their_tags() -> None:
    unacked = with_deliveries(4)
    taken = list(unacked.take_up_to(3))
    unacked.put_back(reversed(taken))
    assert list(unacked.deliveries) == [1, 2, 3, 4]
    assert [tag for tag, _ in unacked.take_up_to(2)] == [1, 2]


def test_all_deliveries_are_taken_without_a_copy() -> None:
    """Collections of garbage walk over young dicts."""
    unacked = with_deliveries(2)
    deliveries = unacked.deliveries
    assert gc.get_referents(unacked.take_all()) == [deliveries]
    assert (list(deliveries), unacked.deliveries) == ([1, 2], {})


def test_a_tag_is_as_old_as_the_first_mark_behind_it() -> None:
    unacked = with_deliveries(3)
    assert unacked.marked_at(1) is None
    unacked.mark(1000, ())
    unacked.last_tag += 1
    unacked.duplicates[4] = next(iter(unacked.deliveries.values()))[0], next(iter(unacked.deliveries.values()))[3]
    unacked.mark(2000, ())
    assert [unacked.marked_at(tag) for tag in (1, 3, 4, 5)] == [1000, 1000, 2000, None]
    assert [unacked.last_marked_until(time_ms) for time_ms in (999, 1000, 1999, 2000)] == [0, 3, 3, 4]


@pytest.mark.parametrize(("uncommitted", "marks"), [((), [(2000, 3)]), ((1,), [(1000, 2), (2000, 3)])])
def test_marks_are_kept_for_tags_that_are_unsettled_or_may_be_rolled_back(
    uncommitted: tuple[int, ...], marks: list[tuple[int, int]]
) -> None:
    unacked = with_deliveries(3)
    unacked.last_tag = 2
    unacked.mark(1000, ())
    unacked.last_tag = 3
    unacked.take_up_to(2)
    unacked.mark(2000, uncommitted)
    assert list(unacked.marks) == marks


def test_a_delivery_that_has_timed_out_is_unacknowledged_on_its_channel_until_it_is_settled() -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", "x-consumer-timeout": 700})
    peer.publish("q", b"1")
    peer.consume("q")
    assert peer.bodies() == [b"1"]
    lab.advance(700)
    peer.expect(commands.Basic.Cancel)
    channel, queue = peer.session.channels[1], lab.vhost.queues["q"]
    assert (channel.messages_unacknowledged, queue.ready_count) == (1, 1)
    peer.send(commands.Basic.Reject(1, requeue=False))
    assert (channel.messages_unacknowledged, queue.ready_count, queue.unacked_count) == (1, 0, 1)
    assert peer.bodies() == [b"1"]


def test_a_delivery_that_has_timed_out_and_is_settled_twice_closes_the_channel() -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", "x-consumer-timeout": 700})
    for body in (b"1", b"2"):
        peer.publish("q", body)
    peer.consume("q")
    assert peer.bodies() == [b"1", b"2"]
    lab.advance(700)
    peer.expect(commands.Basic.Cancel)
    peer.send(commands.Basic.Ack(1), commands.Basic.Ack(1))
    assert "unknown delivery tag 1" in peer.expect_channel_close(406)


def test_a_delivery_that_times_out_copies_no_tags_of_others() -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    peer.publish("q", b"1")
    peer.consume("q")
    unacked = peer.session.channels[1].unacked
    ((_, consumer, _, message),) = unacked.deliveries.values()
    assert consumer is not None
    unacked.time_out(1, consumer, message)
    tags = consumer.timed_out_tags
    unacked.time_out(2, consumer, message)
    assert consumer.timed_out_tags is tags == {1, 2}


@pytest.mark.interpreted
def test_a_closed_channel_with_deadlines_is_freed_at_once() -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", "x-consumer-timeout": 700})
    peer.publish("q", b"1")
    peer.publish("q", b"2")
    peer.consume("q")
    assert peer.bodies() == [b"1", b"2"]
    seen = weakref.ref(peer.session.channels[1])
    gc.disable()
    try:
        peer.call(commands.Channel.Close(200, "", 0, 0))
        lab.advance(700)
        assert seen() is None
    finally:
        gc.enable()
