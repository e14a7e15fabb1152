"""Thousands of deliveries that are rejected or returned at once."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, Final

import pytest
from pamqp import commands

from amqp_broker.amqp.message import Message
from amqp_broker.broker.scheduling.portions import WORK_MAX
from amqp_broker.session.channel.returning import REJECT_WORK, SETTLED_MAX
from tests.kinds_of_queues import DEAD, QUEUES
from tests.peer import Lab, Peer, publish_bytes
from tests.restarting import durable_lab, restarted

UNACKED: Final = 4 * SETTLED_MAX + 10
READY: Final = 20
# The most deliveries that one turn returns.
TURN_MAX: Final = WORK_MAX // REJECT_WORK + SETTLED_MAX


def holding(lab: Lab, **arguments: Any) -> Peer:
    """A client that holds unacked messages of a queue, which has more."""
    peer = lab.connect()
    peer.declare("dead", durable=True)
    peer.declare("q", durable=True, arguments=arguments)
    publish(peer, range(UNACKED + READY))
    peer.send(commands.Basic.Qos(prefetch_count=UNACKED))
    peer.expect(commands.Basic.QosOk)
    peer.consume("q", tag="holder")
    lab.drain()
    assert len(peer.bodies()) == UNACKED
    return peer


def publish(peer: Peer, numbers: range) -> None:
    peer.send_bytes(b"".join(publish_bytes("q", b"%d" % number, delivery_mode=2) for number in numbers))
    peer.lab.drain()


def counts(lab: Lab, queue: str = "q") -> tuple[int, int]:
    found = lab.vhost.queues[queue]
    return found.ready_count, found.unacked_count


def bodies(lab: Lab, queue: str) -> list[int]:
    return [int(message.body) for message in lab.vhost.queues[queue].messages()]


def reject(peer: Peer) -> None:
    peer.send(commands.Basic.Nack(0, multiple=True, requeue=False))


def requeue(peer: Peer) -> None:
    peer.send(commands.Basic.Cancel("holder", nowait=True), commands.Basic.Nack(0, multiple=True, requeue=True))


def recover(peer: Peer) -> None:
    peer.send(commands.Basic.Cancel("holder", nowait=True), commands.Basic.Recover(requeue=True))


def close_channel(peer: Peer) -> None:
    peer.send(commands.Channel.Close(200, "", 0, 0))


def close_connection(peer: Peer) -> None:
    peer.send(commands.Connection.Close(200, "", 0, 0), channel=0)


def fail_channel(peer: Peer) -> None:
    peer.send(commands.Queue.Declare(queue="missing", passive=True))


def vanish(peer: Peer) -> None:
    peer.disconnect()


RETURNS: Final = [requeue, recover, close_channel, close_connection, fail_channel, vanish]
Ending = Callable[[Peer], None]
# An ending and a kind of queue: each kind with a return by the client and by a loss, each ending with one kind.
WAYS: Final = [(end, kind) for kind in QUEUES for end in (requeue, vanish)] + [
    (end, "quorum 4.3") for end in RETURNS if end not in (requeue, vanish)
]


@pytest.mark.parametrize("kind", QUEUES)
def test_others_are_served_while_many_deliveries_are_rejected(kind: str) -> None:
    compat, arguments = QUEUES[kind]
    lab = Lab(compat=compat)
    peer = holding(lab, **arguments, **DEAD)
    peer.send(
        commands.Basic.Cancel("holder", nowait=True),
        commands.Basic.Nack(0, multiple=True, requeue=False),
        commands.Basic.Qos(),
    )
    turns, died = 0, 0
    while lab.broker.undrained:
        now = counts(lab, "dead")[0]
        assert now - died <= TURN_MAX
        assert now + counts(lab)[1] == UNACKED
        peer.expect_nothing()
        assert lab.connect().declare("other", durable=True).queue == "other"
        died, turns = now, turns + 1
        lab.broker.drain_on()
    assert turns > 2
    peer.expect(commands.Basic.QosOk)
    assert bodies(lab, "dead") == list(range(UNACKED))
    assert counts(lab) == (READY, 0)


def messages_in_memory() -> int:
    gc.collect()
    return sum(isinstance(one, Message) for one in gc.get_objects())


def ack(peer: Peer) -> None:
    peer.send(commands.Basic.Ack(0, multiple=True))


@pytest.mark.parametrize("settle", [ack, reject])
def test_memory_of_many_deliveries_is_freed_as_they_are_settled(settle: Ending) -> None:
    before = messages_in_memory()
    lab = Lab()
    peer = holding(lab)
    peer.send(commands.Basic.Cancel("holder", nowait=True))
    settle(peer)
    turns = 0
    while lab.broker.undrained:
        # Two portions may be on their way.
        assert messages_in_memory() - before <= sum(counts(lab)) + 2 * SETTLED_MAX
        turns += 1
        lab.broker.drain_on()
    assert turns > 0
    assert counts(lab) == (READY, 0)


@pytest.mark.parametrize(("end", "kind"), WAYS)
def test_others_are_served_while_many_deliveries_return_and_the_order_stays(end: Ending, kind: str) -> None:
    compat, arguments = QUEUES[kind]
    lab = Lab(compat=compat)
    peer, reader, getter = holding(lab, **arguments), lab.connect(), lab.connect()
    end(peer)
    back = counts(lab)[0] - READY
    assert 0 < back <= TURN_MAX
    reader.consume("q", no_ack=True)
    getter.send(commands.Basic.Get(queue="q", no_ack=True))
    publish_one = lab.connect()
    publish_one.publish("q", b"%d" % (UNACKED + READY))
    turns = 0
    while lab.broker.undrained and lab.vhost.queues["q"].holds:
        reader.expect_nothing()
        getter.expect_nothing()
        assert sum(counts(lab)) == UNACKED + READY + 1
        assert lab.connect().declare("other", durable=True).queue == "other"
        turns += 1
        lab.broker.drain_on()
    assert turns > 1
    lab.drain()
    served = [int(one) for one in reader.bodies()]
    returned = [number for number in served if number < UNACKED]
    assert returned == sorted(returned)
    goes_to_tail = lab.vhost.queues["q"].returns_to_tail and end in (requeue, recover)
    assert goes_to_tail or served[: len(returned)] == returned
    if isinstance(getter.next()[0], commands.Basic.GetOk):
        served.append(int(getter.expect_content().body))
    assert sorted(served) == list(range(UNACKED + READY + 1))
    assert counts(lab) == (0, 0)


@pytest.mark.parametrize("is_requeued", [False, True])
@pytest.mark.parametrize("kind", QUEUES)
def test_settlements_go_on_when_their_client_leaves(kind: str, is_requeued: bool) -> None:
    compat, arguments = QUEUES[kind]
    lab = Lab(compat=compat)
    peer = holding(lab, **arguments, **DEAD)
    peer.send(commands.Basic.Nack(0, multiple=True, requeue=is_requeued))
    assert counts(lab)[1]
    peer.disconnect()
    lab.drain()
    died = [] if is_requeued else list(range(UNACKED))
    assert bodies(lab, "dead") == died
    assert counts(lab) == (READY + UNACKED - len(died), 0)
    assert sorted(bodies(lab, "q")) == list(range(len(died), UNACKED + READY))


@pytest.mark.parametrize(("end", "kind"), [*WAYS, *((reject, kind) for kind in QUEUES)])
def test_no_message_is_lost_or_doubled_if_the_process_is_killed_meanwhile(end: Ending, kind: str) -> None:
    compat, arguments = QUEUES[kind]
    lab = durable_lab(compat)
    peer = holding(lab, **arguments, **DEAD)
    end(peer)
    again = restarted(lab)
    again.drain()
    assert sorted(bodies(again, "q") + bodies(again, "dead")) == list(range(UNACKED + READY))
    assert counts(again)[1] == 0


@pytest.mark.parametrize(("end", "kind"), WAYS)
def test_a_limit_applies_when_all_are_back(end: Ending, kind: str) -> None:
    compat, arguments = QUEUES[kind]
    lab = Lab(compat=compat)
    peer = holding(lab, **arguments, **DEAD, **{"x-max-length": UNACKED + READY})
    publish(peer, range(UNACKED + READY, 2 * UNACKED + READY + 10))
    assert counts(lab) == (UNACKED + READY, UNACKED)
    end(peer)
    lab.drain()
    assert counts(lab) == (UNACKED + READY, 0)
    assert counts(lab, "dead")[0] == UNACKED + 10


@pytest.mark.parametrize("end", [reject, *RETURNS])
def test_a_queue_that_is_deleted_meanwhile_ends_the_return(end: Ending) -> None:
    lab = Lab()
    peer = holding(lab, **DEAD)
    end(peer)
    lab.connect().call(commands.Queue.Delete(queue="q"))
    lab.drain()
    assert not lab.broker.undrained
    assert "q" not in lab.vhost.queues


def test_a_connection_with_many_channels_returns_the_deliveries_of_one_after_the_other() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("q")
    publish(peer, range(100 * 60))
    holder = lab.connect()
    for number in range(2, 102):
        holder.open_channel(number)
        holder.send(commands.Basic.Qos(prefetch_count=60), channel=number)
        holder.expect(commands.Basic.QosOk, channel=number)
        holder.consume("q", tag="c", channel=number)
        holder.bodies(number)
    assert counts(lab) == (0, 6000)
    holder.disconnect()
    assert 0 < counts(lab)[0] <= TURN_MAX
    lab.drain()
    assert bodies(lab, "q") == list(range(6000))
