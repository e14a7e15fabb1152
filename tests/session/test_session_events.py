"""Events of what clients do, as another client hears them."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp.commands import Basic, Channel, Connection, Queue

from tests.peer import Lab, Peer
from tests.present import present


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def listener(lab: Lab) -> Peer:
    """A client that hears all events from now on."""
    listener = lab.connect()
    listener.declare("events")
    listener.call(Queue.Bind(queue="events", exchange="amq.rabbitmq.event", routing_key="#"))
    listener.consume("events", no_ack=True)
    listener.deliveries()
    return listener


def heard(listener: Peer) -> list[tuple[str, Any]]:
    """Names of events, and the users who caused them."""
    return [
        (present(deliver.routing_key), present(content.properties.headers).get("user_who_performed_action"))
        for deliver, content in listener.deliveries()
    ]


def test_a_connection_emits_events_from_login_to_close(lab: Lab, listener: Peer) -> None:
    peer = lab.connect()
    peer.declare("q", exclusive=True)
    peer.consume("q")
    peer.call(Basic.Cancel(consumer_tag="c"))
    peer.call(Channel.Close(200, "", 0, 0))
    peer.send(Connection.Close(200, "", 0, 0), channel=0)
    assert heard(listener) == [
        ("user.authentication.success", None),
        ("connection.created", "guest"),
        ("channel.created", "guest"),
        ("queue.created", "guest"),
        ("consumer.created", "guest"),
        ("consumer.deleted", "guest"),
        ("channel.closed", "guest"),
        ("queue.deleted", "rmq-internal"),
        ("connection.closed", None),
    ]


def test_a_lost_client_emits_the_events_of_its_end(lab: Lab, listener: Peer) -> None:
    peer = lab.connect()
    heard(listener)
    peer.disconnect()
    assert heard(listener) == [("channel.closed", "guest"), ("connection.closed", None)]


def test_a_channel_error_emits_the_event_of_its_close(lab: Lab, listener: Peer) -> None:
    peer = lab.connect()
    heard(listener)
    peer.send(Queue.Declare(queue="nowhere", passive=True))
    peer.expect_channel_close(404)
    assert heard(listener) == [("channel.closed", "guest")]


def test_a_failed_login_emits_an_event(lab: Lab, listener: Peer) -> None:
    peer = lab.peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    peer.send(Connection.StartOk({}, "PLAIN", "\0guest\0wrong"), channel=0)
    [(deliver, content)] = listener.deliveries()
    assert deliver.routing_key == "user.authentication.failure"
    assert present(content.properties.headers)["error"] == "user 'guest' - invalid credentials"


def test_the_creation_event_has_the_negotiated_values(lab: Lab, listener: Peer) -> None:
    lab.peer().open(channel_max=7, frame_max=9000, heartbeat=5)
    _, (deliver, content) = listener.deliveries()
    headers = present(content.properties.headers)
    assert deliver.routing_key == "connection.created"
    told = [headers[key] for key in ("channel_max", "frame_max", "timeout", "auth_mechanism")]
    assert told == [7, 9000, 5, "PLAIN"]
