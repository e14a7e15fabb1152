"""A test inspects a capture, saves it to a file and replays it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pika
import pytest

from amqp_broker.management.documents.capture_file import CaptureFileError
from amqp_broker.server.replay_runner import ReplayLost
from amqp_broker.testing.embedded_broker import EmbeddedBroker
from amqp_broker.testing.embedded_vhost import EmbeddedVHost

HOUR_MS = 3_600_000


@pytest.fixture
def vhost() -> Iterator[EmbeddedVHost]:
    with EmbeddedBroker() as broker, broker.vhost() as vhost:
        yield vhost


@pytest.fixture
def channel(vhost: EmbeddedVHost) -> Iterator[pika.adapters.blocking_connection.BlockingChannel]:
    with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("q")
        yield channel


def test_a_capture_has_the_messages_of_its_block(vhost: EmbeddedVHost, channel: pika.channel) -> None:
    vhost.broker.clock.freeze()
    channel.basic_publish("", "q", b"before")
    with vhost.capture() as capture:
        channel.basic_publish("", "q", b"1", pika.BasicProperties(type="order", headers={"n": 1}))
        vhost.broker.clock.advance(timedelta(seconds=2))
        channel.basic_publish("amq.topic", "x", b"2")
    channel.basic_publish("", "q", b"after")
    first, second = capture.messages
    assert (first.at_us, first.exchange, first.routing_key, first.body) == (0, "", "q", b"1")
    assert (first.properties, first.mandatory, first.user) == ({"type": "order", "headers": {"n": 1}}, False, "guest")
    assert (second.at_us, second.exchange, second.body) == (2_000_000, "amq.topic", b"2")


def test_a_capture_has_only_matching_messages(vhost: EmbeddedVHost, channel: pika.channel) -> None:
    with vhost.capture(exchange="amq.topic", routing_key="a.*") as capture:
        for exchange, key in (("amq.topic", "a.b"), ("amq.topic", "b"), ("", "a.c")):
            channel.basic_publish(exchange, key, b"")
    assert [message.routing_key for message in capture.messages] == ["a.b"]


def test_a_replay_advances_a_frozen_clock(vhost: EmbeddedVHost, channel: pika.channel, tmp_path: Path) -> None:
    broker = vhost.broker
    channel.queue_declare("short", arguments={"x-message-ttl": HOUR_MS // 2})
    broker.clock.freeze()
    with vhost.capture() as capture:
        channel.basic_publish("", "short", b"1")
        broker.clock.advance(timedelta(hours=1))
        channel.basic_publish("", "short", b"2")
    capture.save(tmp_path / "run.jsonl")
    channel.queue_purge("short")
    began_ms, began_s = broker.clock.now_ms(), time.monotonic()
    assert vhost.replay(tmp_path / "run.jsonl") == (2, 2, 0, 0)
    assert broker.clock.now_ms() - began_ms == HOUR_MS
    # The first has expired, as it had.
    assert [message.body for message in vhost.messages("short")] == [b"2"]
    vhost.replay(capture, speed=2)
    assert broker.clock.now_ms() - began_ms == HOUR_MS * 3 // 2
    vhost.replay(capture, speed=math.inf)
    assert broker.clock.now_ms() - began_ms == HOUR_MS * 3 // 2
    assert time.monotonic() - began_s < 60


def test_a_capture_is_replayed_into_another_vhost(vhost: EmbeddedVHost, channel: pika.channel) -> None:
    with vhost.capture() as capture:
        channel.basic_publish("", "q", b"1")
    with vhost.broker.vhost() as other, pika.BlockingConnection(pika.URLParameters(other.url)) as connection:
        connection.channel().queue_declare("q")
        assert other.replay(capture, speed=math.inf).confirmed == 1
        assert other.depth("q") == 1
        connection.close()


def test_invalid_replays_are_refused(vhost: EmbeddedVHost, channel: pika.channel, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_bytes(b"{}\n")
    with pytest.raises(CaptureFileError):
        vhost.replay(file)
    with vhost.capture() as capture:
        channel.exchange_declare("e")
        channel.basic_publish("e", "q", b"1")
    with pytest.raises(ValueError, match="the speed must be"):
        vhost.replay(capture, speed=-1)
    channel.exchange_delete("e")
    with pytest.raises(ReplayLost, match="no exchange 'e'"):
        vhost.replay(capture)
    assert vhost.depth("q") == 0


async def test_a_replay_in_the_loop_of_the_broker_is_refused() -> None:
    async with EmbeddedBroker().run_in_loop() as broker:
        with broker.vhost() as vhost:
            with vhost.capture() as capture:
                pass
            with pytest.raises(RuntimeError, match="runs in the event loop of the caller"):
                vhost.replay(capture)
