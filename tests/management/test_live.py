from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from amqp_broker import fields
from amqp_broker.broker.access import User
from amqp_broker.broker.connection import Connection
from amqp_broker.management.live import BODY_BYTES_MAX, EVENTS_MAX, OCTETS_MAX, Listener, Wants, frame
from amqp_broker.management.request import Refusal
from amqp_broker.message import Address, Message, Properties
from tests.management.asking import Desk
from tests.running import RunningServer

GUEST = {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}


class Ear:
    """A listener and how often it was woken."""

    def __init__(self) -> None:
        self.woken = 0
        self.listener = Listener(self.wake)

    def wake(self) -> None:
        self.woken += 1

    def hear(self, body: bytes = b"", event: str = "publish", **properties: Any) -> None:
        message = Message.build(Address("x", "key"), Properties(**properties), body)
        headers = {"properties": message.properties().as_dict(), "message_number": fields.Long(1)}
        self.listener.on_message(event, "x", headers, message, body)

    def messages(self) -> tuple[list[dict[str, Any]], int]:
        """The events that are told, as a browser has them, and how many were skipped."""
        told = dict(self.listener.take())["messages"]
        value = json.loads(frame("messages", told).split(b"data: ")[1])
        return value["events"], value["skipped"]


def test_a_burst_of_changes_is_one_piece_of_news() -> None:
    ear = Ear()
    for name in ("queue.created", "binding.created", "queue.deleted"):
        ear.listener.on_event(name, {})
    assert ear.woken == 1
    assert ear.listener.take() == [("topology", {"changed": ["queue", "binding"]})]
    assert ear.listener.take() == []
    ear.listener.on_event("user.created", {})
    assert ear.woken == 2


def test_who_does_not_read_loses_the_oldest_and_is_told_how_many() -> None:
    ear = Ear()
    for number in range(EVENTS_MAX + 12):
        ear.hear(str(number).encode())
    events, skipped = ear.messages()
    assert (len(events), events[0]["payload"], skipped) == (EVENTS_MAX, "12", 12)
    ear.hear()
    assert ear.messages()[1] == 0


def test_what_is_kept_for_who_does_not_read_is_bounded_in_octets() -> None:
    ear = Ear()
    for _ in range(EVENTS_MAX):
        ear.hear(headers={"x": "y" * 7000})
    events, skipped = ear.messages()
    assert OCTETS_MAX * 0.9 < len(events) * 7000 <= OCTETS_MAX
    assert len(events) + skipped == EVENTS_MAX


def test_huge_properties_are_not_kept() -> None:
    ear = Ear()
    ear.hear(b"body", headers={"x": "y" * 9000})
    assert ear.messages()[0][0]["properties"] is None


@pytest.mark.parametrize(
    ("body", "payload", "encoding"),
    [
        (b"text", "text", "string"),
        (b"\xff\x00", "/wA=", "base64"),
        (b"", "", "string"),
        (b"a" * 1999 + "é".encode(), "a" * 1999, "string"),
        (b"a" * 1999 + b"\xff", "a" * 1999 + "", "base64"),
    ],
)
def test_a_payload_is_text_where_it_is_text(body: bytes, payload: str, encoding: str) -> None:
    ear = Ear()
    ear.hear(body)
    (event,), _ = ear.messages()
    assert (event["payload_encoding"], event["payload_bytes"]) == (encoding, len(body))
    if encoding == "string" or len(body) < BODY_BYTES_MAX:
        assert event["payload"] == payload


def test_all_values_of_a_table_are_told() -> None:
    ear = Ear()
    table = {
        "nested": {"list": [fields.Short(1), None, True]},
        "octets": b"\xff",
        "decimal": fields.Decimal(2, 314),
        "infinite": float("inf"),
        "half": "\udcff",
        "time": fields.Timestamp(5),
    }
    ear.hear(headers=table)
    (event,), _ = ear.messages()
    headers = event["properties"]["headers"]
    assert headers["nested"] == {"list": [1, None, True]}
    assert (headers["octets"], headers["infinite"], headers["half"], headers["time"]) == ("�", None, "�", 5)


# Who may listen


def test_only_an_administrator_hears_messages() -> None:
    desk = Desk()
    watcher = User("w", tags=frozenset({"monitoring"}))
    Wants(desk.broker, watcher, {"streams": "overview,topology"})
    with pytest.raises(Refusal) as caught:
        Wants(desk.broker, watcher, {"streams": "messages", "vhost": "/"})
    assert caught.value.status == 401


@pytest.mark.parametrize(("query", "status"), [({"streams": "x"}, 400), ({"streams": "messages", "vhost": "no"}, 404)])
def test_what_is_not_there_cannot_be_listened_to(query: dict[str, str], status: int) -> None:
    desk = Desk()
    with pytest.raises(Refusal) as caught:
        Wants(desk.broker, desk.user, query)
    assert caught.value.status == status


