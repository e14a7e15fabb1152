"""Records are decoded to the events that a recorder received; damaged ones are poison."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqp_broker.amqp.message import Address, Message, Properties
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.clients.peer import Peer
from amqp_broker.broker.observe.recorder import Recorder
from amqp_broker.broker.observe.selection import Selection
from amqp_broker.broker.queues.queue import Queue, QueueDeclaration
from amqp_broker.broker.vhost import VHost
from amqp_broker.pipeline.event_rows import ARROW
from amqp_broker.pipeline.trace_records import POISON, Poison, decoded, events_of_record, properties_text
from amqp_broker.settings.settings import Settings

SCHEMA = pa.schema([*ARROW, *POISON])
# Names as a broker has them: octets that are not UTF-8 are surrogates.
NAMES = st.binary(min_size=1, max_size=12).map(lambda octets: octets.decode("utf-8", "surrogateescape"))


class Tape:
    """A recorder, and what it must be decoded to."""

    def __init__(self) -> None:
        broker = Broker(Settings(), bytes)
        broker.add_defaults()
        self.vhost: VHost = broker.vhosts["/"]
        self.now_us = 1_790_000_000_000_000
        broker.now_us = self.tick
        self.stream = self.declare("t", {"x-queue-type": "stream"})
        self.recorder = Recorder(self.vhost, self.stream, Selection(), lambda: None)
        self.connection = Peer("127.0.0.1", 1, "127.0.0.1", 5672, 0)
        self.connection.user = broker.users["guest"]
        self.expected: list[dict[str, Any]] = []

    def tick(self) -> int:
        self.now_us += 7
        return self.now_us

    def declare(self, name: str, arguments: dict[str, Any]) -> Queue:
        return self.vhost.declare_queue(QueueDeclaration(name, arguments, is_durable=True))

    def publish(self, exchange: str, key: str, body: bytes, properties: Properties, queues: list[Queue]) -> Message:
        # The publishes of a turn precede its other events.
        self.vhost.broker.end_turn()
        message = self.recorder.numbered(Message.build(Address(exchange, key), properties, body, 8192))
        self.recorder.published(self.connection, 3, message, queues)
        table = dict(reversed(properties.as_dict().items()))
        self.expect("publish", message, routed_queues=sorted(shown(queue.name) for queue in queues), body=body)
        self.expected[-1] |= {"body_bytes": len(body), "properties": table, **self.client}
        return message

    def expect(self, event: str, message: Message, **facts: Any) -> None:
        address = {"exchange": shown(message.exchange), "routing_key": shown(message.routing_key)}
        self.expected.append({"event": event, "message_number": self.vhost.broker.message_count, **address, **facts})

    @property
    def client(self) -> dict[str, Any]:
        return {"connection": self.connection.name, "channel": 3, "user": "guest"}

    def live(self, message: Message, queue: Queue) -> None:
        """Let a message have one event of each kind."""
        recorder, connection = self.recorder, self.connection
        of_queue = {"queue": shown(queue.name), **self.client}
        recorder.confirmed(connection, 3, message, 5, False)
        self.expect("confirm", message, is_ack=False, publish_number=5, **self.client)
        recorder.returned(connection, 3, message, 312, "NO_ROUTE")
        self.expect("return", message, reply_code=312, reply_text="NO_ROUTE", **self.client)
        recorder.delivered(queue, message, True, connection, 3, False)
        self.expect("deliver", message, redelivered=True, no_ack=False, body_bytes=message.body_bytes, **of_queue)
        recorder.nacked(queue, message, True, connection, 3)
        self.expect("nack", message, requeue=True, **of_queue)
        recorder.acked(queue, message, connection, 3)
        self.expect("ack", message, **of_queue)
        for reason, event in (("expired", "expire"), ("maxlen", "drop")):
            recorder.given_up(queue, message, reason)
            facts = {"reason": reason} if event == "drop" else {}
            self.expect(event, message, queue=shown(queue.name), **facts)
        origin = self.vhost.broker.message_count
        dead = recorder.numbered(message, message)
        recorder.dead_lettered(queue, message, dead, "expired", [queue])
        name = shown(queue.name)
        reached = {"queue": name, "reason": "expired", "routed_queues": [name]}
        self.expect("dead_letter", dead, from_message_number=origin, death_count=1, **reached)

    def record(self) -> bytes:
        self.recorder.flush()
        [message] = self.stream.messages()
        return message.body


def shown(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


@given(
    exchange=NAMES,
    key=NAMES,
    name=NAMES.filter(lambda name: not name.startswith("amq.")),
    bodies=st.lists(st.binary(max_size=40), min_size=1, max_size=4),
    app_id=st.text(max_size=5),
    priority=st.none() | st.integers(0, 255),
)
def test_events_are_decoded_as_they_were_recorded(
    exchange: str, key: str, name: str, bodies: list[bytes], app_id: str, priority: int | None
) -> None:
    tape = Tape()
    queue = tape.declare("q" + shown(name), {})
    for body in bodies:
        properties = Properties(app_id=app_id, headers={"a": 1}, priority=priority)
        tape.live(tape.publish(exchange, key, body, properties, [queue, tape.stream]), queue)
    rows = events_of_record(tape.record(), "t", 17, SCHEMA).to_pylist()
    assert len(rows) == len(tape.expected)
    of_all = {"node": "rabbit@localhost", "vhost": "/", "time_source": "broker", "trace_queue": "t", "trace_offset": 17}
    of_all["numbered_since_us"] = tape.vhost.broker.message_numbers.since_us
    for index, (row, expected) in enumerate(zip(rows, tape.expected, strict=True)):
        if row["properties"] is not None:
            row["properties"] = json.loads(row["properties"])
        assert row.pop("time").timestamp() > 1_790_000_000
        assert {column: value for column, value in row.items() if value is not None} == {
            **of_all,
            **expected,
            "trace_index": index,
        }
    assert [row["trace_index"] for row in rows] == list(range(len(rows)))


def test_a_body_of_several_frames_is_whole() -> None:
    tape = Tape()
    body = bytes(range(256)) * 100
    tape.publish("", "k", body, Properties(), [])
    record = tape.record()
    assert events_of_record(record, "t", 0, SCHEMA).column("body").to_pylist() == [body]
    assert events_of_record(record, "t", 0, SCHEMA, with_bodies=False).column("body").to_pylist() == [None]


def test_a_message_that_is_older_than_the_trace_has_no_number() -> None:
    tape = Tape()
    tape.recorder.given_up(tape.stream, Message.build(Address("", "k"), Properties(), b""), "maxlen")
    assert events_of_record(tape.record(), "t", 0, SCHEMA).column("message_number").to_pylist() == [None]


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda record: record[:5], "a damaged record: unpack_from requires a buffer of at least 16 bytes"),
        (lambda record: b"ATR9" + record[4:], "a record of an unknown version"),
        (lambda record: b"ATR1" + record[4:], "a record of an unknown version"),
        (lambda record: record[:-1], "a record that is cut off"),
        (lambda record: record + b"x", "a record that is cut off"),
        (lambda record: record.replace(b'{"node"', b'["node"'), "a damaged record: "),
        (lambda record: record.replace(b'"node"', b'"edon"'), "a damaged record: 'node'"),
    ],
)
def test_a_damaged_record_is_poison(spoil: Any, reason: str) -> None:
    tape = Tape()
    tape.publish("", "k", b"body", Properties(), [])
    with pytest.raises(Poison) as caught:
        events_of_record(spoil(tape.record()), "t", 0, SCHEMA)
    assert str(caught.value).startswith(reason)


@given(st.data())
def test_no_octet_of_a_record_makes_the_decoder_fail(data: st.DataObject) -> None:
    tape = Tape()
    tape.live(tape.publish("", "k", b"body", Properties(app_id="a"), [tape.stream]), tape.stream)
    record = bytearray(tape.record())
    for _ in range(data.draw(st.integers(1, 4))):
        record[data.draw(st.integers(0, len(record) - 1))] = data.draw(st.integers(0, 255))
    columns = {"body": [bytes(record)], "queue": ["t"], "routing_key": ["records"], "offset": [0]}
    batch = pa.RecordBatch.from_pydict({**columns, "headers": [None], "error": [None]})
    for rows in decoded(iter([batch]), ARROW):
        rows.validate(full=True)


def test_a_timestamp_remains_in_seconds() -> None:
    timestamp_flag = 1 << 6
    assert properties_text(timestamp_flag.to_bytes(2) + (7).to_bytes(8)) == '{"timestamp": 7}'
