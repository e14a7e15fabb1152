"""RPC with pika, as in its tutorial: a server process and a client with a queue for its replies."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from compat.brokers import BrokerProcess
from compat.unique_names import unique_name
from compat.waiting import wait_until

SERVER = Path(__file__).with_name("rpc_server.py")


class FibonacciClient:
    """Calls the server and waits for the reply that has the call's correlation id."""

    def __init__(self, channel: BlockingChannel, server_queue: str, direct: bool = False) -> None:
        self.channel, self.server_queue = channel, server_queue
        # The server may not have started yet; a call to a queue that does not exist would be dropped.
        channel.queue_declare(server_queue)
        self.replies: dict[str, bytes] = {}
        self.reply_to = "amq.rabbitmq.reply-to"
        if not direct:
            self.reply_to = channel.queue_declare("", exclusive=True).method.queue
        channel.basic_consume(self.reply_to, self.on_reply, auto_ack=True)

    def on_reply(
        self, _channel: BlockingChannel, _method: object, properties: pika.BasicProperties, body: bytes
    ) -> None:
        self.replies[properties.correlation_id] = body

    def call(self, number: int) -> int:
        call_id = str(uuid.uuid4())
        properties = pika.BasicProperties(reply_to=self.reply_to, correlation_id=call_id)
        self.channel.basic_publish("", self.server_queue, str(number).encode(), properties)
        wait_until(lambda: call_id in self.replies, pause=self.channel.connection.process_data_events)
        return int(self.replies.pop(call_id))


@pytest.fixture(scope="module")
def server_queue(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Queue of a server process that answers with Fibonacci numbers."""
    queue = unique_name("rpc")
    with subprocess.Popen(
        [sys.executable, str(SERVER)],
        cwd=tmp_path_factory.mktemp("rpc"),
        env={**os.environ, "AMQP_URL": broker.url, "RPC_QUEUE": queue},
    ) as process:
        yield queue
        process.terminate()


def test_calls_are_answered_through_an_exclusive_reply_queue(channel: BlockingChannel, server_queue: str) -> None:
    client = FibonacciClient(channel, server_queue)
    assert [client.call(number) for number in (0, 1, 10, 20)] == [0, 1, 55, 6765]


def test_calls_are_answered_through_direct_reply_to(channel: BlockingChannel, server_queue: str) -> None:
    client = FibonacciClient(channel, server_queue, direct=True)
    assert [client.call(number) for number in (3, 30)] == [2, 832040]


def test_two_clients_get_their_own_replies(connection: pika.BlockingConnection, server_queue: str) -> None:
    first, second = (FibonacciClient(connection.channel(), server_queue) for _ in range(2))
    assert [first.call(7), second.call(8), first.call(9)] == [13, 21, 34]
    assert not first.replies
    assert not second.replies
