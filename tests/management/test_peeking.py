from __future__ import annotations

from typing import Any

import pytest

from amqp_broker import fields
from amqp_broker.broker.access import Permission
from amqp_broker.broker.queue import Queue
from amqp_broker.message import Address, Message, Properties
from tests.management.asking import Desk
from tests.peer import Lab
from tests.taker import pulled, push

PEEK = "/_broker/queues/%2F/q/peek"
MOVE = "/_broker/queues/%2F/q/move"


@pytest.fixture
def desk() -> Desk:
    return Desk()


def declare(desk: Desk, name: str = "q", **arguments: Any) -> Queue:
    table = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    return desk.broker.vhosts["/"].declare_queue(
        name, is_durable=True, is_auto_delete=False, owner=None, connection=None, arguments_=table
    )


def seen(desk: Desk, **query: Any) -> tuple[list[str], Any]:
    """Payloads, and where to go on."""
    status, value = desk.get(PEEK, **{key: str(item) for key, item in query.items()})
    assert status == 200, value
    return [message["payload"] for message in value["messages"]], value["next"]


def test_looking_touches_nothing(desk: Desk) -> None:
    queue = declare(desk)
    push(queue, b"one", b"two", b"three")
    assert seen(desk, count=2) == (["one", "two"], 2)
    assert seen(desk, count=2, offset=2) == (["three"], None)
    assert pulled(queue) == [(b"one", 0, False), (b"two", 1, False), (b"three", 2, False)]
    assert seen(desk) == ([], None)


def test_what_came_back_is_told_to_be_redelivered(desk: Desk) -> None:
    queue = declare(desk)
    push(queue, b"one", b"two")
    first = queue.pull()
    assert first is not None
    queue.unacked_count += 1
    queue.requeue(first[1], first[0])
    messages = desk.get(PEEK)[1]["messages"]
    assert [(message["payload"], message["redelivered"]) for message in messages] == [("one", True), ("two", False)]


@pytest.mark.parametrize("arguments", [{}, {"queue_type": "quorum"}, {"max_priority": 3}, {"queue_type": "stream"}])
def test_every_type_of_queue_can_be_looked_into(desk: Desk, arguments: dict[str, Any]) -> None:
    queue = declare(desk, **arguments)
    push(queue, b"one", b"two")
    assert seen(desk) == (["one", "two"], None)
    assert seen(desk, offset=1) == (["two"], None)


def test_what_is_looked_for_stands_in_body_key_or_properties(desk: Desk) -> None:
    queue = declare(desk)
    push(queue, b"one", b"two")
    queue.push(Message.build(Address("", "other"), Properties(correlation_id="two-b"), b"three"))
    assert seen(desk, search="two") == (["two", "three"], None)
    assert seen(desk, search="other") == (["three"], None)
    assert seen(desk, search="two", count=1) == (["two"], 2)


def test_payloads_are_cut_and_encoded_as_asked(desk: Desk) -> None:
    push(declare(desk), b"one")
    (message,) = desk.get(PEEK, truncate="2", encoding="base64")[1]["messages"]
    assert (message["payload"], message["payload_encoding"], message["payload_bytes"]) == ("b24=", "base64", 3)


def test_what_has_expired_is_not_shown(desk: Desk) -> None:
    push(declare(desk, message_ttl=10), b"one")
    desk.broker.now += 11
    assert seen(desk) == ([], None)


def test_what_consumers_have_is_shown_with_them() -> None:
    from pamqp import commands

    lab, desk = Lab(), Desk()
    peer = lab.connect()
    peer.send(commands.Queue.Declare(queue="q"))
    peer.expect(commands.Queue.DeclareOk)
    peer.send(commands.Basic.Consume(queue="q", consumer_tag="me"))
    peer.expect(commands.Basic.ConsumeOk)
    push(lab.vhost.queues["q"], b"one")
    desk.broker, desk.user = lab.broker, lab.broker.users["guest"]
    (message,) = desk.get(PEEK, state="unacked")[1]["messages"]
    assert (message["payload"], message["consumer_tag"], message["delivery_tag"]) == ("one", "me", 1)
    assert seen(desk) == ([], None)


