"""A broker whose trace goes to a stream, and messages for the trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pika
from pika.adapters.blocking_connection import BlockingChannel

STREAM = {"x-queue-type": "stream"}
TRACE_EXCHANGE = "amq.rabbitmq.trace"


@contextmanager
def channel_at(url: str) -> Iterator[BlockingChannel]:
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        yield connection.channel()


def bind_trace(channel: BlockingChannel, queue: str = "trace") -> None:
    channel.queue_declare(queue, durable=True, arguments=STREAM)
    channel.queue_bind(queue, TRACE_EXCHANGE, "#")


def work(channel: BlockingChannel, count: int, queue: str = "q") -> None:
    """Publish `count` messages with confirms, get and ack each: four events per message."""
    channel.queue_declare(queue)
    channel.confirm_delivery()
    for number in range(count):
        properties = pika.BasicProperties(headers={"number": number}, content_type="text/plain", timestamp=7)
        channel.basic_publish("", queue, b"body %d" % number, properties)
    for _ in range(count):
        method, _, _ = channel.basic_get(queue)
        channel.basic_ack(method.delivery_tag)
    # Wait for the last ack, which has no answer.
    channel.queue_declare(queue, passive=True)
