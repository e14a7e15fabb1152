"""What the extended trace tells of a queue's own doings: expiry, drops, dead letters."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from amqp_broker import fields
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.connection import Connection
from amqp_broker.broker.queue import Queue
from amqp_broker.broker.trace import TRACE_EXCHANGE
from amqp_broker.broker.vhost import VHost
from amqp_broker.config import Config
from amqp_broker.message import Address, Message, Properties, SpecialMessage


@pytest.fixture
def vhost() -> VHost:
    """A vhost with an extended trace, all of which goes into the queue `trace`."""
    broker = Broker(Config(), bytes)
    broker.now_us = count(1).__next__
    broker.add_defaults()
    vhost = broker.vhosts["/"]
    vhost.bind(vhost.exchanges[TRACE_EXCHANGE], declare(vhost, "trace"), "#", {})
    vhost.start_trace(extended=True)
    return vhost


@pytest.fixture
def connection(vhost: VHost) -> Connection:
    connection = Connection("127.0.0.1", 1, "127.0.0.1", 5672, 0)
    connection.user = vhost.broker.users["guest"]
    return connection


def declare(vhost: VHost, name: str, **arguments: Any) -> Queue:
    table = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    attributes = {"is_durable": False, "is_auto_delete": False, "owner": None, "connection": None}
    return vhost.declare_queue(name, **attributes, arguments_=table)  # type: ignore[arg-type]


def publish(vhost: VHost, connection: Connection, queue: Queue, body: bytes = b"", **properties: Any) -> None:
    message = Message.build(Address("", queue.name), Properties(**properties), body)
    assert vhost.trace is not None
    message = vhost.trace.numbered(message)
    vhost.trace.published(connection, 1, message, [queue])
    queue.accept(message)


def events(vhost: VHost) -> list[tuple[str, fields.Table]]:
    """What was told since the last look, but for publishes."""
    found = []
    while (pulled := vhost.queues["trace"].pull()) is not None:
        headers = pulled[0].properties().headers
        assert headers is not None
        found.append((pulled[0].routing_key, headers))
    return [(key, headers) for key, headers in found if not key.startswith("publish.")]


def told(vhost: VHost, *names: str) -> list[tuple[Any, ...]]:
    """Of each event its key, its message's number, and the headers with these names."""
    return [(key, headers["message_number"], *map(headers.get, names)) for key, headers in events(vhost)]


def test_what_expires_is_told(vhost: VHost, connection: Connection) -> None:
    publish(vhost, connection, declare(vhost, "q", message_ttl=100))
    vhost.broker.tick(99)
    assert told(vhost) == []
    vhost.broker.tick(100)
    assert told(vhost) == [("expire.q", 1)]


def test_what_is_one_too_many_is_told(vhost: VHost, connection: Connection) -> None:
    queue = declare(vhost, "q", max_length=1)
    publish(vhost, connection, queue)
    publish(vhost, connection, queue)
    assert told(vhost, "reason") == [("drop.q", 1, "maxlen")]


def test_what_is_purged_is_told(vhost: VHost, connection: Connection) -> None:
    queue = declare(vhost, "q")
    publish(vhost, connection, queue)
    queue.purge()
    assert told(vhost, "reason") == [("drop.q", 1, "purged")]


def test_what_goes_with_its_queue_is_told(vhost: VHost, connection: Connection) -> None:
    queue = declare(vhost, "q")
    publish(vhost, connection, queue)
    vhost.remove_queue(queue)
    assert told(vhost, "reason") == [("drop.q", 1, "queue_deleted")]


def test_a_dead_letter_has_a_new_number_and_names_the_old_one(vhost: VHost, connection: Connection) -> None:
    dead = declare(vhost, "dead")
    queue = declare(vhost, "q", message_ttl=100, dead_letter_exchange="", dead_letter_routing_key="dead")
    publish(vhost, connection, queue)
    vhost.broker.tick(100)
    names = ("from_message_number", "reason", "routed_queues", "routing_keys")
    assert told(vhost, *names) == [
        ("expire.q", 1, None, None, None, ["q"]),
        ("dead_letter.q", 2, 1, "expired", ["dead"], ["dead"]),
    ]
    dead.purge()
    assert told(vhost) == [("drop.dead", 2)]


def test_a_dead_letter_tells_how_often_it_died_so(vhost: VHost, connection: Connection) -> None:
    queue = declare(vhost, "q", dead_letter_exchange="", dead_letter_routing_key="q")
    publish(vhost, connection, queue)
    for _ in range(3):
        pulled = queue.pull()
        assert pulled is not None
        queue.unacked_count += 1
        queue.reject(pulled[1], pulled[0])
    assert told(vhost, "from_message_number", "death_count") == [
        ("dead_letter.q", 2, 1, 1),
        ("dead_letter.q", 3, 2, 2),
        ("dead_letter.q", 4, 3, 3),
    ]


def test_a_rejected_message_is_told_of_by_its_nack(vhost: VHost, connection: Connection) -> None:
    queue = declare(vhost, "q", dead_letter_exchange="", dead_letter_routing_key="nowhere")
    publish(vhost, connection, queue)
    pulled = queue.pull()
    assert pulled is not None
    assert vhost.trace is not None
    queue.unacked_count += 1
    vhost.trace.nacked(queue, pulled[0], False, connection, 1)
    queue.reject(pulled[1], pulled[0])
    assert told(vhost, "reason", "routed_queues") == [
        ("nack.q", 1, None, None),
        ("dead_letter.q", 2, "rejected", []),
    ]


