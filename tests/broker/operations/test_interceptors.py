"""Interceptors of published messages, as seen in RabbitMQ 4.0.5 and 4.3.6."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pamqp import commands

from amqp_broker.amqp.message import Properties
from amqp_broker.broker.operations.checked_publish import publish
from tests.peer import Lab, Peer
from tests.present import present

NODE = "rabbit@localhost"


def connect(time: str = "", node: str = "", **settings: Any) -> Peer:
    return Lab(publish_time_header=time, publish_node_header=node, **settings).connect()


def echo(peer: Peer, **properties: Any) -> commands.Basic.Properties:
    """Publish a message to a queue, and return its properties as they come back."""
    peer.declare("q", durable=True)
    peer.publish("q", b"m", **properties)
    return present(peer.get("q"))[1].properties


def times(peer: Peer, **properties: Any) -> tuple[Any, Any]:
    """Return the header and the property with the time of a publish."""
    found = echo(peer, **properties)
    return present(found.headers).get("timestamp_in_ms"), found.timestamp


def bind(peer: Peer, node: str) -> None:
    match = commands.Queue.Bind(queue="q", exchange="x", arguments={"x-match": "all-with-x", "x-routed-by": node})
    peer.call(match)


def at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def test_a_message_has_the_time_and_the_node_of_its_publish() -> None:
    peer = connect("keep", "keep")
    now = peer.lab.now
    found = echo(peer)
    assert found.headers == {"timestamp_in_ms": now, "x-routed-by": NODE}
    assert found.timestamp == at(now // 1000)


def test_headers_and_properties_of_the_publisher_stay() -> None:
    found = echo(connect(node="overwrite"), headers={"z": 1, "a": "x"}, message_id="m", delivery_mode=2)
    assert list(present(found.headers).items()) == [("a", "x"), ("x-routed-by", NODE), ("z", 1)]
    assert (found.message_id, found.delivery_mode, found.timestamp) == ("m", 2, None)


@pytest.mark.parametrize(
    ("mode", "is_replaced"),
    [("keep", False), ("overwrite", True)],
)
def test_headers_of_the_publisher_are_kept_or_replaced(mode: str, is_replaced: bool) -> None:
    peer = connect(mode, mode)
    now = peer.lab.now
    given = {"timestamp_in_ms": 5, "x-routed-by": "me"}
    found = echo(peer, headers=given, timestamp=at(7))
    noted = {"timestamp_in_ms": now, "x-routed-by": NODE}
    assert found.headers == (noted if is_replaced else given)
    assert found.timestamp == at(now // 1000 if is_replaced else 7)


def test_header_and_property_are_kept_each_by_itself() -> None:
    peer = connect("keep")
    now = peer.lab.now
    assert times(peer, timestamp=at(7)) == (now, at(7))
    assert times(peer, headers={"timestamp_in_ms": 5}) == (5, at(now // 1000))


def test_bindings_that_ask_for_it_see_the_node() -> None:
    peer = connect(node="overwrite")
    peer.declare("q")
    peer.call(commands.Exchange.Declare(exchange="x", exchange_type="headers"))
    bind(peer, "me")
    peer.publish("", b"m", exchange="x", headers={"x-routed-by": "me"})
    assert peer.get("q") is None
    bind(peer, NODE)
    peer.publish("", b"m", exchange="x")
    assert peer.get("q") is not None


def test_messages_stay_as_they_are_without_interceptors() -> None:
    assert echo(connect()).headers is None


def test_a_message_that_is_published_over_http_is_noted_too() -> None:
    lab = Lab(publish_node_header="overwrite")
    peer = lab.connect()
    peer.declare("q")
    publish(lab.vhost, peer.session, "", "q", Properties(), b"m")
    assert present(peer.get("q"))[1].properties.headers == {"x-routed-by": NODE}


def read(peer: Peer) -> commands.Basic.Properties:
    """Return the properties of the first message of the stream `s`."""
    peer.call(commands.Basic.Qos(prefetch_count=1))
    peer.send(commands.Basic.Consume(queue="s", arguments={"x-stream-offset": "first"}))
    peer.expect(commands.Basic.ConsumeOk)
    return peer.expect_delivery()[1].properties


@pytest.mark.parametrize(
    ("mode", "given"),
    [("keep", None), ("keep", at(7)), ("overwrite", None), ("overwrite", at(7))],
)
@pytest.mark.parametrize("is_observed", [False, True])
def test_a_stream_has_the_timestamp_of_the_publisher(mode: str, given: datetime | None, is_observed: bool) -> None:
    """Seen in RabbitMQ 4.0.5 and 4.3.6: only the header has the time that the interceptor has noted."""
    peer = connect(mode, event_log=is_observed)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    peer.publish("s", b"m", timestamp=given)
    found = read(peer)
    assert present(found.headers)["timestamp_in_ms"] == peer.lab.now
    assert found.timestamp == given


# Deliveries


def sent(properties: commands.Basic.Properties) -> object:
    return (properties.headers or {}).get("x-opt-rabbitmq-sent-time")


@pytest.mark.parametrize("arguments", [{}, {"x-queue-type": "quorum", "x-consumer-timeout": 60_000}])
def test_each_delivery_has_its_own_time(arguments: dict[str, Any]) -> None:
    peer = Lab(delivery_time_header=True).connect()
    peer.declare("q", durable=True, arguments=arguments)
    peer.publish("q", b"m", headers={"z": 1, "x-opt-rabbitmq-sent-time": 5})
    peer.send(commands.Basic.Consume(queue="q"))
    peer.expect(commands.Basic.ConsumeOk)
    for tag in (1, 2):
        delivered = peer.expect_delivery()[1].properties
        assert sent(delivered) == peer.lab.now
        assert list(present(delivered.headers))[-2:] == ["x-opt-rabbitmq-sent-time", "z"]
        peer.lab.advance(10)
        peer.send(commands.Basic.Reject(tag, requeue=True))


def test_a_dead_letter_has_no_time_of_its_former_delivery() -> None:
    lab = Lab(delivery_time_header=True)
    peer = lab.connect()
    peer.declare("dead")
    peer.declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    peer.publish("q", b"m")
    assert sent(present(peer.get("q", no_ack=False))[1].properties) == lab.now
    peer.send(commands.Basic.Reject(1, requeue=False))
    [(_, message, _)] = lab.vhost.queues["dead"].backlog.items()
    assert "x-opt-rabbitmq-sent-time" not in message.properties().headers


def test_a_direct_reply_has_the_time_of_its_delivery() -> None:
    lab = Lab(delivery_time_header=True)
    peer = lab.connect()
    peer.send(commands.Basic.Consume(queue="amq.rabbitmq.reply-to", no_ack=True))
    peer.expect(commands.Basic.ConsumeOk)
    peer.declare("q")
    peer.publish("q", b"question", reply_to="amq.rabbitmq.reply-to")
    reply_to = present(present(peer.get("q"))[1].properties.reply_to)
    peer.publish(reply_to, b"answer")
    assert sent(peer.expect_delivery()[1].properties) == lab.now
