"""The octets that a recorder writes to its stream, and the messages that it selects."""

from __future__ import annotations

import json
import struct

import pytest
from pamqp.commands import Basic, Confirm

from amqp_broker.amqp.message import Address, Message, Properties, SpecialMessage
from amqp_broker.broker.clients.peer import Peer
from amqp_broker.broker.observe.message_trace import TRACE_EXCHANGE
from amqp_broker.broker.observe.record import CONTENT_BYTES_MAX, EVENTS_MAX
from amqp_broker.broker.observe.recorder import RECORD_MS
from amqp_broker.broker.observe.selection import Selection
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.vhost import VHost
from tests.broker.observe.records import declare, new_client, new_traced_vhost, record, records, rows
from tests.peer import Lab


@pytest.fixture
def vhost() -> VHost:
    """A vhost whose events go to the stream `trace`."""
    return new_traced_vhost()


@pytest.fixture
def connection(vhost: VHost) -> Peer:
    return new_client(vhost)


def publish(vhost: VHost, connection: Peer, queue: Queue, body: bytes = b"", exchange: str = "") -> Message:
    message = Message.build(Address(exchange, queue.name), Properties(), body)
    assert vhost.trace is not None
    message = vhost.trace.numbered(message)
    vhost.trace.published(connection, 1, message, [queue])
    queue.offer(message)
    return message


def events(vhost: VHost) -> list[tuple[str, int]]:
    """Return kind and number of all events."""
    return [(row.event, number) for row in rows(vhost) for number in row.numbers]


def test_a_record_has_tables_rows_and_contents(vhost: VHost, connection: Peer) -> None:
    queue = declare(vhost, "q")
    message = publish(vhost, connection, queue, b"body")
    queue.purge()
    head = json.dumps(
        {
            "node": "rabbit@localhost",
            "vhost": "/",
            "numbered_since_us": 1001,
            "places": [
                {
                    "event": "publish",
                    "routed_queues": ["q"],
                    "mandatory": False,
                    "connection": connection.name,
                    "channel": 1,
                    "user": "guest",
                },
                {"event": "drop", "queue": "q", "reason": "purged"},
            ],
            "addresses": [["", "q"]],
        },
        separators=(",", ":"),
    ).encode()
    content = bytes.fromhex("02 0001 0000000e 003c 0000 0000000000000004 0000 ce 03 0001 00000004") + b"body\xce"
    assert message.content == content
    assert records(vhost) == [
        b"ATR2"
        + struct.pack(">III", len(head), 2, 2)
        + head
        + struct.pack(">qQQIII", 1002, 1, 0, 0, 0, 1)
        + struct.pack(">qQQIII", 1002, 1, 0, 1, 0, 1)
        + content
    ]


def test_events_of_several_clients_and_queues_keep_their_places(vhost: VHost, connection: Peer) -> None:
    other = Peer("127.0.0.1", 2, "127.0.0.1", 5672, 0)
    queues = [declare(vhost, name) for name in ("a", "b")]
    trace = vhost.trace
    assert trace is not None
    wanted = []
    for number in range(12):
        client, queue, channel, flag = (
            [connection, other][number % 2],
            queues[number % 3 > 1],
            number % 4,
            number % 5 > 2,
        )
        message = trace.numbered(Message.build(Address("", queue.name), Properties(), b"b" * number))
        trace.published(client, channel, message, (queue,), flag)
        trace.delivered(queue, message, flag, client, channel, not flag)
        trace.acked(queue, message, client, channel)
        trace.confirmed(client, channel, message, number + 1, not flag)
        # The publishes of a turn precede its other events.
        vhost.broker.end_turn()
        if number == 7:
            records(vhost)
        common: dict[str, object] = {
            "connection": client.name,
            "channel": channel,
            "user": "guest" if client is connection else "",
        }
        facts: list[tuple[dict[str, object], int]] = [
            ({"event": "publish", "routed_queues": [queue.name], "mandatory": flag}, 0),
            ({"event": "deliver", "queue": queue.name, "redelivered": flag, "no_ack": not flag}, number),
            ({"event": "ack", "queue": queue.name}, 0),
            ({"event": "confirm", "is_ack": not flag}, number + 1),
        ]
        wanted += [(place | common, message.routing_key, value) for place, value in facts]
    assert [(row.place, row.address[1], row.values[0]) for row in rows(vhost)] == wanted


