"""basic.qos with global: how the consumers of a channel share its limit. Seen at RabbitMQ 3.10.8 and 4.0.5."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pamqp.commands import Basic, Channel, Queue, Tx

from tests.peer import Peer


def fill(peer: Peer, queue: str, count: int, queue_type: str = "classic") -> None:
    peer.call(Queue.Declare(queue=queue, durable=True, arguments={"x-queue-type": queue_type}))
    for number in range(count):
        peer.publish(queue, b"%s%d" % (queue.encode(), number))


def limit(peer: Peer, total: int, own: int = 0) -> None:
    peer.call(Basic.Qos(prefetch_count=own))
    peer.call(Basic.Qos(prefetch_count=total, global_=True))


def tags(peer: Peer) -> str:
    """The consumer tags of the deliveries that wait."""
    return "".join(deliver.consumer_tag or "" for deliver, _ in peer.deliveries())


def start(peer: Peer, queue: str, *consumers: str, **options: Any) -> str:
    """Start consumers; return the tags of what they get at once."""
    got = ""
    for tag in consumers:
        peer.consume(queue, tag, **options)
        got += tags(peer)
    return got


def ack_each(peer: Peer, first: int, last: int) -> str:
    """Ack these deliveries; return who gets the next after each."""
    got = ""
    for number in range(first, last + 1):
        peer.send(Basic.Ack(number))
        got += tags(peer)
    return got


@pytest.mark.parametrize("total", [1, 3])
def test_queues_take_turns(peer: Peer, total: int) -> None:
    limit(peer, total)
    got = ""
    for queue in "abc":
        fill(peer, queue, 100)
        got += start(peer, queue, queue)
    assert got == "a" * total
    counts = Counter(ack_each(peer, 1, 99))
    assert counts == {"a": 33, "b": 33, "c": 33}


def test_consumers_of_a_queue_take_turns_in_the_order_in_which_they_were_passed_over(peer: Peer) -> None:
    limit(peer, 2)
    fill(peer, "q", 20)
    assert start(peer, "q", "x", "y", "z") == "xx"
    assert ack_each(peer, 1, 7) == "xyzxyzx"
    peer.send(Basic.Ack(0, multiple=True))
    assert tags(peer) == "yz"


def test_a_consumer_has_had_its_turn_when_messages_come_later(peer: Peer, other: Peer) -> None:
    limit(peer, 1)
    fill(other, "q", 0)
    assert start(peer, "q", "x", "y") == ""
    for _ in range(6):
        other.publish("q", b"1")
    assert tags(peer) + ack_each(peer, 1, 5) == "xyxyxy"


def test_a_consumer_of_higher_priority_is_served_first(peer: Peer) -> None:
    limit(peer, 2)
    fill(peer, "q", 9)
    assert start(peer, "q", "x") + start(peer, "q", "h", arguments={"x-priority": 5}) == "xx"
    assert ack_each(peer, 1, 4) == "hhhh"


def test_both_limits_hold(peer: Peer) -> None:
    limit(peer, 3, own=2)
    fill(peer, "q", 9)
    assert start(peer, "q", "x", "y") == "xxy"
    assert ack_each(peer, 1, 2) == "xy"


def test_a_consumer_that_settles_may_be_served_before_one_that_never_was(peer: Peer) -> None:
    limit(peer, 2, own=1)
    fill(peer, "q", 14)
    assert start(peer, "q", "x", "y", "z") + ack_each(peer, 1, 6) == "xyxyxyxy"


def test_a_consumer_without_acks_gets_nothing_while_the_limit_is_reached(peer: Peer) -> None:
    limit(peer, 1)
    fill(peer, "q", 5)
    assert start(peer, "q", "x") + start(peer, "q", "y", no_ack=True) == "x"
    assert ack_each(peer, 1, 2) == "xyx"


def test_a_consumer_without_acks_is_not_limited_otherwise(peer: Peer) -> None:
    limit(peer, 1)
    fill(peer, "q", 5)
    assert start(peer, "q", "x", no_ack=True) == "xxxxx"


def test_a_cancelled_consumer_waits_no_longer(peer: Peer) -> None:
    limit(peer, 1)
    fill(peer, "q", 9)
    assert start(peer, "q", "x", "y") == "x"
    peer.call(Basic.Cancel("x"))
    assert ack_each(peer, 1, 1) == "y"


def test_messages_of_basic_get_count_as_long_as_the_limit_that_found_them(peer: Peer) -> None:
    fill(peer, "q", 9)
    peer.get("q", no_ack=False)
    limit(peer, 2)
    assert start(peer, "q", "x") + ack_each(peer, 1, 3) == "xxx"
    peer.call(Basic.Qos(prefetch_count=0, global_=True))
    assert tags(peer) == "xxxxx"


def test_messages_of_basic_get_do_not_count_for_a_limit_that_is_changed(peer: Peer) -> None:
    fill(peer, "q", 9)
    limit(peer, 1)
    for _ in range(2):
        peer.get("q", no_ack=False)
    peer.call(Basic.Qos(prefetch_count=2, global_=True))
    assert start(peer, "q", "x") == "xx"


@pytest.mark.parametrize("queue_type", ["quorum", "stream"])
def test_consumers_of_other_queues_are_not_limited_but_their_acks_count(peer: Peer, queue_type: str) -> None:
    fill(peer, "q", 9, queue_type)
    peer.call(Basic.Qos(prefetch_count=3))
    arguments: Any = {"x-stream-offset": "first"} if queue_type == "stream" else {}
    assert start(peer, "q", "x", arguments=arguments) == "xxx"
    limit(peer, 1)
    fill(peer, "c", 12)
    assert start(peer, "c", "y") == ""
    peer.send(Basic.Ack(3, multiple=True))
    assert Counter(tags(peer)) == {"x": 3, "y": 1}
    peer.send(Basic.Ack(0, multiple=True))
    assert Counter(tags(peer)) == {"x": 3, "y": 4}


def test_returned_messages_are_shared_as_well(peer: Peer) -> None:
    limit(peer, 2)
    fill(peer, "q", 4)
    assert start(peer, "q", "x", "y") == "xx"
    peer.send(Basic.Nack(0, multiple=True))
    assert tags(peer) == "xy"


@pytest.mark.parametrize("total", [2, 10])
def test_queues_share_what_one_ack_allows(peer: Peer, total: int) -> None:
    limit(peer, total)
    for queue in "abc":
        fill(peer, queue, 20)
        start(peer, queue, queue)
    peer.send(Basic.Ack(total, multiple=True))
    assert tags(peer) == ("ab" if total == 2 else "abcabcabca")


def test_a_queue_takes_what_others_leave(peer: Peer, other: Peer) -> None:
    limit(peer, 6)
    fill(other, "a", 6)
    start(peer, "a", "a")
    for queue, count in (("b", 1), ("c", 9)):
        fill(other, queue, count)
        start(peer, queue, queue)
    peer.send(Basic.Ack(6, multiple=True))
    assert tags(peer) == "bccccc"
    # The consumers of a and b are in line, and there is room.
    peer.send(Basic.Ack(0, multiple=True))
    assert tags(peer) == "cccc"
    fill(other, "a", 1)
    fill(other, "b", 2)
    assert tags(peer) == "ab"


def test_queues_that_become_ready_later_get_their_share(peer: Peer, other: Peer) -> None:
    limit(peer, 1)
    for queue in "abc":
        fill(other, queue, 0)
        start(peer, queue, queue)
    fill(other, "a", 50)
    assert tags(peer) + ack_each(peer, 1, 5) == "a" * 6
    for queue in "bc":
        fill(other, queue, 50)
    assert Counter(ack_each(peer, 6, 35)) == {"a": 10, "b": 10, "c": 10}


def test_a_full_socket_holds_back_all_and_the_queues_share_afterwards(peer: Peer, other: Peer) -> None:
    limit(peer, 4)
    for queue in "ab":
        fill(other, queue, 0)
        start(peer, queue, queue)
    peer.session.pause()
    for queue in "ab":
        fill(other, queue, 5)
    peer.expect_nothing()
    peer.session.resume(peer.lab.now)
    assert tags(peer) == "abab"
    peer.session.pause()
    peer.send(Basic.Ack(2, multiple=True))
    peer.expect_nothing()
    peer.session.resume(peer.lab.now)
    assert tags(peer) == "ab"


def test_a_consumer_that_comes_while_the_socket_is_full_is_served_afterwards(peer: Peer, other: Peer) -> None:
    limit(peer, 1)
    fill(other, "q", 2)
    peer.session.pause()
    assert start(peer, "q", "x") == ""
    peer.session.resume(peer.lab.now)
    assert tags(peer) + ack_each(peer, 1, 1) == "xx"


def test_a_single_active_consumer_that_follows_waits_for_the_limit(peer: Peer) -> None:
    limit(peer, 1)
    peer.call(Queue.Declare(queue="q", arguments={"x-single-active-consumer": True}))
    for _ in range(3):
        peer.publish("q")
    assert start(peer, "q", "x", "y") == "x"
    peer.call(Basic.Cancel("x"))
    peer.lab.drain()
    assert tags(peer) == ""
    assert ack_each(peer, 1, 2) == "yy"


def test_a_lower_limit_holds_once_enough_is_settled_and_a_higher_one_at_once(peer: Peer) -> None:
    limit(peer, 4)
    fill(peer, "q", 12)
    assert start(peer, "q", "x", "y") == "xxxx"
    peer.call(Basic.Qos(prefetch_count=2, global_=True))
    assert [ack_each(peer, tag, tag) for tag in range(1, 5)] == ["", "", "x", "y"]
    peer.call(Basic.Qos(prefetch_count=4, global_=True))
    assert tags(peer) == "xy"
    peer.call(Basic.Qos(prefetch_count=0, global_=True))
    assert tags(peer) == "xyxy"


def test_a_lifted_limit_leaves_consumers_their_own(peer: Peer) -> None:
    limit(peer, 3, own=2)
    fill(peer, "q", 9)
    assert start(peer, "q", "x", "y") == "xxy"
    peer.call(Basic.Qos(prefetch_count=2))
    assert tags(peer) == "y"
    assert ack_each(peer, 1, 3) == "xxy"


def test_a_consumer_that_comes_again_shares_the_limit(peer: Peer) -> None:
    limit(peer, 2)
    fill(peer, "q", 9)
    assert start(peer, "q", "x", "y") == "xx"
    peer.call(Basic.Cancel("x"))
    assert start(peer, "q", "x") == ""
    assert ack_each(peer, 1, 6) == "yxyxyx"


def test_a_commit_makes_room(peer: Peer) -> None:
    limit(peer, 2)
    fill(peer, "q", 9)
    peer.call(Tx.Select())
    assert start(peer, "q", "x", "y") == "xx"
    assert ack_each(peer, 1, 2) == ""
    peer.send(Tx.Commit())
    peer.expect(Tx.CommitOk)
    assert tags(peer) == "xy"
    peer.send(Basic.Nack(3), Basic.Ack(4), Tx.Commit())
    peer.expect(Tx.CommitOk)
    assert tags(peer) == "xy"
    peer.send(Basic.Ack(5))
    peer.call(Tx.Rollback())
    assert tags(peer) == ""


def test_messages_of_a_closed_channel_are_shared_by_others(peer: Peer, other: Peer) -> None:
    limit(other, 3)
    fill(other, "q", 5)
    assert start(other, "q", "x", "y") == "xxx"
    limit(peer, 4)
    assert start(peer, "q", "a", "b") == "aa"
    other.call(Channel.Close(reply_code=200, reply_text="", class_id=0, method_id=0))
    assert tags(peer) == "ab"
    assert ack_each(peer, 1, 1) == "a"


def test_a_consumer_of_another_channel_takes_a_returned_message_whose_turn_it_is(peer: Peer, other: Peer) -> None:
    limit(peer, 1)
    fill(peer, "q", 0)
    start(peer, "q", "w")
    start(other, "q", "o")
    fill(peer, "q", 3)
    assert (tags(peer), tags(other)) == ("w", "oo")
    peer.send(Basic.Nack(1))
    assert (tags(peer), tags(other)) == ("", "o")


@pytest.mark.parametrize("consumers", ["ad", "da"])
def test_all_messages_are_back_before_the_limit_is_free(peer: Peer, consumers: str) -> None:
    """Seen at RabbitMQ 3.10.8 in eleven of twelve plays: 40 before 66, and 59 before 71."""
    limit(peer, 3)
    got: dict[str, list[bytes]] = {}
    for queue, tag, count in (("q", consumers[0], 2), ("r", consumers[1], 1)):
        fill(peer, queue, count)
        start(peer, queue, tag)
    for queue in "qr":
        for number in range(4):
            peer.publish(queue, b"later %s%d" % (queue.encode(), number))
    peer.send(Basic.Nack(0, multiple=True, requeue=True))
    for deliver, content in peer.deliveries():
        got.setdefault(str(deliver.consumer_tag), []).append(content.body)
    assert {tag: bodies[0] for tag, bodies in got.items()} == {consumers[0]: b"q0", consumers[1]: b"r0"}
