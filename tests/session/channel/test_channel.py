"""Channels: opening, closing, numbers, errors, and what is ignored in between."""

from __future__ import annotations

import pytest
from pamqp import base, frame
from pamqp.commands import Basic, Channel, Confirm, Connection, Exchange, Queue, Tx

from tests.peer import Lab, Peer, blamed, publish_bytes

CLOSE = Channel.Close(200, "bye", 0, 0)
MISSING = Queue.Declare(queue="missing", passive=True)


def test_a_channel_opens_with_an_empty_id(peer: Peer) -> None:
    assert not peer.call(Channel.Open(), channel=2).channel_id


@pytest.mark.parametrize("number", [2, 1000, 65535])
def test_a_channel_may_have_any_number(lab: Lab, number: int) -> None:
    peer = lab.connect(channel_max=2)
    peer.open_channel(number)
    peer.call(Basic.Qos(), channel=number)


def test_a_channel_opened_twice_closes_the_connection(peer: Peer) -> None:
    peer.send(Channel.Open())
    assert peer.expect_connection_close(504) == "CHANNEL_ERROR - second 'channel.open' seen"


@pytest.mark.parametrize("method", [Queue.Declare(), CLOSE, Channel.CloseOk(), Basic.Publish()], ids=lambda m: m.name)
def test_a_method_on_a_channel_that_is_not_open_closes_the_connection(peer: Peer, method: base.Frame) -> None:
    peer.send(method, channel=7)
    close = peer.expect(Connection.Close, channel=0)
    assert (close.reply_code, close.reply_text) == (504, "CHANNEL_ERROR - expected 'channel.open'")
    assert blamed(close) == method.index


def test_a_channel_closes_and_its_number_can_be_used_again(peer: Peer) -> None:
    for _ in range(3):
        peer.call(CLOSE)
        peer.open_channel(1)
    peer.call(Basic.Qos())


def test_a_reopened_channel_has_no_state_of_the_former_one(peer: Peer) -> None:
    peer.declare("q")
    peer.call(Confirm.Select())
    peer.call(Basic.Qos(prefetch_count=1))
    peer.publish("q", b"1")
    assert peer.expect(Basic.Ack).delivery_tag == 1
    peer.call(CLOSE)
    peer.open_channel(1)
    peer.publish("q", b"2")
    peer.expect_nothing()
    peer.consume("q")
    assert [deliver.delivery_tag for deliver, _ in peer.deliveries()] == [1, 2]
    peer.send(Basic.Get(queue=""))
    assert peer.expect_channel_close(404) == "NOT_FOUND - no previously declared queue"


# Errors