@pytest.mark.parametrize("extended", [True, False])
def test_dead_copies_leave_no_copies(vhost: VHost, connection: Connection, extended: bool) -> None:
    """Each delivery of one would push out another, for ever."""
    vhost.start_trace(extended)
    dead = declare(vhost, "dead")
    small = declare(vhost, "small", max_length=1, dead_letter_exchange="", dead_letter_routing_key="dead")
    vhost.bind(vhost.exchanges[TRACE_EXCHANGE], small, "#", {})
    queue = declare(vhost, "q")
    for _ in range(3):
        publish(vhost, connection, queue)
    assert dead.ready_count == 2
    pulled = dead.pull()
    assert pulled is not None
    assert vhost.trace is not None
    vhost.trace.delivered(dead, pulled[0], False, connection, 1, True)
    assert events(vhost) == []
    assert dead.ready_count == 1


def test_a_name_that_fills_the_key_is_cut(vhost: VHost, connection: Connection) -> None:
    queue = declare(vhost, "é" * 127 + "x")
    publish(vhost, connection, queue)
    queue.purge()
    [(key, _)] = events(vhost)
    assert key.encode("utf-8", "surrogateescape") == ("drop." + queue.name).encode()[:255]


def test_a_stopped_trace_tells_nothing_more(vhost: VHost, connection: Connection) -> None:
    queue = declare(vhost, "q", message_ttl=100)
    publish(vhost, connection, queue)
    vhost.stop_trace()
    vhost.broker.tick(100)
    assert told(vhost) == []


def test_a_number_and_its_like_are_long(vhost: VHost, connection: Connection) -> None:
    queue = declare(vhost, "q")
    publish(vhost, connection, queue)
    queue.purge()
    [(_, headers)] = events(vhost)
    assert (type(headers["message_number"]), type(headers["time_us"])) == (fields.Long, fields.Long)


def test_a_plain_trace_leaves_messages_as_they_are(vhost: VHost) -> None:
    vhost.start_trace()
    assert vhost.trace is not None
    message = Message.build(Address("", "q"), Properties(), b"")
    assert vhost.trace.numbered(message) is message


def test_a_numbered_message_keeps_what_it_carries(vhost: VHost) -> None:
    assert vhost.trace is not None
    message = SpecialMessage.of(Message.build(Address("", "q"), Properties(expiration="5"), b"body"))
    message.expiration_ms, message.blind_keys = 5, ["blind"]
    numbered = vhost.trace.numbered(message)
    assert isinstance(numbered, SpecialMessage)
    assert (numbered.expiration_ms, numbered.blind_keys, numbered.number) == (5, ["blind"], 1)
    assert (numbered.content, message.number) == (message.content, 0)


def test_answers_to_direct_requests_are_no_queues(vhost: VHost, connection: Connection) -> None:
    assert vhost.trace is not None
    message = Message.build(Address("", "amq.rabbitmq.reply-to.x"), Properties(), b"")
    vhost.trace.published(connection, 1, message, [])
    pulled = vhost.queues["trace"].pull()
    assert pulled is not None
    headers = pulled[0].properties().headers
    assert headers is not None
    assert headers["routed_queues"] == []


# Taps


class Tapping:
    """Hears what a vhost tells to a tap."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, fields.Table, bytes]] = []

    def __call__(self, event: str, name: str, headers: fields.Table, message: Message, body: bytes) -> None:
        self.heard.append((event, name, headers, body))

    def events(self) -> list[str]:
        return [event for event, *_ in self.heard]


def test_a_tap_is_told_all_without_a_queue(vhost: VHost, connection: Connection) -> None:
    vhost.stop_trace()
    tap = Tapping()
    vhost.tap(tap)
    queue = declare(vhost, "q", max_length=1)
    publish(vhost, connection, queue, b"first")
    publish(vhost, connection, queue, b"second")
    assert tap.events() == ["publish", "publish", "drop"]
    _, name, headers, body = tap.heard[0]
    assert (name, body, headers["message_number"], headers["routed_queues"]) == ("", b"first", 1, ["q"])
    assert vhost.queues["trace"].ready_count == 0


def test_a_tap_leaves_the_plain_firehose_as_it_is(vhost: VHost, connection: Connection) -> None:
    vhost.start_trace()
    queue = declare(vhost, "q")
    publish(vhost, connection, queue)
    plain = vhost.queues["trace"].pull()
    vhost.tap(Tapping())
    publish(vhost, connection, queue)
    tapped = vhost.queues["trace"].pull()
    assert plain is not None
    assert tapped is not None
    assert plain[0].properties().as_dict() == tapped[0].properties().as_dict()
    assert vhost.trace is not None
    pulled = queue.pull()
    assert pulled is not None
    vhost.trace.delivered(queue, pulled[0], False, connection, 1, True)
    queue.purge()
    # What was sent, told without what only the extended trace has of it, and nothing of the purge.
    ours = {"no_ack", "mandatory", "message_number", "time_us"}
    assert [set(headers) & ours for _, headers in events(vhost)] == [set()]


def test_the_trace_goes_on_and_ends_as_it_was_told_whoever_taps(vhost: VHost) -> None:
    tap = Tapping()
    vhost.tap(tap)
    assert vhost.is_tracing
    vhost.stop_trace()
    assert not vhost.is_tracing
    assert vhost.trace is not None
    vhost.start_trace(extended=True)
    vhost.untap(tap)
    assert vhost.is_tracing
    assert vhost.trace.is_extended


def test_nothing_is_traced_when_the_last_tap_has_gone(vhost: VHost) -> None:
    vhost.stop_trace()
    first, second = Tapping(), Tapping()
    vhost.tap(first)
    vhost.tap(second)
    vhost.untap(first)
    assert vhost.trace is not None
    vhost.untap(second)
    vhost.untap(second)
    assert vhost.trace is None
