"""Shovels to and from the real RabbitMQ, which is killed midway: no confirmed message is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from compat.oracles.rabbitmq import RabbitMQ
from tests.running import RunningServer

pytestmark = pytest.mark.verify

COUNT = 20_000


@pytest.fixture
def rabbitmq(tmp_path: Path) -> Iterator[RabbitMQ]:
    if not RabbitMQ.is_installed():
        pytest.skip("RabbitMQ is not installed")
    broker = RabbitMQ(tmp_path / "rabbitmq")
    broker.start()
    yield broker
    broker.kill()


def channel_of(port: int) -> pika.adapters.blocking_connection.BlockingChannel:
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port)).channel()


def test_nothing_is_lost_when_the_destination_is_killed_midway(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    channel_of(rabbitmq.port).queue_declare("taken-over", durable=True)
    # A kill soon after a declaration loses the queue: RabbitMQ's database writes it later.
    rabbitmq.run("rabbitmqctl", "eval", "mnesia:sync_log().")
    with RunningServer(ephemeral=False, data_dir=str(tmp_path / "data")) as here:
        channel = channel_of(here.port)
        channel.queue_declare("q", durable=True)
        properties = pika.BasicProperties(delivery_mode=2, headers={"kind": "probe"}, content_type="text/plain")
        for number in range(COUNT):
            channel.basic_publish("", "q", b"%d" % number, properties)
        channel.queue_declare("q", passive=True)  # the answer comes once all messages are in the queue
        value = {
            "src-uri": "amqp://",
            "src-queue": "q",
            "dest-uri": f"amqp://127.0.0.1:{rabbitmq.port}",
            "dest-queue": "taken-over",
            "src-delete-after": "queue-length",
        }
        here.ask(lambda server: server.broker.vhosts["/"].parameters.set("shovel", "s", value))
        here.until(lambda server: any(shovel.forwarded_count > COUNT / 4 for shovel in server.shovels))
        rabbitmq.restart()
        here.until(lambda server: not list(server.shovels))
        assert here.ask(lambda server: server.broker.vhosts["/"].queues["q"].ready_count) == 0
    received: dict[int, int] = {}
    taken_over = channel_of(rabbitmq.port)
    # All messages are confirmed, so the number is final: on a slow machine, silence would not show that.
    left = taken_over.queue_declare("taken-over", passive=True).method.message_count
    assert left >= COUNT
    for method, told, body in taken_over.consume("taken-over", auto_ack=True):
        assert method is not None
        assert (told.delivery_mode, told.headers, told.content_type) == (2, {"kind": "probe"}, "text/plain")
        received[int(body)] = received.get(int(body), 0) + 1
        left -= 1
        if left == 0:
            break
    assert received.keys() == set(range(COUNT))


def test_a_queue_is_moved_from_rabbitmq(rabbitmq: RabbitMQ) -> None:
    channel = channel_of(rabbitmq.port)
    channel.queue_declare("q", durable=True)
    for number in range(1000):
        channel.basic_publish("", "q", b"%d" % number)
    channel.connection.close()
    with RunningServer() as here:
        uri = f"amqp://guest:guest@127.0.0.1:{rabbitmq.port}/%2f"
        value = {"src-uri": uri, "src-queue": "q", "dest-uri": "amqp://", "dest-queue": "here"}
        here.ask(lambda server: server.broker.vhosts["/"].parameters.set("shovel", "s", value))
        here.until(lambda server: "here" in server.broker.vhosts["/"].queues)
        here.until(lambda server: server.broker.vhosts["/"].queues["here"].ready_count == 1000)
        bodies = here.ask(
            lambda server: [message.body for message in server.broker.vhosts["/"].queues["here"].messages()]
        )
        assert bodies == [b"%d" % number for number in range(1000)]
