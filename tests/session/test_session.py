"""How a session ends, and what it gives back."""

from __future__ import annotations

import pytest
from pamqp import commands
from pamqp.commands import Basic, Connection, Queue

from tests.peer import Lab, Peer


def test_a_session_with_output_is_on_the_dirty_list_once(lab: Lab, peer: Peer) -> None:
    lab.dirty.clear()
    peer.send(Basic.Qos(), Basic.Qos())
    assert lab.dirty == [peer.session]
    peer.session.outbox.take()
    lab.dirty.clear()
    peer.send(Basic.Qos())
    assert lab.dirty == [peer.session]


def test_an_ended_session_is_dirty_without_output(lab: Lab, peer: Peer) -> None:
    lab.dirty.clear()
    peer.disconnect()
    assert lab.dirty == [peer.session]


# Incomplete frames


@pytest.mark.parametrize("end", ["disconnect", "close", "error", "force", "silence", "bad frame"])
def test_unsettled_messages_are_requeued_however_a_connection_ends(lab: Lab, end: str) -> None:
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
    assert (queue.ready_count, queue.unacked_count, queue.consumers) == (3, 0, {})
    got = [feeder.get("q") for _ in range(3)]
    assert [(answer.redelivered, content.body) for answer, content in filter(None, got)] == [
        (True, b"2"),
        (True, b"3"),
        (True, b"4"),
    ]


@pytest.mark.parametrize("end", ["disconnect", "close", "error", "force"])
def test_exclusive_queues_and_consumers_end_with_their_connection(lab: Lab, end: str) -> None:
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


def test_an_exclusive_queue_is_deleted_before_close_ok(lab: Lab, peer: Peer) -> None:
    peer.declare("mine", exclusive=True)
    peer.send(Connection.Close(200, "bye", 0, 0), channel=0)
    assert "mine" not in lab.vhost.queues
    peer.expect(Connection.CloseOk, channel=0)


def test_messages_of_a_lost_client_go_to_the_next_consumer_at_once(lab: Lab, peer: Peer, other: Peer) -> None:
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


def test_requeued_messages_of_a_lost_client_skip_its_own_consumers(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    peer.open_channel(2)
    peer.consume("q", channel=1)
    peer.publish("q", b"1")
    peer.deliveries()
    peer.consume("q", channel=2)
    peer.disconnect()
    peer.expect_nothing()
    assert lab.vhost.queues["q"].ready_count == 1


def test_a_second_loss_of_a_connection_has_no_effect(lab: Lab, peer: Peer) -> None:
    peer.declare("mine", exclusive=True)
    peer.send_bytes(b"half")
    for _ in range(2):
        peer.disconnect()
    assert not peer.session.reader._pending
    peer.send(Queue.Declare(queue="q"))
    peer.expect_nothing()
    assert not lab.vhost.queues


def test_an_error_of_one_connection_does_not_affect_another(lab: Lab, peer: Peer, other: Peer) -> None:
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


def test_a_second_forced_close_has_no_effect(lab: Lab, peer: Peer) -> None:
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
