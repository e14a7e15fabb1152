"""queue.delete and exchange.delete of objects with more bindings than one batch removes."""

from __future__ import annotations

import pytest
from pamqp import base, frame
from pamqp.commands import Basic, Channel, Exchange, Queue

from amqp_broker.broker.broker import PORTION_STEPS
from tests.memory_journal import MemoryJournal
from tests.peer import Lab, Peer

COUNT = 2 * PORTION_STEPS


def declare(lab: Lab, peer: Peer, kind: str = "direct", *, durable: bool = False) -> None:
    """Declare a queue and an exchange with many bindings."""
    peer.declare("q", durable=durable)
    peer.call(Exchange.Declare(exchange="x", exchange_type=kind, durable=durable))
    vhost = lab.vhost
    for number in range(COUNT):
        vhost.bind(vhost.exchanges["x"], vhost.queues["q"], f"k{number}", {})


@pytest.mark.parametrize(
    ("method", "answer", "again"),
    [
        (Queue.Delete(queue="q"), Queue.DeleteOk, Queue.Declare(queue="q", passive=True)),
        (Exchange.Delete(exchange="x"), Exchange.DeleteOk, Exchange.Declare(exchange="x", passive=True)),
    ],
    ids=["queue", "exchange"],
)
def test_the_reply_comes_after_the_last_step_and_nothing_else_is_read_before(
    lab: Lab, peer: Peer, other: Peer, method: base.Frame, answer: type[base.Frame], again: base.Frame
) -> None:
    declare(lab, peer)
    peer.send(method, Queue.Declare(queue="next"), again)
    peer.send(Basic.Qos(prefetch_count=1))
    assert (peer.session.blocking.is_blocked, "next" in lab.vhost.queues) == (True, False)
    peer.expect_nothing()
    # Others are served, and see that the object is gone.
    other.declare("others")
    other.send(again)
    other.expect_channel_close(404)
    lab.drain()
    peer.expect(answer)
    assert peer.expect(Queue.DeclareOk).queue == "next"
    peer.expect_channel_close(404)
    assert not peer.session.blocking.is_blocked


def test_a_message_that_follows_the_deletion_of_a_queue_is_unroutable(lab: Lab, peer: Peer) -> None:
    declare(lab, peer)
    peer.send(Queue.Delete(queue="q", nowait=True))
    peer.publish(f"k{COUNT - 1}", exchange="x", mandatory=True)
    lab.drain()
    peer.expect(Basic.Return)
    peer.expect_content()


def test_a_partial_frame_after_the_method_waits_for_its_rest(lab: Lab, peer: Peer) -> None:
    declare(lab, peer)
    data = frame.marshal(Queue.Declare(queue="next"), 1)
    peer.send_bytes(frame.marshal(Queue.Delete(queue="q"), 1) + data[:9])
    assert peer.session.reader.take_partial_frame() == b""
    lab.drain()
    peer.expect(Queue.DeleteOk)
    peer.send_bytes(data[9:])
    assert peer.expect(Queue.DeclareOk).queue == "next"


def test_consumers_are_cancelled_after_the_reply(lab: Lab, peer: Peer) -> None:
    declare(lab, peer)
    peer.consume("q")
    peer.send(Queue.Delete(queue="q"))
    lab.drain()
    peer.expect(Queue.DeleteOk)
    assert peer.expect(Basic.Cancel).consumer_tag == "c"


def test_a_connection_that_is_lost_meanwhile_leaves_nothing(lab: Lab, peer: Peer) -> None:
    declare(lab, peer)
    queue = lab.vhost.queues["q"]
    peer.send(Queue.Delete(queue="q"))
    peer.disconnect()
    lab.drain()
    assert (queue.incoming, lab.broker.undrained, lab.broker.connections) == ({}, [], set())


def test_a_connection_that_is_closed_meanwhile_gets_no_reply(lab: Lab, peer: Peer) -> None:
    declare(lab, peer)
    peer.send(Queue.Delete(queue="q"), Queue.Declare(queue="next"))
    peer.session.force_close("bye", lab.now)
    peer.expect_connection_close(320)
    lab.drain()
    assert "next" not in lab.vhost.queues


def test_a_channel_that_is_closed_meanwhile_gets_no_reply(lab: Lab, peer: Peer, other: Peer) -> None:
    other.declare("timed", arguments={"x-consumer-timeout": 60_000})
    declare(lab, peer)
    peer.consume("timed")
    other.publish("timed", b"m")
    peer.expect_delivery()
    peer.send(Queue.Delete(queue="q"))
    lab.advance(200_000)
    close = peer.expect(Channel.Close)
    assert close.reply_code == 406
    peer.send(Channel.CloseOk())
    lab.drain()
    peer.expect_nothing()
    peer.open_channel(1)


def test_an_alarm_that_ends_meanwhile_lets_nothing_pass(lab: Lab, peer: Peer) -> None:
    declare(lab, peer)
    peer.send(Queue.Delete(queue="q"), Queue.Declare(queue="next"))
    lab.broker.set_alarm("memory", True)
    peer.session.blocking.block_by_alarm()
    lab.broker.set_alarm("memory", False)
    assert (peer.session.blocking.is_blocked, "next" in lab.vhost.queues) == (True, False)
    lab.drain()
    assert "next" in lab.vhost.queues


def test_the_reply_is_held_until_the_last_step_is_safe() -> None:
    lab = Lab()
    journal = lab.broker.journal = MemoryJournal()
    peer = lab.connect()
    declare(lab, peer, durable=True)
    journal.commit()
    lab.broker.on_committed()
    assert not peer.session.outbox.held_until
    peer.send(Queue.Delete(queue="q"))
    journal.commit()
    lab.broker.on_committed()
    lab.drain()
    assert peer.session.outbox.held_until == journal.batch
    journal.commit()
    lab.broker.on_committed()
    assert not peer.session.outbox.held_until
    assert not [key for key in journal.disk.definitions if key[0] == "binding"]