@pytest.mark.parametrize(
    ("method", "code", "text"),
    [
        (MISSING, 404, "NOT_FOUND - no queue 'missing' in vhost '/'"),
        (Queue.Bind(queue="missing", exchange="amq.direct"), 404, "NOT_FOUND - no queue 'missing' in vhost '/'"),
        (Basic.Consume(queue="missing"), 404, "NOT_FOUND - no queue 'missing' in vhost '/'"),
        (Basic.Get(queue="missing"), 404, "NOT_FOUND - no queue 'missing' in vhost '/'"),
        (Queue.Purge(queue="missing"), 404, "NOT_FOUND - no queue 'missing' in vhost '/'"),
        (Exchange.Declare(exchange="x", passive=True), 404, "NOT_FOUND - no exchange 'x' in vhost '/'"),
        (Tx.Commit(), 406, "PRECONDITION_FAILED - channel is not transactional"),
        (Basic.Ack(42), 406, "PRECONDITION_FAILED - unknown delivery tag 42"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_an_error_carries_the_method_that_caused_it(peer: Peer, method: base.Frame, code: int, text: str) -> None:
    peer.send(method)
    close = peer.expect(Channel.Close)
    assert (close.reply_code, close.reply_text) == (code, text)
    assert blamed(close) == method.index


def test_an_error_on_one_channel_leaves_the_others_alone(peer: Peer) -> None:
    peer.open_channel(2)
    peer.send(MISSING)
    peer.expect_channel_close(404)
    peer.call(Queue.Declare(queue="q"), channel=2)


def test_a_channel_closed_by_an_error_can_be_opened_again(peer: Peer) -> None:
    for _ in range(3):
        peer.send(MISSING)
        peer.expect_channel_close(404)
        peer.open_channel(1)


def test_everything_is_ignored_between_the_brokers_close_and_close_ok(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    peer.send(MISSING)
    peer.expect(Channel.Close)
    peer.send(Queue.Delete(queue="q"), Basic.Ack(42), MISSING)
    peer.publish("q", b"lost")
    peer.publish("q", bytes(20_000), frame_size=5000)
    peer.expect_nothing()
    peer.send(Channel.CloseOk())
    peer.open_channel(1)
    assert peer.declare("q").message_count == 0


def test_a_channel_cannot_be_opened_before_its_close_is_answered(peer: Peer) -> None:
    peer.send(MISSING, Channel.Open())
    peer.expect(Channel.Close)
    assert peer.expect_connection_close(504) == "CHANNEL_ERROR - second 'channel.open' seen"


def test_a_close_that_crosses_the_brokers_is_answered(peer: Peer) -> None:
    peer.send(MISSING, CLOSE, Channel.CloseOk())
    peer.expect(Channel.Close)
    peer.expect(Channel.CloseOk)
    peer.open_channel(1)


def test_an_incomplete_publish_is_lost_with_its_channel(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    data = publish_bytes("q", b"12345", frame_size=1)
    peer.send_bytes(data[:-9])
    peer.disconnect()
    assert lab.vhost.queues["q"].ready_count == 0


# Limits


def test_one_channel_more_than_negotiated_closes_the_connection(lab: Lab) -> None:
    peer = lab.connect(channel_max=2)
    peer.open_channel(2)
    peer.send(Channel.Open(), channel=3)
    close = peer.expect(Connection.Close, channel=0)
    text = "NOT_ALLOWED - number of channels opened (2) has reached the negotiated channel_max (2)"
    assert (close.reply_code, close.reply_text, close.class_id, close.method_id) == (530, text, 0, 0)


def test_a_closed_channel_does_not_count(lab: Lab) -> None:
    peer = lab.connect(channel_max=1)
    peer.call(CLOSE)
    peer.open_channel(2)


def test_the_channel_limit_of_a_user_covers_all_connections(lab: Lab) -> None:
    lab.broker.users.set_limit(lab.broker.users["guest"], "max-channels", 2)
    lab.connect()
    peer = lab.connect()
    peer.send(Channel.Open(), channel=2)
    text = peer.expect_connection_close(530)
    assert text == (
        "NOT_ALLOWED - number of channels opened for user 'guest' has reached the maximum allowed user limit of 2"
    )
    lab.connect()


# Closing gives back


@pytest.mark.parametrize("is_error", [False, True])
def test_a_closed_channel_requeues_its_unsettled_messages(lab: Lab, peer: Peer, is_error: bool) -> None:
    peer.declare("q")
    for body in (b"1", b"2", b"3", b"4"):
        peer.publish("q", body)
    for _ in range(3):
        assert peer.get("q", no_ack=False) is not None
    peer.send(Basic.Ack(2))
    if is_error:
        peer.send(Basic.Ack(99))
        peer.expect_channel_close(406)
    else:
        peer.call(CLOSE)
    peer.open_channel(1)
    got = [peer.get("q") for _ in range(3)]
    assert [(answer.redelivered, content.body) for answer, content in filter(None, got)] == [
        (True, b"1"),
        (True, b"3"),
        (False, b"4"),
    ]


def test_a_closed_channel_stops_its_consumers(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    peer.open_channel(2)
    peer.consume("q", channel=2)
    peer.call(CLOSE, channel=2)
    peer.publish("q", b"1")
    peer.expect_nothing()
    assert lab.vhost.queues["q"].consumers == {}
    assert lab.vhost.queues["q"].ready_count == 1


def test_messages_requeued_by_one_channel_go_to_another(peer: Peer) -> None:
    peer.declare("q")
    peer.open_channel(2)
    peer.consume("q", "one", channel=1)
    peer.publish("q", b"1")
    assert peer.bodies() == [b"1"]
    peer.consume("q", "two", channel=2)
    peer.send(CLOSE)
    deliver, content = peer.expect_delivery(channel=2)
    assert (deliver.redelivered, content.body) == (True, b"1")
    peer.expect(Channel.CloseOk)


def test_a_method_with_nowait_is_not_answered(peer: Peer) -> None:
    peer.send(
        Queue.Declare(queue="q", nowait=True),
        Exchange.Declare(exchange="x", nowait=True),
        Queue.Bind(queue="q", exchange="x", nowait=True),
        Exchange.Bind(destination="x", source="amq.fanout", nowait=True),
        Exchange.Unbind(destination="x", source="amq.fanout", nowait=True),
        Confirm.Select(nowait=True),
        Basic.Consume(queue="q", consumer_tag="c", nowait=True),
        Basic.Cancel("c", nowait=True),
        Queue.Purge(queue="q", nowait=True),
        Queue.Delete(queue="q", nowait=True),
        Exchange.Delete(exchange="x", nowait=True),
    )
    peer.expect_nothing()


def test_an_error_is_sent_despite_nowait(peer: Peer) -> None:
    peer.send(Queue.Declare(queue="missing", passive=True, nowait=True))
    peer.expect_channel_close(404)


def test_a_ticket_is_ignored(peer: Peer) -> None:
    data = bytearray(frame.marshal(Queue.Declare(queue="q"), 1))
    data[11:13] = b"\x12\x67"
    peer.send_bytes(bytes(data))
    peer.expect(Queue.DeclareOk)


def test_the_channel_limit_of_the_node_counts_all_connections() -> None:
    lab = Lab(channel_max_per_node=2)
    first = lab.connect()
    peer = lab.connect()
    peer.send(Channel.Open(), channel=2)
    text = peer.expect_connection_close(530)
    assert text == (
        "NOT_ALLOWED - number of channels opened on node 'rabbit@localhost' has reached the maximum allowed limit of 2"
    )
    first.call(CLOSE)
    lab.connect()
