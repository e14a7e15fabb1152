from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from pamqp import commands

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import Address, Message, Properties
from amqp_broker.broker.admin.access import Permission
from amqp_broker.broker.exchanges.delayed import DelayedExchange
from amqp_broker.broker.exchanges.exchange import ExchangeDeclaration
from amqp_broker.broker.queues.queue import Queue, QueueDeclaration
from amqp_broker.broker.queues.stream import StreamQueue
from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.management.api import peeking
from amqp_broker.management.documents.values import LEVELS_MAX
from amqp_broker.management.http.request import Request
from tests.broker_parts import pulled, push
from tests.management.asking import Desk
from tests.peer import Lab

PEEK = "/_broker/queues/%2F/q/peek"


@pytest.fixture
def desk() -> Desk:
    return Desk()


def declare(desk: Desk, name: str = "q", **arguments: Any) -> Queue:
    table = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    return desk.broker.vhosts["/"].declare_queue(QueueDeclaration(name, table, is_durable=True))


def seen(desk: Desk, **query: Any) -> tuple[list[str], Any]:
    """Return payloads, and the offset of the next."""
    status, value = desk.get(PEEK, **{key: str(item) for key, item in query.items()})
    assert status == 200, value
    return [message["payload"] for message in value["messages"]], value["next"]


def test_peeking_changes_nothing(desk: Desk) -> None:
    queue = declare(desk)
    push(queue, b"one", b"two", b"three")
    assert seen(desk, count=2) == (["one", "two"], 2)
    assert seen(desk, count=2, offset=2) == (["three"], None)
    assert pulled(queue) == [(b"one", 0, False), (b"two", 1, False), (b"three", 2, False)]
    assert seen(desk) == ([], None)


def test_a_message_of_a_quorum_queue_has_a_delivery_count(desk: Desk) -> None:
    queue = declare(desk, queue_type="quorum")
    push(queue, b"one")
    first = queue.pull()
    assert first is not None
    queue.unacked_count += 1
    queue.requeue(first[1], first[0])
    assert [message["delivery_count"] for message in desk.get(PEEK)[1]["messages"]] == [1]


def test_a_requeued_message_is_shown_as_redelivered(desk: Desk) -> None:
    queue = declare(desk)
    push(queue, b"one", b"two")
    first = queue.pull()
    assert first is not None
    queue.unacked_count += 1
    queue.requeue(first[1], first[0])
    messages = desk.get(PEEK)[1]["messages"]
    assert [(message["payload"], message["redelivered"]) for message in messages] == [("one", True), ("two", False)]


@pytest.mark.parametrize("arguments", [{}, {"queue_type": "quorum"}, {"max_priority": 3}, {"queue_type": "stream"}])
def test_every_type_of_queue_can_be_peeked_at(desk: Desk, arguments: dict[str, Any]) -> None:
    queue = declare(desk, **arguments)
    push(queue, b"one", b"two")
    assert seen(desk) == (["one", "two"], None)
    assert seen(desk, offset=1) == (["two"], None)


def test_a_search_finds_octets_of_body_key_and_properties(desk: Desk) -> None:
    queue = declare(desk)
    push(queue, b"one", b"two")
    queue.push(Message.build(Address("", "other"), Properties(correlation_id="two-b"), b"three"))
    assert seen(desk, search="two") == (["two", "three"], None)
    assert seen(desk, search="other") == (["three"], None)
    assert seen(desk, search="two", count=1) == (["two"], 2)


def test_payloads_are_truncated_and_encoded_as_requested(desk: Desk) -> None:
    push(declare(desk), b"one")
    (message,) = desk.get(PEEK, truncate="2", encoding="base64")[1]["messages"]
    assert (message["payload"], message["payload_encoding"], message["payload_bytes"]) == ("b24=", "base64", 3)


def test_an_expired_message_is_not_shown(desk: Desk) -> None:
    push(declare(desk, message_ttl=10), b"one")
    desk.broker.now += 11
    assert seen(desk) == ([], None)


def test_an_unacked_message_is_shown_with_its_consumer() -> None:
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