def test_what_is_delayed_for_a_queue_is_shown(desk: Desk) -> None:
    vhost, queue = desk.broker.vhosts["/"], declare(desk)
    exchange = vhost.declare_exchange(
        "later",
        "x-delayed-message",
        is_durable=True,
        is_auto_delete=False,
        is_internal=False,
        arguments_={"x-delayed-type": "direct"},
    )
    vhost.bind(exchange, queue, "q", {})
    for key in ("q", "elsewhere"):
        headers = {"x-delay": fields.Long(500)}
        vhost.route(exchange, (key,), headers, Message.build(Address("later", key), Properties(headers=headers), b"x"))
    (message,) = desk.get(PEEK, state="delayed")[1]["messages"]
    assert (message["routing_key"], message["due_ms"]) == ("q", desk.broker.now + 500)
    assert exchange.messages_delayed == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "query",
    [
        {"count": "-1"},
        {"offset": "x"},
        {"count": "9" * 100},
        {"state": "gone"},
        {"encoding": "x"},
        {"count": "²"},
        {"offset": "100001"},
    ],
)
def test_a_wrong_look_is_refused(desk: Desk, query: dict[str, str]) -> None:
    declare(desk)
    assert desk.get(PEEK, **query)[0] == 400


def test_looking_takes_the_permission_to_read(desk: Desk) -> None:
    declare(desk)
    desk.broker.set_permission(desk.user, "/", Permission(read="^$"))
    assert desk.get(PEEK)[0] == 401
    assert desk.ask("POST", MOVE, {"destination": {"queue": "q"}})[0] == 401


def test_messages_are_moved_to_another_queue(desk: Desk) -> None:
    queue, other = declare(desk), declare(desk, "other")
    push(queue, b"one", b"two", b"three")
    assert desk.ask("POST", MOVE, {"destination": {"queue": "other"}, "count": 2}) == (
        200,
        {"moved": 2, "messages_ready": 1, "reason": None},
    )
    assert [message.body for message in other.messages()] == [b"one", b"two"]


def test_messages_are_moved_through_an_exchange_of_another_vhost(desk: Desk) -> None:
    desk.ask("PUT", "/api/vhosts/v")
    push(declare(desk), b"one")
    there = desk.broker.vhosts["v"]
    other = there.declare_queue("q", is_durable=True, is_auto_delete=False, owner=None, connection=None, arguments_={})
    assert desk.ask("POST", MOVE, {"destination": {"vhost": "v", "exchange": "amq.default"}})[1]["moved"] == 1
    assert other.ready_count == 1


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({}, 400),
        ({"destination": "q"}, 400),
        ({"destination": {}}, 400),
        ({"destination": {"queue": "other", "exchange": ""}}, 400),
        ({"destination": {"queue": "q"}}, 400),
        ({"destination": {"queue": 5}}, 400),
        ({"destination": {"queue": "none"}}, 404),
        ({"destination": {"exchange": "none"}}, 404),
        ({"destination": {"queue": "q", "vhost": "none"}}, 400),
        ({"destination": {"queue": "q", "vhost": []}}, 400),
        ({"destination": {"queue": "other"}, "count": -1}, 400),
        ({"destination": {"queue": "other"}, "count": "x"}, 400),
    ],
)
def test_a_wrong_move_moves_nothing(desk: Desk, given: Any, status: int) -> None:
    queue = declare(desk)
    declare(desk, "other")
    push(queue, b"one")
    assert desk.ask("POST", MOVE, given)[0] == status
    assert queue.ready_count == 1


def test_streams_are_not_moved(desk: Desk) -> None:
    push(declare(desk, queue_type="stream"), b"one")
    declare(desk, "other")
    assert desk.ask("POST", MOVE, {"destination": {"queue": "other"}})[0] == 400
