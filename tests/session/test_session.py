"""Bytes in and bytes out: however a read is cut, the session does the same; and how a session ends."""

from __future__ import annotations

import pytest
from pamqp import commands, frame
from pamqp.commands import Basic, Connection, Queue

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
    return b"".join(peer.session.take_output()), lab


@pytest.mark.parametrize("step", [1, 2, 3, 7, 8, 9, 64, 1000])
def test_it_does_not_matter_how_the_bytes_of_a_whole_life_are_cut(step: int) -> None:
    whole, _ = live(len(LIFE))
    cut, lab = live(step)
    assert cut == whole
    assert lab.vhost.queues["q"].ready_count == 2
    assert not lab.broker.connections


def test_methods_in_one_read_are_answered_in_their_order(peer: Peer) -> None:
    peer.send(Basic.Qos(prefetch_count=1), commands.Channel.Flow(True), Queue.Declare(queue="q"), Basic.Get(queue="q"))
    for answer in (Basic.QosOk, commands.Channel.FlowOk, Queue.DeclareOk, Basic.GetEmpty):
        peer.expect(answer)


def test_methods_before_an_error_are_answered_and_those_behind_it_are_not(peer: Peer) -> None:
    peer.send(Basic.Qos(prefetch_count=1), Queue.Declare(queue="missing", passive=True), Basic.Qos(prefetch_count=2))
    peer.expect(Basic.QosOk)
    peer.expect_channel_close(404)
    peer.expect_nothing()


def test_a_session_that_has_something_to_say_is_on_the_list_of_dirty_ones_once(lab: Lab, peer: Peer) -> None:
    lab.dirty.clear()
    peer.send(Basic.Qos(), Basic.Qos())
    assert lab.dirty == [peer.session]
    peer.session.take_output()
    lab.dirty.clear()
    peer.send(Basic.Qos())
    assert lab.dirty == [peer.session]


def test_a_session_that_is_over_is_dirty_though_it_has_nothing_to_say(lab: Lab, peer: Peer) -> None:
    lab.dirty.clear()
    peer.disconnect()
    assert lab.dirty == [peer.session]


# Incomplete frames


def test_bytes_before_a_login_stay_bounded(lab: Lab) -> None:
    peer = lab.peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    peer.expect(Connection.Start, channel=0)
    peer.send_bytes(b"\x01\x00\x00" + (8192).to_bytes(4, "big"))
    for _ in range(100):
        peer.send_bytes(bytes(100))
        assert sum(map(len, peer.session._pending)) <= 8192 + 8
    # The frame was whole, and none: nothing more is kept.
    assert not peer.session._pending


def test_a_frame_too_large_for_a_client_without_login_is_not_awaited(lab: Lab) -> None:
    peer = lab.peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    peer.expect(Connection.Start, channel=0)
    peer.send_bytes(b"\x01\x00\x00" + (100_000).to_bytes(4, "big") + b"\x00")
    peer.send_bytes(bytes(100))
    assert not peer.session._pending
    lab.advance(3000)
    assert peer.is_dropped
    peer.expect_nothing()


def test_the_rest_of_a_read_waits_for_its_end_only(peer: Peer) -> None:
    whole = frame.marshal(Basic.Qos(), 1)
    peer.send_bytes(whole + whole[:5])
    assert peer.session._pending == [whole[:5]]
    peer.expect(Basic.QosOk)
    peer.send_bytes(whole[5:])
    assert not peer.session._pending
    peer.expect(Basic.QosOk)


def test_a_shell_may_take_the_rest_of_a_read_and_put_the_next_one_behind_it(peer: Peer) -> None:
    whole = frame.marshal(Basic.Qos(), 1)
    peer.send_bytes(whole + whole[:5])
    peer.expect(Basic.QosOk)
    rest = peer.session.take_rest()
    assert rest == whole[:5]
    assert not peer.session.take_rest()
    peer.send_bytes(rest + whole[5:])
    peer.expect(Basic.QosOk)


