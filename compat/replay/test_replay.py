"""A capture is replayed to the real RabbitMQ: the same messages, with the same time between them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pika
import pytest

from compat.oracles.rabbitmq import RabbitMQ
from tests.cli.program import run
from tests.running import RunningServer

PAUSE_S = 0.3


def channel_of(url: str) -> Any:
    channel = pika.BlockingConnection(pika.URLParameters(url)).channel()
    channel.queue_declare("orders", durable=True)
    channel.exchange_declare("events", "topic", durable=True)
    channel.queue_bind("orders", "events", "order.#")
    channel.confirm_delivery()
    return channel


@pytest.mark.verify
@pytest.mark.skipif(not RabbitMQ.is_installed(), reason="RabbitMQ is not installed")
def test_rabbitmq_receives_the_captured_messages_with_their_timing(tmp_path: Path) -> None:
    properties = pika.BasicProperties(
        content_type="text/plain",
        headers={"n": 1, "big": 1 << 40, "octets": b"\xff", "nested": {"list": [1, "a", None, True]}},
        delivery_mode=2,
        priority=3,
        user_id="guest",
    )
    bodies = [b"text", b"\xff\x00", b"x" * 300_000]
    file = tmp_path / "run.jsonl"
    with RunningServer() as here, here.vhost() as vhost:
        channel = channel_of(vhost.url)
        with vhost.capture() as capture:
            for body in bodies:
                channel.basic_publish("events", "order.new", body, properties)
            time.sleep(PAUSE_S)
            channel.basic_publish("", "orders", b"last")
        channel.connection.close()
        capture.save(file)
    rabbitmq = RabbitMQ(tmp_path / "rabbitmq")
    rabbitmq.start()
    try:
        channel = channel_of(rabbitmq.url)
        began_s = time.monotonic()
        done = run("replay", str(file), "--url", rabbitmq.url)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("4 published, 4 confirmed, 0 nacked, 0 returned")
        assert time.monotonic() - began_s >= PAUSE_S
        got = [channel.basic_get("orders", auto_ack=True) for _ in range(4)]
        assert [body for _, _, body in got] == [*bodies, b"last"]
        assert [method.routing_key for method, _, _ in got] == ["order.new"] * 3 + ["orders"]
        told = got[0][1]
        assert told.headers == properties.headers
        assert (told.content_type, told.delivery_mode, told.priority, told.user_id) == ("text/plain", 2, 3, "guest")

        channel.exchange_delete("events")
        done = run("replay", str(file), "--url", rabbitmq.url)
        assert done.returncode == 69
        assert done.stderr.startswith("amqp-broker: 404 NOT_FOUND - no exchange 'events' in vhost '/'.")
        assert channel.basic_get("orders") == (None, None, None)
    finally:
        rabbitmq.kill()
