"""A broker whose trace goes to a stream, and messages for the trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pika
from pika.adapters.blocking_connection import BlockingChannel

from amqp_broker.broker.observe.selection import Selection
from amqp_broker.server.server import Server
from tests.running import RunningServer

STREAM = {"x-queue-type": "stream"}


@contextmanager
def channel_at(url: str) -> Iterator[BlockingChannel]:
    parameters = pika.URLParameters(url)
    parameters.client_properties = {"connection_name": "worker"}
    with pika.BlockingConnection(parameters) as connection:
        yield connection.channel()


def trace_to(broker: RunningServer, queue: str = "trace") -> None:
    """Declare a stream, and write the trace to it."""
    with channel_at(broker.url) as channel:
        channel.queue_declare(queue, durable=True, arguments=STREAM)

    def start(server: Server) -> None:
        vhost = server.broker.vhosts["/"]
        vhost.tracing.record(vhost.queues[queue], Selection())

    broker.ask(start)


def written_events(broker: RunningServer) -> int:
    """Return the number of events of the trace, which are all in the stream then."""

    def flush(server: Server) -> int:
        recorder = server.broker.vhosts["/"].tracing.recorder
        assert recorder is not None
        recorder.flush()
        server.flush()
        return recorder.events

    return broker.ask(flush)


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