def test_a_rest_of_several_reads_stays_in_the_session(peer: Peer) -> None:
    whole = frame.marshal(Basic.Qos(), 1)
    for octet in whole[:-1]:
        peer.send_bytes(bytes([octet]))
    assert not peer.session.take_rest()
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


@pytest.mark.parametrize("end", ["disconnect", "close", "error", "force", "silence", "bad frame"])
def test_everything_unsettled_goes_back_however_a_connection_ends(lab: Lab, end: str) -> None:
    feeder, peer = lab.connect(), lab.peer()
    peer.open(heartbeat=1 if end == "silence" else 0)
    peer.open_channel(1)
    peer.open_channel(2)
    feeder.declare("q")
    for body in (b"1", b"2", b"3", b"4"):
        feeder.publish("q", body)
    peer.call(Basic.Qos(prefetch_count=2), channel=1)
    peer.consume("q")
    assert peer.bodies() == [b"1", b"2"]
    peer.send(Basic.Get(queue="q"), channel=2)
    peer.expect(Basic.GetOk, channel=2)
    peer.expect_content(channel=2)
    peer.send(Basic.Ack(1))
    assert peer.bodies() == [b"4"]
    match end:
        case "disconnect":
            peer.disconnect()
        case "close":
            peer.call(Connection.Close(200, "bye", 0, 0), channel=0)
        case "error":
            peer.send(commands.Channel.Open())
        case "force":
            peer.session.force_close("Closed via management plugin", lab.now)
        case "silence":
            lab.advance(4000)
            assert peer.is_dropped
        case "bad frame":
            peer.send_bytes(b"\x01\x00\x01\x00\x00\x00\x00\x00")
    queue = lab.vhost.queues["q"]
    assert (queue.ready_count, queue.unacked_count, queue.consumers) == (3, 0, [])
    got = [feeder.get("q") for _ in range(3)]
    assert [(answer.redelivered, content.body) for answer, content in filter(None, got)] == [
        (True, b"2"),
        (True, b"3"),
        (True, b"4"),
    ]


@pytest.mark.parametrize("end", ["disconnect", "close", "error", "force"])
def test_what_lives_with_a_connection_goes_with_it(lab: Lab, end: str) -> None:
    peer = lab.connect()
    peer.declare("mine", exclusive=True)
    peer.declare("shared", auto_delete=True)
    peer.declare("kept")
    peer.consume("mine", "a")
    peer.consume("shared", "b")
    peer.consume("kept", "c")
    match end:
        case "disconnect":
            peer.disconnect()
        case "close":
            peer.call(Connection.Close(200, "bye", 0, 0), channel=0)
        case "error":
            peer.send(commands.Channel.Open())
        case "force":
            peer.session.force_close("shutdown", lab.now)
    assert list(lab.vhost.queues) == ["kept"]
    assert not lab.vhost.queues["kept"].consumers
    assert not lab.vhost.connections


def test_an_exclusive_queue_is_gone_before_its_client_hears_that_the_connection_is(lab: Lab, peer: Peer) -> None:
    peer.declare("mine", exclusive=True)
    peer.send(Connection.Close(200, "bye", 0, 0), channel=0)
    assert "mine" not in lab.vhost.queues
    peer.expect(Connection.CloseOk, channel=0)


def test_messages_of_a_lost_client_go_to_the_next_one_at_once(lab: Lab, peer: Peer, other: Peer) -> None:
    peer.declare("q")
    peer.consume("q")
    other.publish("q", b"1")
    other.publish("q", b"2")
    other.consume("q")
    peer.disconnect()
    assert [(deliver.redelivered, content.body) for deliver, content in other.deliveries()] == [
        (True, b"1"),
        (True, b"2"),
    ]


