"""Consumers of a lost connection leave in portions, and get nothing meanwhile."""

from __future__ import annotations

from typing import Any

from pamqp.commands import Basic, Queue

from amqp_broker.broker.scheduling.portions import WORK_MAX
from amqp_broker.session.channel.leaving_consumers import LEAVE_WORK
from tests.peer import Lab, Peer

# Consumers that leave in one portion.
PORTION = WORK_MAX // LEAVE_WORK
COUNT = 2 * PORTION + 10


def consuming(lab: Lab, *queues: str, **arguments: Any) -> Peer:
    """Return a client with many consumers of these queues in turn."""
    peer = lab.connect()
    for queue in queues:
        peer.call(Queue.Declare(queue=queue, arguments=arguments))
    for number in range(COUNT):
        peer.call(Basic.Consume(queue=queues[number % len(queues)], consumer_tag=f"c{number}"))
    return peer


def turn(lab: Lab) -> None:
    lab.broker.end_turn()
    lab.broker.drain_on()


def test_many_consumers_of_a_lost_connection_leave_in_portions() -> None:
    lab = Lab()
    peer = consuming(lab, "q", "r")
    queues = [lab.vhost.queues[name] for name in ("q", "r")]
    lab.broker.work = 0
    peer.session.drop()
    left = [COUNT - sum(len(queue.consumers) for queue in queues)]
    # None is ready any more.
    assert [list(queue.ready_consumers) for queue in queues] == [[], []]
    while left[-1] < COUNT:
        turn(lab)
        left.append(COUNT - sum(len(queue.consumers) for queue in queues))
    assert [after - before for before, after in zip([0, *left], left, strict=False)] == [PORTION, PORTION, 10]


def test_a_message_that_comes_meanwhile_stays_for_others() -> None:
    lab = Lab()
    peer = consuming(lab, "q")
    lab.broker.work = 0
    peer.session.drop()
    other = lab.connect()
    other.publish("q", b"m")
    queue = lab.vhost.queues["q"]
    assert queue.consumers
    assert (queue.ready_count, queue.unacked_count) == (1, 0)
    while queue.consumers:
        turn(lab)
    assert (queue.ready_count, queue.unacked_count) == (1, 0)


def test_the_next_active_consumer_is_not_one_that_leaves() -> None:
    lab = Lab()
    peer = consuming(lab, "q", **{"x-single-active-consumer": True})
    other = lab.connect()
    other.call(Basic.Consume(queue="q", consumer_tag="next"))
    lab.broker.work = 0
    peer.session.drop()
    queue = lab.vhost.queues["q"]
    seen = set()
    while len(queue.consumers) > 1:
        active = queue.rotation.active_consumer
        seen.add(active and active.tag)
        turn(lab)
    active = queue.rotation.active_consumer
    assert active is not None
    assert (active.tag, seen - {"c0", "next"}) == ("next", set())


def test_a_queue_may_be_deleted_while_consumers_leave_it() -> None:
    lab = Lab()
    peer = consuming(lab, "q")
    lab.broker.work = 0
    peer.session.drop()
    other = lab.connect()
    other.call(Queue.Delete(queue="q"))
    for _ in range(10):
        turn(lab)
    assert "q" not in lab.vhost.queues
    assert peer.session not in lab.vhost.connections
