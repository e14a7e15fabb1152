"""Observers hear of expiry, drops and dead letters, and leave the firehose as it is."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import Address, Message, Properties, SpecialMessage
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.clients.peer import Peer
from amqp_broker.broker.observe.message_trace import TRACE_EXCHANGE
from amqp_broker.broker.queues.queue import Queue, QueueDeclaration
from amqp_broker.broker.vhost import VHost
from amqp_broker.settings.settings import Settings


class RecordingObserver:
    """Keeps what a vhost reports to an observer."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, fields.Table, bytes]] = []

    def __call__(self, event: str, name: str, headers: fields.Table, message: Message | None, body: bytes) -> None:
        self.heard.append((event, name, headers, body))

    def events(self) -> list[str]:
        return [event for event, *_ in self.heard]

    def traced(self, *names: str) -> list[tuple[Any, ...]]:
        """Return key, number and named headers of each new event, without publishes."""
        heard, self.heard = self.heard, []
        return [
            (f"{event}.{name}", headers["message_number"], *map(headers.get, names))
            for event, name, headers, _ in heard
            if event != "publish"
        ]


@pytest.fixture
def observer() -> RecordingObserver:
    return RecordingObserver()


@pytest.fixture
def vhost(observer: RecordingObserver) -> VHost:
    """A vhost that is observed, with a queue for the firehose."""
    broker = Broker(Settings(), bytes)
    broker.now_us = count(1).__next__
    broker.add_defaults()
    vhost = broker.vhosts["/"]
    vhost.bind(vhost.exchanges[TRACE_EXCHANGE], declare(vhost, "trace"), "#", {})
    vhost.tracing.observe(observer)
    return vhost


@pytest.fixture
def connection(vhost: VHost) -> Peer:
    connection = Peer("127.0.0.1", 1, "127.0.0.1", 5672, 0)
    connection.user = vhost.broker.users["guest"]
    return connection


def declare(vhost: VHost, name: str, **arguments: Any) -> Queue:
    table = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    return vhost.declare_queue(QueueDeclaration(name, table))


def publish(vhost: VHost, connection: Peer, queue: Queue, body: bytes = b"", **properties: Any) -> None:
    message = Message.build(Address("", queue.name), Properties(**properties), body)
    assert vhost.trace is not None
    message = vhost.trace.numbered(message)
    vhost.trace.published(connection, 1, message, [queue])
    queue.offer(message)


def events(vhost: VHost) -> list[tuple[str, fields.Table]]:
    """Return the copies of the firehose since the last call, without publishes."""
    found = []
    while (pulled := vhost.queues["trace"].pull()) is not None:
        headers = pulled[0].properties().headers
        assert headers is not None
        found.append((pulled[0].routing_key, headers))
    return [(key, headers) for key, headers in found if not key.startswith("publish.")]


def test_an_expired_message_is_traced(vhost: VHost, connection: Peer, observer: RecordingObserver) -> None:
    publish(vhost, connection, declare(vhost, "q", message_ttl=100))
    vhost.broker.tick(99)
    assert observer.traced() == []
    vhost.broker.tick(100)
    assert observer.traced() == [("expire.q", 1)]


def test_a_message_dropped_by_a_length_limit_is_traced(
    vhost: VHost, connection: Peer, observer: RecordingObserver
) -> None:
    queue = declare(vhost, "q", max_length=1)
    publish(vhost, connection, queue)
    publish(vhost, connection, queue)
    assert observer.traced("reason") == [("drop.q", 1, "maxlen")]


def test_a_purged_message_is_traced(vhost: VHost, connection: Peer, observer: RecordingObserver) -> None:
    queue = declare(vhost, "q")
    publish(vhost, connection, queue)
    queue.purge()
    assert observer.traced("reason") == [("drop.q", 1, "purged")]


def test_messages_of_a_deleted_queue_are_traced(vhost: VHost, connection: Peer, observer: RecordingObserver) -> None:
    queue = declare(vhost, "q")
    publish(vhost, connection, queue)
    vhost.remove_queue(queue)
    assert observer.traced("reason") == [("drop.q", 1, "queue_deleted")]


def test_a_dead_letter_has_a_new_number_and_refers_to_the_old_one(
    vhost: VHost, connection: Peer, observer: RecordingObserver
) -> None:
    dead = declare(vhost, "dead")
    queue = declare(vhost, "q", message_ttl=100, dead_letter_exchange="", dead_letter_routing_key="dead")
    publish(vhost, connection, queue)
    vhost.broker.tick(100)
    names = ("from_message_number", "reason", "routed_queues", "routing_keys")
    assert observer.traced(*names) == [
        ("expire.q", 1, None, None, None, ["q"]),
        ("dead_letter.q", 2, 1, "expired", ["dead"], ["dead"]),
    ]
    dead.purge()
    assert observer.traced() == [("drop.dead", 2)]


def test_a_dead_letter_has_a_death_count(vhost: VHost, connection: Peer, observer: RecordingObserver) -> None:
    queue = declare(vhost, "q", dead_letter_exchange="", dead_letter_routing_key="q")
    publish(vhost, connection, queue)
    for _ in range(3):
        pulled = queue.pull()
        assert pulled is not None
        queue.unacked_count += 1
        queue.reject(pulled[1], pulled[0])
    assert observer.traced("from_message_number", "death_count") == [
        ("dead_letter.q", 2, 1, 1),
        ("dead_letter.q", 3, 2, 2),
        ("dead_letter.q", 4, 3, 3),
    ]