def test_who_is_deleted_or_loses_his_tag_hears_no_more() -> None:
    desk = Desk()
    user = desk.broker.add_user("u", "p", tags=frozenset({"administrator"}))
    wants = Wants(desk.broker, user, {"streams": "messages", "vhost": "/"})
    assert wants.are_allowed(desk.broker, True)
    desk.broker.set_tags(user, ["monitoring"])
    assert not wants.are_allowed(desk.broker, True)
    desk.broker.set_tags(user, ["administrator"])
    desk.broker.delete_user("u")
    assert not wants.are_allowed(desk.broker, True)


def test_a_vhost_that_is_deleted_is_heard_no_more() -> None:
    desk = Desk()
    desk.broker.add_vhost("v")
    wants = Wants(desk.broker, desk.user, {"streams": "messages", "vhost": "v"})
    desk.broker.delete_vhost("v")
    assert not wants.are_allowed(desk.broker, True)


def test_nothing_is_told_or_traced_when_nobody_listens() -> None:
    desk = Desk()
    ear = Ear()
    wants = Wants(desk.broker, desk.user, {"streams": "topology,messages", "vhost": "/"})
    wants.attach(desk.broker, ear.listener)
    vhost = desk.broker.vhosts["/"]
    desk.broker.now_us = count(1).__next__
    assert vhost.trace is not None
    connection = Connection("127.0.0.1", 1, "127.0.0.1", 5672, 0)
    vhost.trace.published(connection, 1, Message.build(Address("", "q"), Properties(), b"x"), [])
    assert len(ear.messages()[0]) == 1
    wants.detach(desk.broker, ear.listener)
    assert vhost.trace is None
    desk.broker.add_user("u", "p")
    assert ear.listener.take() == []


# Over HTTP


@pytest.fixture
def running() -> Iterator[RunningServer]:
    with RunningServer(management=True) as server:
        yield server


def listen(running: RunningServer, query: str, **headers: str) -> tuple[http.client.HTTPConnection, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", running.server.ports["management"], timeout=10)
    connection.request("GET", f"/_broker/events?{query}", headers=headers)
    return connection, connection.getresponse()


def read(response: Any) -> tuple[str, Any]:
    event, data, _ = (response.readline().decode().rstrip("\n") for _ in range(3))
    return event.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def test_events_come_as_they_happen(running: RunningServer) -> None:
    connection, response = listen(running, "streams=overview,topology", **GUEST)
    assert response.headers["Content-Type"] == "text/event-stream"
    assert read(response) == ("hello", {"streams": ["overview", "topology"]})
    event, value = read(response)
    assert (event, value["product_name"]) == ("overview", "RabbitMQ")
    running.ask(lambda server: server.broker.add_user("u", "p"))
    events = [read(response), read(response)]
    assert ("topology", {"changed": ["user"]}) in events
    connection.close()
    running.until(lambda server: len(server.broker.events.listeners) == 1)  # the log


def test_the_tap_is_off_when_the_last_one_has_gone(running: RunningServer) -> None:
    first, response = listen(running, "streams=messages&vhost=/", **GUEST)
    read(response)
    second, other = listen(running, "streams=messages&vhost=/", **GUEST)
    read(other)
    assert running.ask(lambda server: len(server.broker.vhosts["/"].trace.taps)) == 2
    response.close()
    first.close()
    running.until(lambda server: len(server.broker.vhosts["/"].trace.taps) == 1)
    other.close()
    second.close()
    running.until(lambda server: server.broker.vhosts["/"].trace is None)


def test_a_browser_that_reads_nothing_makes_the_broker_keep_nothing(running: RunningServer) -> None:
    peer = socket.create_connection(("127.0.0.1", running.server.ports["management"]))
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    request = (
        f"GET /_broker/events?streams=messages HTTP/1.1\r\nHost: x\r\nAuthorization: {GUEST['Authorization']}\r\n\r\n"
    )
    peer.sendall(request.encode())
    running.until(lambda server: server.broker.vhosts["/"].trace is not None)

    def publish(server: Any) -> tuple[int, int]:
        vhost = server.broker.vhosts["/"]
        body = b"x" * 2000
        connection = Connection("127.0.0.1", 1, "127.0.0.1", 5672, 0)
        message = Message.build(Address("x", "k"), Properties(), body)
        for _ in range(2000):
            vhost.trace.published(connection, 1, message, [])
        (tap,) = vhost.trace.taps
        return len(tap.__self__._ring), tap.__self__._octets

    sizes = [running.ask(publish) for _ in range(30)]
    assert all(events <= EVENTS_MAX and octets <= OCTETS_MAX for events, octets in sizes)
    peer.close()
    running.until(lambda server: server.broker.vhosts["/"].trace is None)


def test_who_does_not_log_in_hears_nothing(running: RunningServer) -> None:
    connection, response = listen(running, "streams=overview")
    assert (response.status, json.loads(response.read())["reason"]) == (401, "Login failed")
    connection.close()
