"""Streams with pika: append with confirms, read from an offset, resume, filter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from compat.brokers import BrokerProcess
from compat.unique_names import unique_name
from compat.waiting import wait_until

Connect = Callable[..., pika.BlockingConnection]
STREAM = {"x-queue-type": "stream"}


class Reader:
    """A consumer of a stream that acks each message, and keeps it with its offset."""

    def __init__(self, connection: pika.BlockingConnection, stream: str, offset: Any, **arguments: Any) -> None:
        self.channel = connection.channel()
        self.channel.basic_qos(prefetch_count=10)
        self.bodies: list[bytes] = []
        self.offsets: list[int] = []
        given = {name.replace("_", "-"): value for name, value in arguments.items()}
        self.channel.basic_consume(stream, self.on_message, arguments={"x-stream-offset": offset, **given})

    def on_message(self, channel: BlockingChannel, method: Any, properties: Any, body: bytes) -> None:
        self.bodies.append(body)
        self.offsets.append(properties.headers["x-stream-offset"])
        channel.basic_ack(method.delivery_tag)

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(self.bodies) >= count, pause=self.channel.connection.process_data_events)
        assert len(self.bodies) == count


@pytest.fixture
def stream(channel: BlockingChannel) -> str:
    name = unique_name("stream")
    channel.queue_declare(name, durable=True, arguments=STREAM)
    channel.confirm_delivery()
    return name


def append(channel: BlockingChannel, stream: str, *bodies: bytes, **headers: Any) -> None:
    for body in bodies:
        channel.basic_publish("", stream, body, pika.BasicProperties(headers=headers or None))


def numbered(count: int) -> list[bytes]:
    return [str(number).encode() for number in range(count)]


def test_each_reader_reads_all_from_its_offset(
    connection: pika.BlockingConnection, channel: BlockingChannel, stream: str
) -> None:
    append(channel, stream, *numbered(100))
    everything, rest = Reader(connection, stream, "first"), Reader(connection, stream, 90)
    everything.wait_for(100)
    rest.wait_for(10)
    assert everything.bodies == numbered(100)
    assert everything.offsets == list(range(100))
    assert rest.offsets == list(range(90, 100))


def test_a_reader_resumes_at_its_last_offset(connect: Connect, channel: BlockingChannel, stream: str) -> None:
    append(channel, stream, b"one", b"two")
    away = connect()
    reader = Reader(away, stream, "first")
    reader.wait_for(2)
    away.close()
    append(channel, stream, b"three")
    again = Reader(connect(), stream, reader.offsets[-1] + 1)
    append(channel, stream, b"four")
    again.wait_for(2)
    assert again.bodies == [b"three", b"four"]


def test_a_reader_of_the_last_hour_and_one_of_new_messages(
    connection: pika.BlockingConnection, channel: BlockingChannel, stream: str
) -> None:
    append(channel, stream, b"old")
    hour, following = Reader(connection, stream, "1h"), Reader(connection, stream, "next")
    append(channel, stream, b"new")
    hour.wait_for(2)
    following.wait_for(1)
    assert (hour.bodies, following.bodies) == ([b"old", b"new"], [b"new"])


def test_a_stream_survives_a_crash(own_broker: BrokerProcess) -> None:
    parameters = pika.ConnectionParameters(own_broker.host, own_broker.port)
    before = pika.BlockingConnection(parameters).channel()
    before.queue_declare("s", durable=True, arguments=STREAM)
    before.confirm_delivery()
    append(before, "s", *numbered(20))
    own_broker.restart()
    connection = pika.BlockingConnection(parameters)
    channel = connection.channel()
    channel.confirm_delivery()
    append(channel, "s", b"after")
    reader = Reader(connection, "s", 18)
    reader.wait_for(3)
    assert reader.bodies == [b"18", b"19", b"after"]
    assert reader.offsets == [18, 19, 20]
    connection.close()


def test_a_reader_without_a_prefetch_is_refused(channel: BlockingChannel, stream: str) -> None:
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.basic_consume(stream, lambda *_: None)
    assert caught.value.reply_code == 406


def test_a_filter_skips_other_messages(
    connection: pika.BlockingConnection, channel: BlockingChannel, stream: str
) -> None:
    append(channel, stream, b"a", **{"x-stream-filter-value": "a"})
    append(channel, stream, b"b", **{"x-stream-filter-value": "b"})
    append(channel, stream, b"none")
    only_a = Reader(connection, stream, "first", x_stream_filter="a")
    unfiltered = Reader(connection, stream, "first", x_stream_filter=["b"], x_stream_match_unfiltered=True)
    unfiltered.wait_for(2)
    only_a.wait_for(1)
    assert (only_a.bodies, unfiltered.bodies) == ([b"a"], [b"b", b"none"])