def test_a_record_is_written_after_a_while(vhost: VHost, connection: Peer) -> None:
    publish(vhost, connection, declare(vhost, "q"))
    vhost.broker.tick(RECORD_MS - 1)
    assert vhost.queues["trace"].ready_count == 0
    vhost.broker.tick(RECORD_MS)
    assert vhost.queues["trace"].ready_count == 1
    vhost.broker.tick(10 * RECORD_MS)
    assert vhost.queues["trace"].ready_count == 1


@pytest.mark.parametrize(("messages", "octets"), [(1, CONTENT_BYTES_MAX), (EVENTS_MAX, 0)])
def test_a_large_record_is_written_after_the_turn(vhost: VHost, connection: Peer, messages: int, octets: int) -> None:
    queue = declare(vhost, "q")
    for _ in range(messages):
        publish(vhost, connection, queue, bytes(octets))
    vhost.broker.drain_on()
    assert vhost.queues["trace"].ready_count == 0
    vhost.broker.end_turn()
    vhost.broker.drain_on()
    assert vhost.queues["trace"].ready_count == 1


def test_the_last_events_are_written_when_the_trace_stops(vhost: VHost, connection: Peer) -> None:
    publish(vhost, connection, declare(vhost, "q"))
    vhost.tracing.stop_recording()
    assert vhost.trace is None
    assert events(vhost) == [("publish", 1)]


def test_a_record_that_is_still_due_does_not_end_the_next_trace(vhost: VHost, connection: Peer) -> None:
    publish(vhost, connection, declare(vhost, "q"), bytes(CONTENT_BYTES_MAX))
    vhost.broker.end_turn()
    vhost.remove_queue(vhost.queues["trace"])
    record(vhost)
    vhost.broker.drain_on()
    assert vhost.tracing.recorder is not None


def test_a_trace_ends_with_its_queue(vhost: VHost, connection: Peer) -> None:
    queue = declare(vhost, "q")
    publish(vhost, connection, queue)
    vhost.remove_queue(vhost.queues["trace"])
    vhost.broker.tick(RECORD_MS)
    assert (vhost.trace, vhost.tracing.recorder) == (None, None)


def test_another_trace_replaces_the_first(vhost: VHost, connection: Peer) -> None:
    queue = declare(vhost, "q")
    publish(vhost, connection, queue)
    vhost.tracing.record(declare(vhost, "second", queue_type="stream"), Selection())
    publish(vhost, connection, queue)
    assert events(vhost) == [("publish", 1)]
    assert vhost.queues["second"].ready_count == 1


# Selections


def test_a_sample_has_all_events_of_its_messages(vhost: VHost, connection: Peer) -> None:
    record(vhost, Selection(one_in=4))
    queue = declare(vhost, "q", dead_letter_exchange="", dead_letter_routing_key="nowhere")
    for _ in range(1000):
        publish(vhost, connection, queue)
    queue.purge()
    kinds: dict[int, list[str]] = {}
    for kind, number in events(vhost):
        kinds.setdefault(number, []).append(kind)
    assert set(map(tuple, kinds.values())) == {("publish", "drop")}
    assert 230 <= len(kinds) <= 270


