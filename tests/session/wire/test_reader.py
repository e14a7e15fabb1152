"""The reader: however reads cut the bytes, the session does the same."""

from __future__ import annotations

import pytest
from pamqp import commands, frame
from pamqp.commands import Basic, Connection, Queue

from amqp_broker.amqp.message import Message
from tests.peer import Lab, Peer, publish_bytes

HANDSHAKE = (
    b"AMQP\x00\x00\x09\x01"
    + frame.marshal(Connection.StartOk({}, "PLAIN", "\0guest\0guest"), 0)
    + frame.marshal(Connection.TuneOk(2047, 131072, 0), 0)
    + frame.marshal(Connection.Open("/"), 0)
    + frame.marshal(commands.Channel.Open(), 1)
)
BODY = bytes(range(256)) * 4
LIFE = (
    HANDSHAKE
    + frame.marshal(Queue.Declare(queue="q", arguments={"x-unknown": [1, "x", {"deep": None}]}), 1)
    + publish_bytes("q", b"")
    + publish_bytes("q", b"1", headers={"n": 1}, delivery_mode=2)
    + publish_bytes("q", BODY, frame_size=100)
    + publish_bytes("q", bytes(10_000))
    + publish_bytes("missing", b"back", mandatory=True)
    + frame.marshal(Basic.Consume(queue="q", consumer_tag="c"), 1)
    + frame.marshal(Basic.Ack(2), 1)
    + frame.marshal(Basic.Nack(3, requeue=True), 1)
    + frame.marshal(Basic.Reject(1, requeue=False), 1)
    + frame.marshal(Queue.Declare(queue="q", passive=True), 1)
    + frame.marshal(Connection.Close(200, "bye", 0, 0), 0)
)


def live(step: int) -> tuple[bytes, Lab]:
    """Feed a whole life in reads of `step` octets; returns what the client got."""
    lab = Lab()
    peer = lab.peer()
    for start in range(0, len(LIFE), step):
        peer.send_bytes(LIFE[start : start + step])
    return b"".join(peer.session.outbox.take()), lab


@pytest.mark.parametrize("step", [1, 2, 3, 7, 8, 9, 64, 1000])
def test_any_division_of_the_bytes_has_the_same_result(step: int) -> None:
    whole, _ = live(len(LIFE))
    cut, lab = live(step)
    assert cut == whole
    assert lab.vhost.queues["q"].ready_count == 2
    assert not lab.broker.connections


RUN = publish_bytes("q", b"1") * 3


@pytest.mark.parametrize("step", [1, 30, 60, 61, len(RUN), 1000])
def test_a_run_of_equal_publishes_is_published_one_by_one(step: int) -> None:
    data = publish_bytes("q", b"0") + RUN + publish_bytes("q", b"2") + publish_bytes("q", b"33") + RUN + RUN[:20]
    lab = Lab()
    peer = lab.connect()
    peer.declare("q")
    for start in range(0, len(data), step):
        peer.send_bytes(data[start : start + step])
    assert b"".join(message.body for message in lab.vhost.queues["q"].messages()) == b"0111233111"


@pytest.mark.interpreted
def test_a_run_of_publishes_ends_with_its_queue(peer: Peer, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    peer.declare("q")
    queue = lab.vhost.queues["q"]
    push, pushed = queue.push, []

    def push_and_delete(message: Message) -> None:
        pushed.append(message)
        push(message)
        if len(pushed) == 3:
            lab.vhost.remove_queue(queue)

    monkeypatch.setattr(queue, "push", push_and_delete)
    peer.send_bytes(RUN * 3)
    assert queue.is_deleted
    assert len(pushed) == 3


def test_a_bad_frame_within_a_run_of_publishes_is_found(peer: Peer, lab: Lab) -> None:
    peer.declare("q")
    one = publish_bytes("q", b"1")
    peer.send_bytes(one * 5 + one[:-1] + b"\0" + one)
    assert "invalid_frame_end_marker,0" in peer.expect_connection_close(501)
    assert lab.vhost.queues["q"].ready_count == 5


def test_methods_in_one_read_are_answered_in_their_order(peer: Peer) -> None:
    peer.send(Basic.Qos(prefetch_count=1), commands.Channel.Flow(True), Queue.Declare(queue="q"), Basic.Get(queue="q"))
    for answer in (Basic.QosOk, commands.Channel.FlowOk, Queue.DeclareOk, Basic.GetEmpty):
        peer.expect(answer)


def test_methods_before_an_error_are_answered_and_later_ones_ignored(peer: Peer) -> None:
    peer.send(Basic.Qos(prefetch_count=1), Queue.Declare(queue="missing", passive=True), Basic.Qos(prefetch_count=2))
    peer.expect(Basic.QosOk)
    peer.expect_channel_close(404)
    peer.expect_nothing()


def test_bytes_before_a_login_stay_bounded(lab: Lab) -> None:
    peer = lab.peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    peer.expect(Connection.Start, channel=0)
    peer.send_bytes(b"\x01\x00\x00" + (8192).to_bytes(4, "big"))
    for _ in range(100):
        peer.send_bytes(bytes(100))
        assert sum(map(len, peer.session.reader._pending)) <= 8192 + 8
    # The frame was whole, and none: nothing more is kept.
    assert not peer.session.reader._pending


def test_an_oversized_frame_before_the_login_is_refused_at_once(lab: Lab) -> None:
    peer = lab.peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    peer.expect(Connection.Start, channel=0)
    peer.send_bytes(b"\x01\x00\x00" + (100_000).to_bytes(4, "big") + b"\x00")
    peer.send_bytes(bytes(100))
    assert not peer.session.reader._pending
    lab.advance(3000)
    assert peer.is_dropped
    peer.expect_nothing()


def test_a_partial_frame_waits_only_for_its_end(peer: Peer) -> None:
    whole = frame.marshal(Basic.Qos(), 1)
    peer.send_bytes(whole + whole[:5])
    assert peer.session.reader._pending == [whole[:5]]
    peer.expect(Basic.QosOk)
    peer.send_bytes(whole[5:])
    assert not peer.session.reader._pending
    peer.expect(Basic.QosOk)


def test_a_partial_frame_can_be_taken_out_and_continued(peer: Peer) -> None:
    whole = frame.marshal(Basic.Qos(), 1)
    peer.send_bytes(whole + whole[:5])
    peer.expect(Basic.QosOk)
    rest = peer.session.reader.take_partial_frame()
    assert rest == whole[:5]
    assert not peer.session.reader.take_partial_frame()
    peer.send_bytes(rest + whole[5:])
    peer.expect(Basic.QosOk)


def test_a_partial_frame_of_several_reads_stays_in_the_reader(peer: Peer) -> None:
    whole = frame.marshal(Basic.Qos(), 1)
    for octet in whole[:-1]:
        peer.send_bytes(bytes([octet]))
    assert not peer.session.reader.take_partial_frame()
    peer.send_bytes(whole[-1:])
    peer.expect(Basic.QosOk)


def test_a_large_frame_may_come_in_many_small_reads(peer: Peer) -> None:
    peer.declare("q")
    data = publish_bytes("q", bytes(100_000))
    for start in range(0, len(data), 3):
        peer.send_bytes(data[start : start + 3])
    got = peer.get("q")
    assert got is not None
    assert len(got[1].body) == 100_000


# Ends