def test_a_delayed_message_is_shown_for_its_queue(desk: Desk) -> None:
    vhost, queue = desk.broker.vhosts["/"], declare(desk)
    exchange = vhost.declare_exchange(
        ExchangeDeclaration("later", "x-delayed-message", {"x-delayed-type": "direct"}, is_durable=True)
    )
    vhost.bind(exchange, queue, "q", {})
    for key in ("q", "elsewhere"):
        headers = {"x-delay": fields.Long(500)}
        vhost.route(exchange, (key,), headers, Message.build(Address("later", key), Properties(headers=headers), b"x"))
    (message,) = desk.get(PEEK, state="delayed")[1]["messages"]
    assert (message["routing_key"], message["due_ms"]) == ("q", desk.broker.now + 500)
    assert isinstance(exchange, DelayedExchange)
    assert exchange.messages_delayed == 2


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
def test_an_invalid_query_is_refused(desk: Desk, query: dict[str, str]) -> None:
    declare(desk)
    assert desk.get(PEEK, **query)[0] == 400


def test_peeking_requires_the_permission_to_read(desk: Desk) -> None:
    declare(desk)
    desk.broker.users.set_permission(desk.user, "/", Permission(read="^$"))
    assert desk.get(PEEK)[0] == 401


@pytest.mark.parametrize("arguments", [{}, {"queue_type": "quorum"}, {"max_priority": 3}, {"queue_type": "stream"}])
@pytest.mark.parametrize("offset", [0, 2])
def test_a_walk_goes_on_after_a_change_of_the_queue(desk: Desk, offset: int, arguments: dict[str, Any]) -> None:
    queue = declare(desk, **arguments)
    push(queue, b"0", b"1", b"2", b"3", b"4")
    query = {"offset": str(offset), "search": ""}
    path = {"vhost": "/", "queue": "q"}
    steps = peeking.peek(Request(desk.broker, desk.node, desk.user, "GET", path, query))
    for _ in range(offset + 1):
        next(steps)
    push(queue, b"5")
    found = [row["payload"] for row in finished(steps)["messages"]]
    assert found == [str(number) for number in range(offset, 6)]


@pytest.mark.interpreted  # replaces a method
def test_a_walk_of_a_stream_that_begins_in_its_middle_leaves_nothing_out(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(declare(desk, queue_type="stream"), b"0", b"1", b"2", b"3", b"4", b"5")
    peek_from = StreamQueue.peek_from

    def change_once(queue: StreamQueue, offset: int) -> Iterator[tuple[Message, bool]]:
        monkeypatch.undo()
        yield from islice(peek_from(queue, offset), 1)
        raise RuntimeError("deque mutated during iteration")

    monkeypatch.setattr(StreamQueue, "peek_from", change_once)
    assert seen(desk, offset=2) == (["2", "3", "4", "5"], None)


def test_a_walk_ends_with_its_queue(desk: Desk) -> None:
    queue = declare(desk)
    push(queue, b"0", b"1", b"2")
    steps = peeking.peek(Request(desk.broker, desk.node, desk.user, "GET", {"vhost": "/", "queue": "q"}))
    next(steps)
    desk.broker.vhosts["/"].remove_queue(queue)
    answer = finished(steps)
    assert ([row["payload"] for row in answer["messages"]], answer["next"]) == (["0"], None)


@pytest.mark.parametrize("path", [PEEK, "/_broker/messages", "/_broker/queues/%2F/q/lives", "/_broker/messages/1"])
def test_headers_that_are_nested_too_deeply_for_libraries_are_cut_with_a_sentence(desk: Desk, path: str) -> None:
    desk.ask("PUT", "/_broker/event-log", {})
    peer = desk.lab.connect()
    peer.declare("q")
    table = b""
    for _ in range(10_000):
        table = b"\x01aF" + len(table).to_bytes(4, "big") + table
    header = struct.pack(">HHQHI", 60, 0, 1, 1 << 13, len(table)) + table
    peer.send(commands.Basic.Publish(routing_key="q"))
    peer.send_bytes(struct.pack(">BHI", 2, 1, len(header)) + header + b"\xce")
    peer.send_bytes(struct.pack(">BHI", 3, 1, 1) + b"m\xce")
    status, value = desk.get(path)
    assert status == 200
    text = json.dumps(value)
    assert "nested deeper than 50 levels: basic.get delivers it whole" in text
    assert '{"a": ' * (LEVELS_MAX - 1) in text
    assert '{"a": ' * LEVELS_MAX not in text