def test_names_select_messages_by_exchange_and_queue(vhost: VHost, connection: Peer) -> None:
    record(vhost, Selection(exchanges=frozenset({"amq.topic"}), queues=frozenset({"a", "b"})))
    for exchange, queue in (("amq.topic", "a"), ("amq.topic", "c"), ("", "a"), ("amq.topic", "b")):
        publish(vhost, connection, vhost.queues.get(queue) or declare(vhost, queue), exchange=exchange)
    assert events(vhost) == [("publish", 1), ("publish", 4)]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), [("publish", 1), ("expire", 1), ("dead_letter", 2), ("drop", 2)]),
        (Selection(queues=frozenset({"q"})), [("publish", 1), ("expire", 1), ("dead_letter", 2), ("drop", 2)]),
        (Selection(queues=frozenset({"dead"})), [("dead_letter", 2), ("drop", 2)]),
        (Selection(queues=frozenset({"other"})), []),
    ],
)
def test_dead_letters_follow_their_message_or_are_selected_themselves(
    vhost: VHost, connection: Peer, selection: Selection, expected: list[tuple[str, int]]
) -> None:
    record(vhost, selection)
    dead = declare(vhost, "dead")
    queue = declare(vhost, "q", message_ttl=100, dead_letter_exchange="", dead_letter_routing_key="dead")
    publish(vhost, connection, queue)
    vhost.broker.tick(100)
    dead.purge()
    assert events(vhost) == expected


def test_older_messages_have_the_number_0_and_no_selection_takes_them(vhost: VHost) -> None:
    queue = declare(vhost, "q")
    for selection in (Selection(), Selection(queues=frozenset({"q"}))):
        record(vhost, selection)
        queue.offer(Message.build(Address("", "q"), Properties(), b""))
        queue.purge()
    assert events(vhost) == [("drop", 0)]


@pytest.mark.parametrize("is_dead", [True, False])
def test_messages_of_a_trace_are_not_traced(vhost: VHost, connection: Peer, is_dead: bool) -> None:
    vhost.tracing.start()
    small = declare(vhost, "small", max_length=1, dead_letter_exchange="", dead_letter_routing_key="dead")
    vhost.bind(vhost.exchanges[TRACE_EXCHANGE], small, "#", {})
    dead = declare(vhost, "dead")
    queue = declare(vhost, "q")
    for _ in range(2):
        publish(vhost, connection, queue)
    (dead if is_dead else small).purge()
    assert events(vhost) == [("publish", 1), ("publish", 2)]


def test_a_recorded_message_keeps_what_it_carries(vhost: VHost) -> None:
    assert vhost.trace is not None
    message = SpecialMessage.of(Message.build(Address("", "q"), Properties(expiration="5"), b"body"))
    message.expiration_ms = 5
    numbered = vhost.trace.numbered(message)
    assert isinstance(numbered, SpecialMessage)
    assert (numbered.expiration_ms, numbered.number, message.number) == (5, 1, 0)


# With clients


def test_a_plain_publish_is_recorded_from_its_publish_to_its_ack(lab: Lab) -> None:
    client = lab.connect()
    client.declare("q")
    client.consume("q")
    client.call(Confirm.Select())
    record(lab.vhost)
    life = ["publish", "deliver", "confirm", "ack"]
    for tag, observer in enumerate((None, lambda *event: None), 1):
        if observer is not None:
            # With an observer, publishes are not plain.
            lab.vhost.tracing.observe(observer)
        client.publish("q", b"1")
        client.send(Basic.Ack(delivery_tag=tag))
        assert events(lab.vhost)[4 * tag - 4 :] == [(kind, tag) for kind in life]


def test_the_routes_of_a_trace_end_with_it(lab: Lab) -> None:
    client = lab.connect()
    client.declare("q")
    record(lab.vhost)
    client.publish("q", b"1")
    assert [route.is_recorded for route in client.session.routes.values()] == [True]
    lab.vhost.tracing.stop_recording()
    client.publish("q", b"2")
    assert [route.is_recorded for route in client.session.routes.values()] == [False]
    assert not lab.vhost.queues["q"].has_extras