def test_consumers_of_a_lost_client_get_nothing_of_what_it_gives_back(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    peer.open_channel(2)
    peer.consume("q", channel=1)
    peer.publish("q", b"1")
    peer.deliveries()
    peer.consume("q", channel=2)
    peer.disconnect()
    peer.expect_nothing()
    assert lab.vhost.queues["q"].ready_count == 1


def test_a_lost_connection_may_be_lost_again(lab: Lab, peer: Peer) -> None:
    peer.declare("mine", exclusive=True)
    peer.send_bytes(b"half")
    for _ in range(2):
        peer.disconnect()
    assert not peer.session._pending
    peer.send(Queue.Declare(queue="q"))
    peer.expect_nothing()
    assert not lab.vhost.queues


def test_one_connections_fault_never_touches_another(lab: Lab, peer: Peer, other: Peer) -> None:
    other.declare("q")
    other.consume("q")
    peer.publish("q", b"before")
    peer.send_bytes(b"\x09\x00\x01\x00\x00\x00\x00\xce")
    peer.expect_connection_close(501)
    other.publish("q", b"after")
    assert other.bodies() == [b"before", b"after"]
    assert not other.is_dropped


# The broker closes


def test_the_broker_closes_by_force_with_320(lab: Lab, peer: Peer) -> None:
    peer.session.force_close("broker forced connection closure with reason 'shutdown'", lab.now)
    close = peer.expect(Connection.Close, channel=0)
    text = "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"
    assert (close.reply_code, close.reply_text, close.class_id, close.method_id) == (320, text, 0, 0)
    peer.send(Connection.CloseOk(), channel=0)
    assert peer.is_dropped


def test_a_client_without_an_open_connection_is_dropped_by_force(lab: Lab) -> None:
    peer = lab.peer()
    peer.session.force_close("shutdown", lab.now)
    assert peer.is_dropped
    peer.expect_nothing()


def test_closing_by_force_twice_is_closing_once(lab: Lab, peer: Peer) -> None:
    peer.session.force_close("one", lab.now)
    peer.session.force_close("two", lab.now)
    assert peer.expect_connection_close(320) == "CONNECTION_FORCED - one"
    peer.expect_nothing()


def test_everything_is_ignored_between_the_brokers_close_and_close_ok(lab: Lab, peer: Peer) -> None:
    peer.send(commands.Channel.Open())
    peer.expect(Connection.Close, channel=0)
    peer.send(Queue.Declare(queue="q"))
    peer.publish("q", b"lost")
    peer.send(commands.Channel.Open(), channel=2)
    peer.send_bytes(b"\x08\x00\x00\x00\x00\x00\x00\xce")
    peer.send(Connection.CloseOk(), channel=1)
    peer.expect_nothing()
    assert not lab.vhost.queues
    assert not peer.is_dropped
    peer.send(Connection.CloseOk(), channel=0)
    assert peer.is_dropped


def test_a_close_that_crosses_the_brokers_is_answered(peer: Peer) -> None:
    peer.send(commands.Channel.Open())
    peer.expect(Connection.Close, channel=0)
    peer.send(Connection.Close(200, "crossing", 0, 0), channel=0)
    peer.expect(Connection.CloseOk, channel=0)
    peer.send(Connection.CloseOk(), channel=0)
    assert peer.is_dropped


def test_a_client_that_does_not_answer_the_close_is_dropped_after_thirty_seconds(lab: Lab, peer: Peer) -> None:
    peer.send(commands.Channel.Open())
    peer.expect(Connection.Close, channel=0)
    lab.advance(29_999)
    assert not peer.is_dropped
    lab.advance(1)
    assert peer.is_dropped
    peer.expect_nothing()


def test_a_frame_that_cannot_be_read_while_closing_drops_the_socket(peer: Peer) -> None:
    peer.send(commands.Channel.Open())
    peer.expect(Connection.Close, channel=0)
    peer.send_bytes(b"\x01\x00\x01\x00\x00\x00\x00\x00")
    assert peer.is_dropped
    peer.expect_nothing()
