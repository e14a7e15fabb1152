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
