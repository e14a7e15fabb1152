from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from amqp_broker.amqp.message import Address, Message, Properties
from amqp_broker.broker.admin.access import User
from amqp_broker.broker.clients.peer import Peer
from amqp_broker.management.http.answers import Refusal
from amqp_broker.management.http.request import Request
from amqp_broker.management.live.pending_updates import EVENTS_MAX, OCTETS_MAX, PendingUpdates
from amqp_broker.management.live.updates import Subscription
from tests.management.asking import Desk
from tests.present import present
from tests.running import RunningServer

GUEST = {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}


# Permission to listen


def subscription(desk: Desk, user: User, **query: str) -> Subscription:
    return Subscription(Request(desk.broker, desk.node, user, query=query))


def test_only_an_administrator_may_listen_to_messages() -> None:
    desk = Desk()
    watcher = User("w", tags=("monitoring",))
    subscription(desk, watcher, streams="overview,topology")
    with pytest.raises(Refusal) as caught:
        subscription(desk, watcher, streams="messages", vhost="/")
    assert caught.value.status == 401


@pytest.mark.parametrize(("query", "status"), [({"streams": "x"}, 400), ({"streams": "messages", "vhost": "no"}, 404)])
def test_an_unknown_stream_or_vhost_is_refused(query: dict[str, str], status: int) -> None:
    desk = Desk()
    with pytest.raises(Refusal) as caught:
        subscription(desk, desk.user, **query)
    assert caught.value.status == status


def test_a_subscription_ends_with_the_user_or_the_tag() -> None:
    desk = Desk()
    user = desk.broker.users.add("u", "p", tags=("administrator",))
    subscribed = subscription(desk, user, streams="messages", vhost="/")
    assert subscribed.is_allowed()
    desk.broker.users.set_tags(user, ["monitoring"])
    assert not subscribed.is_allowed()
    desk.broker.users.set_tags(user, ["administrator"])
    desk.broker.users.delete("u")
    assert not subscribed.is_allowed()


def test_a_subscription_ends_with_the_vhost() -> None:
    desk = Desk()
    desk.broker.add_vhost("v")
    subscribed = subscription(desk, desk.user, streams="messages", vhost="v")
    desk.broker.delete_vhost("v")
    assert not subscribed.is_allowed()


def test_messages_are_traced_only_while_there_is_a_listener() -> None:
    desk = Desk()
    pending = PendingUpdates(lambda: None)
    subscribed = subscription(desk, desk.user, streams="topology,messages", vhost="/")
    subscribed.attach(pending)
    vhost = desk.broker.vhosts["/"]
    desk.broker.now_us = count(1).__next__
    assert vhost.trace is not None
    connection = Peer("127.0.0.1", 1, "127.0.0.1", 5672, 0)
    vhost.trace.published(connection, 1, Message.build(Address("", "q"), Properties(), b"x"), [])
    assert len(dict(pending.take())["messages"]["events"]) == 1
    subscribed.detach(pending)
    assert vhost.trace is None
    desk.broker.users.add("u", "p")
    assert pending.take() == []


def test_messages_of_all_vhosts_come_without_the_name_of_one() -> None:
    desk = Desk()
    desk.broker.add_vhost("before")
    pending = PendingUpdates(lambda: None)
    subscribed = subscription(desk, desk.user, streams="messages")
    subscribed.attach(pending)
    desk.broker.add_vhost("after")
    connection = Peer("127.0.0.1", 1, "127.0.0.1", 5672, 0)
    for name in ("/", "before", "after"):
        trace = present(desk.broker.vhosts[name].trace)
        trace.published(connection, 1, Message.build(Address("", "q"), Properties(), b"x"), [])
    assert [event["vhost"] for event in dict(pending.take())["messages"]["events"]] == ["/", "before", "after"]
    desk.broker.delete_vhost("before")
    assert subscribed.is_allowed()
    subscribed.detach(pending)
    assert [vhost.name for vhost in desk.broker.vhosts.values() if vhost.trace is not None] == []
    assert desk.broker.add_vhost("later").trace is None


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
    running.ask(lambda server: server.broker.users.add("u", "p"))
    events = [read(response), read(response)]
    assert ("topology", {"changed": ["user"]}) in events
    connection.close()
    running.until(lambda server: len(server.broker.events.listeners) == 1)  # the log


def test_the_overview_has_the_alarms(running: RunningServer) -> None:
    running.ask(lambda server: server.node.set_alarm("disk", True))
    connection, response = listen(running, "streams=overview", **GUEST)
    assert read(response)[0] == "hello"
    [alarm] = read(response)[1]["alarms"]
    assert (alarm["kind"], alarm["resource"]) == ("alarm", "disk")
    connection.close()


def test_observation_ends_with_the_last_listener(running: RunningServer) -> None:
    first, response = listen(running, "streams=messages&vhost=/", **GUEST)
    read(response)
    second, other = listen(running, "streams=messages&vhost=/", **GUEST)
    read(other)
    assert running.ask(lambda server: len(server.broker.vhosts["/"].tracing.observers)) == 2
    response.close()
    first.close()
    running.until(lambda server: len(server.broker.vhosts["/"].tracing.observers) == 1)
    other.close()
    second.close()
    running.until(lambda server: server.broker.vhosts["/"].trace is None)


def test_the_memory_for_a_browser_that_does_not_read_is_bounded(running: RunningServer) -> None:
    peer = socket.create_connection(("127.0.0.1", running.server.ports["management"]))
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    head = f"Host: localhost\r\nAuthorization: {GUEST['Authorization']}\r\n"
    request = f"GET /_broker/events?streams=messages HTTP/1.1\r\n{head}\r\n"
    peer.sendall(request.encode())
    running.until(lambda server: server.broker.vhosts["/"].trace is not None)

    def publish(server: Any) -> tuple[int, int]:
        vhost = server.broker.vhosts["/"]
        body = b"x" * 2000
        connection = Peer("127.0.0.1", 1, "127.0.0.1", 5672, 0)
        message = Message.build(Address("x", "k"), Properties(), body)
        for _ in range(2000):
            vhost.trace.published(connection, 1, message, [])
        (observer,) = vhost.trace.observers
        return len(observer.__self__._ring), observer.__self__._octets

    sizes = [running.ask(publish) for _ in range(30)]
    assert all(events <= EVENTS_MAX and octets <= OCTETS_MAX for events, octets in sizes)
    peer.close()
    running.until(lambda server: server.broker.vhosts["/"].trace is None)


def test_updates_need_a_login(running: RunningServer) -> None:
    connection, response = listen(running, "streams=overview")
    assert (response.status, response.read()) == (401, b"")
    connection.close()