def test_a_rejected_message_is_traced_as_a_nack(vhost: VHost, connection: Peer, observer: RecordingObserver) -> None:
    queue = declare(vhost, "q", dead_letter_exchange="", dead_letter_routing_key="nowhere")
    publish(vhost, connection, queue)
    pulled = queue.pull()
    assert pulled is not None
    assert vhost.trace is not None
    queue.unacked_count += 1
    vhost.trace.nacked(queue, pulled[0], False, connection, 1)
    queue.reject(pulled[1], pulled[0])
    assert observer.traced("reason", "routed_queues") == [
        ("nack.q", 1, None, None),
        ("dead_letter.q", 2, "rejected", []),
    ]


def test_dead_lettered_copies_are_not_traced(vhost: VHost, connection: Peer, observer: RecordingObserver) -> None:
    """Otherwise each delivery of a copy would drop another, without end."""
    vhost.tracing.start()
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
    assert (events(vhost), observer.traced()) == ([], [])
    assert dead.ready_count == 1


def test_a_long_name_is_cut_to_fit_the_routing_key(vhost: VHost, connection: Peer) -> None:
    vhost.tracing.start()
    queue = declare(vhost, "é" * 127 + "x")
    publish(vhost, connection, queue)
    pulled = queue.pull()
    assert pulled is not None
    assert vhost.trace is not None
    vhost.trace.delivered(queue, pulled[0], False, connection, 1, True)
    [(key, _)] = events(vhost)
    assert key.encode("utf-8", "surrogateescape") == ("deliver." + queue.name).encode()[:255]


def test_an_observer_that_stops_hears_nothing(vhost: VHost, connection: Peer, observer: RecordingObserver) -> None:
    queue = declare(vhost, "q", message_ttl=100)
    publish(vhost, connection, queue)
    vhost.tracing.stop_observing(observer)
    vhost.broker.tick(100)
    assert observer.traced() == []


def test_numbers_and_times_are_64_bit(vhost: VHost, connection: Peer, observer: RecordingObserver) -> None:
    queue = declare(vhost, "q")
    publish(vhost, connection, queue)
    headers = observer.heard[0][2]
    assert (type(headers["message_number"]), type(headers["time_us"])) == (fields.Long, fields.Long)


def test_the_firehose_leaves_messages_unchanged(vhost: VHost, observer: RecordingObserver) -> None:
    vhost.tracing.stop_observing(observer)
    vhost.tracing.start()
    assert vhost.trace is not None
    message = Message.build(Address("", "q"), Properties(), b"")
    assert vhost.trace.numbered(message) is message


def test_a_numbered_message_keeps_its_attributes(vhost: VHost) -> None:
    assert vhost.trace is not None
    message = SpecialMessage.of(Message.build(Address("", "q"), Properties(expiration="5"), b"body"))
    message.expiration_ms, message.blind_keys = 5, ["blind"]
    numbered = vhost.trace.numbered(message)
    assert isinstance(numbered, SpecialMessage)
    assert (numbered.expiration_ms, numbered.blind_keys, numbered.number) == (5, ["blind"], 1)
    assert (numbered.content, message.number) == (message.content, 0)


def test_direct_replies_have_no_routed_queues(vhost: VHost, connection: Peer) -> None:
    vhost.tracing.start()
    assert vhost.trace is not None
    message = Message.build(Address("", "amq.rabbitmq.reply-to.x"), Properties(), b"")
    vhost.trace.published(connection, 1, message, [])
    pulled = vhost.queues["trace"].pull()
    assert pulled is not None
    headers = pulled[0].properties().headers
    assert headers is not None
    assert headers["routed_queues"] == []


# Observers


def test_an_observer_gets_every_event_without_a_queue(
    vhost: VHost, connection: Peer, observer: RecordingObserver
) -> None:
    queue = declare(vhost, "q", max_length=1)
    publish(vhost, connection, queue, b"first")
    publish(vhost, connection, queue, b"second")
    assert observer.events() == ["publish", "publish", "drop"]
    _, name, headers, body = observer.heard[0]
    assert (name, body, headers["message_number"], headers["routed_queues"]) == ("", b"first", 1, ["q"])
    assert vhost.queues["trace"].ready_count == 0


def test_an_observer_leaves_the_firehose_unchanged(vhost: VHost, connection: Peer, observer: RecordingObserver) -> None:
    vhost.tracing.stop_observing(observer)
    vhost.tracing.start()
    queue = declare(vhost, "q")
    publish(vhost, connection, queue)
    plain = vhost.queues["trace"].pull()
    vhost.tracing.observe(observer)
    publish(vhost, connection, queue)
    observed = vhost.queues["trace"].pull()
    assert plain is not None
    assert observed is not None
    assert plain[0].properties().as_dict() == observed[0].properties().as_dict()
    assert vhost.trace is not None
    pulled = queue.pull()
    assert pulled is not None
    vhost.trace.delivered(queue, pulled[0], False, connection, 1, True)
    queue.purge()
    # Only publishes and deliveries, without the headers for observers.
    extended = {"no_ack", "mandatory", "message_number", "time_us"}
    assert [set(headers) & extended for _, headers in events(vhost)] == [set()]
