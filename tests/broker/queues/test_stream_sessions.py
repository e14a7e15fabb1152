"""Streams as clients see them."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands
from pamqp.common import FieldTable

from tests.peer import Lab, Peer
from tests.present import present

STREAM: FieldTable = {"x-queue-type": "stream"}


def stream_peer(lab: Lab | None = None, prefetch: int = 10) -> Peer:
    peer = (lab or Lab()).connect()
    peer.declare("s", durable=True, arguments=STREAM)
    if prefetch:
        peer.call(commands.Basic.Qos(0, prefetch))
    return peer


def offsets(peer: Peer) -> list[object]:
    return [present(content.properties.headers)["x-stream-offset"] for _, content in peer.deliveries()]


def test_a_delivery_has_its_offset_exchange_and_routing_key() -> None:
    peer = stream_peer()
    peer.call(commands.Exchange.Declare(exchange="x", exchange_type="fanout"))
    peer.call(commands.Queue.Bind(queue="s", exchange="x"))
    peer.publish("key", b"body", exchange="x", headers={"a": "b"}, content_type="text/plain")
    peer.consume("s", arguments={"x-stream-offset": "first"})
    delivery, content = peer.expect_delivery()
    assert (delivery.exchange, delivery.routing_key, delivery.redelivered) == ("x", "key", False)
    assert content.properties.headers == {"a": "b", "x-stream-offset": 0}
    assert (content.properties.content_type, content.body) == ("text/plain", b"body")


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_dead_letter_keeps_its_expiration_in_a_stream(kind: str) -> None:
    """Seen at RabbitMQ 4.0.5 and 4.3.6; other queues take it away."""
    peer = stream_peer()
    arguments: FieldTable = {"x-queue-type": kind, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "s"}
    peer.declare("q", durable=True, arguments=arguments)
    peer.publish("q", b"1", expiration="600000")
    peer.publish("q", b"2")
    for tag in (1, 2):
        peer.get("q", no_ack=False)
        peer.send(commands.Basic.Reject(tag, False))
    peer.consume("s", arguments={"x-stream-offset": "first"})
    assert [content.properties.expiration for _, content in peer.deliveries()] == ["600000", None]


def test_a_passive_declare_returns_the_exact_length() -> None:
    peer = stream_peer()
    for number in range(3):
        assert peer.declare("s", passive=True).message_count == number
        peer.publish("s")


def test_an_ack_in_any_order_makes_room() -> None:
    peer = stream_peer(prefetch=2)
    for _ in range(6):
        peer.publish("s")
    peer.consume("s", arguments={"x-stream-offset": "first"})
    assert offsets(peer) == [0, 1]
    peer.send(commands.Basic.Ack(2))
    assert offsets(peer) == [2]
    peer.send(commands.Basic.Nack(1, False, True))
    assert offsets(peer) == [3]
    peer.send(commands.Basic.Reject(3, False))
    assert offsets(peer) == [4]
    peer.send(commands.Basic.Ack(0, True))
    assert offsets(peer) == [5]
    peer.send(commands.Basic.Ack(1))
    assert peer.expect_channel_close(406) == "PRECONDITION_FAILED - unknown delivery tag 1"


def test_recover_makes_room() -> None:
    peer = stream_peer(prefetch=1)
    for _ in range(2):
        peer.publish("s")
    peer.consume("s", arguments={"x-stream-offset": "first"})
    assert offsets(peer) == [0]
    peer.call(commands.Basic.Recover(True))
    assert offsets(peer) == [1]


def test_nothing_is_delivered_to_a_full_socket_until_it_has_emptied() -> None:
    lab = Lab()
    publisher, peer = lab.connect(), stream_peer(lab, prefetch=60_000)
    peer.consume("s")
    publisher.publish("s", b"a")
    assert offsets(peer) == [0]
    peer.session.pause()
    for _ in range(1000):
        publisher.publish("s", b"x" * 1000)
    peer.expect_nothing()
    peer.session.resume(lab.now)
    received = offsets(peer)
    assert len(received) < 1000, "one batch"
    lab.drain()
    received += offsets(peer)
    assert received == list(range(1, 1001))
    assert not lab.broker.is_congested, "a stream does not slow its publishers down"


def test_a_slow_reader_that_never_empties_its_socket_is_sent_one_batch() -> None:
    lab = Lab()
    peer = stream_peer(lab, prefetch=60_000)
    for _ in range(1000):
        peer.publish("s", b"x" * 1000)
    peer.consume("s", arguments={"x-stream-offset": "first"})
    peer.session.pause()
    lab.drain()
    assert sum(map(len, peer.session.outbox.take())) < 600_000


def test_closing_a_channel_with_unacked_messages_does_not_change_the_stream() -> None:
    lab = Lab()
    peer = stream_peer(lab)
    peer.publish("s")
    peer.consume("s", arguments={"x-stream-offset": "first"})
    assert offsets(peer) == [0]
    peer.disconnect()
    queue = lab.vhost.queues["s"]
    assert (queue.unacked_count, queue.ready_count, queue.consumers, queue.readers) == (0, 1, {}, {})


def test_readers_are_cancelled_when_the_stream_is_deleted() -> None:
    lab = Lab()
    peer = stream_peer(lab)
    peer.publish("s")
    peer.consume("s", tag="reader")
    assert lab.connect().call(commands.Queue.Delete(queue="s", if_unused=True, if_empty=True)).message_count == 0
    assert peer.expect(commands.Basic.Cancel).consumer_tag == "reader"


@pytest.mark.parametrize(
    ("prefetch", "options", "code", "text"),
    [
        (0, {}, 406, "PRECONDITION_FAILED - consumer prefetch count is not set for stream queue 's' in vhost '/'"),
        (
            1,
            {"no_ack": True},
            540,
            "NOT_IMPLEMENTED - automatic acknowledgement not supported by stream queue 's' in vhost '/'",
        ),
        (
            1,
            {"arguments": {"x-stream-offset": "soon"}},
            406,
            "PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue 's' in vhost '/': "
            '{invalid_stream_offset_arg,{longstr,<<"soon">>}}',
        ),
        (
            1,
            {"arguments": {"x-priority": 1}},
            406,
            "PRECONDITION_FAILED - invalid arg 'x-priority' for queue 's' in vhost '/' "
            "of queue type rabbit_stream_queue",
        ),
    ],
)
def test_an_invalid_consumer_is_refused(prefetch: int, options: dict[str, Any], code: int, text: str) -> None:
    peer = stream_peer(prefetch=prefetch)
    peer.send(commands.Basic.Consume(queue="s", **options))
    assert (peer.expect_channel_close(code) if code == 406 else peer.expect_connection_close(code)) == text


def test_a_global_prefetch_is_refused() -> None:
    peer = stream_peer()
    peer.call(commands.Basic.Qos(0, 5, True))
    peer.send(commands.Basic.Consume(queue="s"))
    text = "NOT_IMPLEMENTED - queue 's' in vhost '/' does not support global qos"
    assert peer.expect_connection_close(540) == text


@pytest.mark.parametrize("method", [commands.Basic.Get(queue="s"), commands.Queue.Purge(queue="s")])
def test_get_and_purge_are_refused(method: Any) -> None:
    peer = stream_peer()
    peer.send(method)
    assert "not supported by stream queues queue 's' in vhost '/'" in peer.expect_connection_close(540)


def test_a_stream_must_be_named_by_the_client() -> None:
    peer = Lab().connect()
    peer.send(commands.Queue.Declare(durable=True, arguments=STREAM))
    text = "PRECONDITION_FAILED - Cannot declare a server-named queue for type rabbit_stream_queue"
    assert peer.expect_channel_close(406) == text


def test_a_publish_to_a_stream_takes_the_plain_path() -> None:
    peer = stream_peer()
    peer.publish("s")
    assert [route.is_plain for route in peer.session.routes.values()] == [True]
