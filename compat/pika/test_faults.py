"""pika under each fault."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from compat.waiting import wait_until
from tests.running import RunningServer

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def running() -> Iterator[RunningServer]:
    with RunningServer() as server:
        yield server


def connect(running: RunningServer, **options: Any) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", running.port, **options))


@pytest.fixture
def channel(running: RunningServer) -> Iterator[BlockingChannel]:
    connection = connect(running)
    channel = connection.channel()
    channel.queue_declare("q")
    yield channel
    if connection.is_open:
        connection.close()


def publish(channel: BlockingChannel, body: bytes = b"x", **options: Any) -> None:
    channel.basic_publish("", "q", body, **options)


def ready(running: RunningServer) -> int:
    return running.ask(lambda server: server.broker.vhosts["/"].queues["q"].ready_count)


def test_a_nack_raises_and_the_message_is_not_stored(running: RunningServer, channel: BlockingChannel) -> None:
    rule = running.faults.add("confirm_nack", routing_key="q", times=1)
    channel.confirm_delivery()
    with pytest.raises(pika.exceptions.NackError):
        publish(channel)
    publish(channel)
    assert (ready(running), rule.hits) == (1, 1)


def test_a_late_confirm_is_waited_for(running: RunningServer, channel: BlockingChannel) -> None:
    running.faults.add("confirm_delay", delay_ms=300, times=1)
    channel.confirm_delivery()
    began = time.monotonic()
    publish(channel)
    assert time.monotonic() - began > 0.29


def test_a_lost_confirm_is_waited_for(running: RunningServer, channel: BlockingChannel) -> None:
    running.faults.add("confirm_drop", times=1)
    channel.confirm_delivery()
    done = threading.Event()

    def wait() -> None:
        with pytest.raises(pika.exceptions.AMQPError):
            publish(channel)
        done.set()

    threading.Thread(target=wait, daemon=True).start()
    running.until(lambda server: server.broker.vhosts["/"].queues["q"].ready_count == 1)
    assert not done.wait(0.3)
    running.faults.add("cut")
    assert done.wait(5)


def test_a_routable_message_is_returned(running: RunningServer, channel: BlockingChannel) -> None:
    running.faults.add("return", times=1)
    channel.confirm_delivery()
    with pytest.raises(pika.exceptions.UnroutableError):
        publish(channel, mandatory=True)
    publish(channel, mandatory=True)
    assert ready(running) == 1


@pytest.mark.parametrize("on", ["publish", "confirm"])
def test_a_closed_channel_raises(running: RunningServer, channel: BlockingChannel, on: str) -> None:
    running.faults.add("close_channel", on=on, code=404, text="NOT_FOUND - no exchange 'x' in vhost '/'", times=1)
    channel.confirm_delivery()
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as caught:
        publish(channel)
    assert (caught.value.reply_code, caught.value.reply_text) == (404, "NOT_FOUND - no exchange 'x' in vhost '/'")
    assert (ready(running), channel.connection.is_open) == (on == "confirm", True)


def test_a_closed_connection_raises(running: RunningServer, channel: BlockingChannel) -> None:
    running.faults.add("close_connection", vhost="/")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as caught:
        channel.queue_declare("q")
    assert caught.value.reply_code == 320


@pytest.mark.parametrize("action", ["cut", "reset"])
@pytest.mark.parametrize("is_mid_frame", [True, False])
def test_a_lost_socket_raises(
    running: RunningServer, channel: BlockingChannel, action: str, is_mid_frame: bool
) -> None:
    running.faults.add(action, on="confirm", is_mid_frame=is_mid_frame, times=1)
    channel.confirm_delivery()
    with pytest.raises(pika.exceptions.AMQPConnectionError) as caught:
        publish(channel)
    if action == "reset":
        assert "ECONNRESET" in repr(caught.value) or "ConnectionResetError" in repr(caught.value)
    else:
        assert "RESET" not in repr(caught.value)
    assert ready(running) == 1


def test_a_black_hole_ends_when_its_rule_is_removed(running: RunningServer, channel: BlockingChannel) -> None:
    rule = running.faults.add("black_hole")
    failed = threading.Event()

    def wait() -> None:
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            channel.queue_declare("q")
        failed.set()

    threading.Thread(target=wait, daemon=True).start()
    assert not failed.wait(0.5)

    def remove(server: Any) -> None:
        server.broker.faults.remove(rule.id)
        server.flush()

    running.ask(remove)
    assert failed.wait(5)
    running.until(lambda server: not server.transports)


def test_connecting_succeeds_after_refused_connections(running: RunningServer) -> None:
    running.faults.add("refuse", times=2)
    for _ in range(2):
        # Pika asks for the name of its peer, and raises ValueError if the connection is reset just before.
        with pytest.raises((pika.exceptions.AMQPConnectionError, ValueError)):
            connect(running)
    connect(running, connection_attempts=2).close()


def test_a_refused_login_raises(running: RunningServer) -> None:
    running.faults.add("refuse_login", user="gu*", times=1)
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        connect(running)
    connect(running).close()


def test_a_blocked_connection_times_out(running: RunningServer) -> None:
    connection = connect(running, blocked_connection_timeout=1)
    running.faults.add("block", text="low on memory", client_property={"product": "Pika*"})
    with pytest.raises(pika.exceptions.ConnectionBlockedTimeout):
        connection.sleep(20)


def test_a_blocked_connection_continues(running: RunningServer, channel: BlockingChannel) -> None:
    heard: list[str] = []
    channel.connection.add_on_connection_blocked_callback(lambda _, frame: heard.append(frame.method.reason))
    channel.connection.add_on_connection_unblocked_callback(lambda *_: heard.append("unblocked"))
    running.faults.add("block", text="low on disk", duration_ms=200)
    publish(channel)
    wait_until(lambda: len(heard) == 2, pause=channel.connection.sleep)
    assert heard == ["low on disk", "unblocked"]
    assert channel.queue_declare("q", passive=True).method.message_count == 1


def test_a_blocked_connection_is_unblocked(running: RunningServer, channel: BlockingChannel) -> None:
    heard: list[str] = []
    channel.connection.add_on_connection_blocked_callback(lambda *_: heard.append("blocked"))
    channel.connection.add_on_connection_unblocked_callback(lambda *_: heard.append("unblocked"))
    running.faults.add("block")
    wait_until(lambda: heard, pause=channel.connection.sleep)
    publish(channel)
    running.faults.add("unblock")
    wait_until(lambda: len(heard) == 2 and ready(running), pause=channel.connection.sleep)
    assert (heard, ready(running)) == (["blocked", "unblocked"], 1)


@pytest.mark.parametrize("kill", [False, True])
def test_confirmed_messages_survive_a_restart(tmp_path: Path, kill: bool) -> None:
    with RunningServer(ephemeral=False, data_dir=str(tmp_path)) as running:
        channel = connect(running).channel()
        channel.queue_declare("q", durable=True)
        channel.confirm_delivery()
        publish(channel, b"before", properties=pika.BasicProperties(delivery_mode=2))
        running.restart(kill=kill)
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            publish(channel, b"lost")
        channel = connect(running).channel()
        assert [channel.basic_get("q")[2] for _ in range(2)] == [b"before", None]


def test_a_consumer_is_cancelled(running: RunningServer, channel: BlockingChannel) -> None:
    publish(channel)
    running.faults.add("cancel_consumer", on="deliver", queue="q")
    got = []
    for method, _, _ in channel.consume("q", inactivity_timeout=5):
        if method is None:
            break
        got.append(method.delivery_tag)
        channel.basic_ack(method.delivery_tag)
    # pika ends the loop when the broker cancels.
    assert got == [1]


def test_missing_heartbeats_are_noticed(running: RunningServer) -> None:
    connection = connect(running, heartbeat=1)
    running.faults.add("stop_heartbeats")
    with pytest.raises(pika.exceptions.AMQPHeartbeatTimeout):
        connection.sleep(20)


def test_held_messages_come_one_by_one(running: RunningServer, channel: BlockingChannel) -> None:
    rule = running.faults.add("hold_delivery")
    got: list[bytes] = []
    channel.basic_consume("q", lambda channel, method, properties, body: got.append(body), auto_ack=True)
    for body in (b"1", b"2", b"3"):
        publish(channel, body)
    running.faults.release(rule)
    wait_until(lambda: got == [b"1"], pause=channel.connection.sleep)
    running.faults.release(rule, 2)
    wait_until(lambda: got == [b"1", b"2", b"3"], pause=channel.connection.sleep)


def test_deliveries_are_duplicated_and_delayed(running: RunningServer, channel: BlockingChannel) -> None:
    running.faults.add("duplicate", times=1)
    running.faults.add("delay_delivery", delay_ms=60_000, after=1, times=1)
    channel.basic_qos(prefetch_count=3)
    got: list[tuple[bytes, bool]] = []

    def take(_: Any, method: Any, __: Any, body: bytes) -> None:
        got.append((body, method.redelivered))
        channel.basic_ack(method.delivery_tag)

    channel.basic_consume("q", take)
    for body in (b"1", b"2", b"3"):
        publish(channel, body)
    wait_until(lambda: len(got) == 3, pause=channel.connection.sleep)
    running.advance(60_000)
    wait_until(lambda: len(got) == 4, pause=channel.connection.sleep)
    assert got == [(b"1", False), (b"1", True), (b"3", False), (b"2", False)]


def test_a_message_whose_ack_was_lost_is_redelivered(running: RunningServer, channel: BlockingChannel) -> None:
    running.faults.add("drop_ack", times=1)
    publish(channel)
    method, _, _ = channel.basic_get("q")
    assert method is not None
    channel.basic_ack(method.delivery_tag)
    channel.connection.close()
    again, _, _ = connect(running).channel().basic_get("q")
    assert again is not None
    assert again.redelivered


@pytest.mark.parametrize("direction", ["input", "output"])
def test_late_replies_are_waited_for(running: RunningServer, channel: BlockingChannel, direction: str) -> None:
    running.faults.add("latency", delay_ms=100, direction=direction)
    began = time.monotonic()
    for _ in range(3):
        channel.queue_declare("q")
    assert time.monotonic() - began > 0.29


def test_a_large_message_takes_its_time_over_a_slow_link(running: RunningServer, channel: BlockingChannel) -> None:
    running.faults.add("bandwidth", bytes_per_s=1_000_000, direction="input")
    running.faults.add("bandwidth", bytes_per_s=500_000)
    began = time.monotonic()
    publish(channel, bytes(400_000))
    _, _, body = channel.basic_get("q", auto_ack=True)
    # 0.4 s to the broker, and 0.8 s back.
    assert (len(body), time.monotonic() - began > 1.19) == (400_000, True)


def test_a_dead_letter_is_lost_and_the_next_one_arrives(running: RunningServer, channel: BlockingChannel) -> None:
    rule = running.faults.add("drop_dead_letter", queue="dead", times=1)
    channel.queue_declare("dead")
    dying = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    channel.queue_declare("dying", arguments=dying)
    for body in (b"1", b"2"):
        channel.basic_publish("", "dying", body)
        method, _, _ = channel.basic_get("dying")
        channel.basic_reject(method.delivery_tag, requeue=False)
    assert channel.basic_get("dead", auto_ack=True)[2] == b"2"
    assert rule.hits == 1


def test_a_late_answer_to_the_close_of_a_connection_is_waited_for(
    running: RunningServer, channel: BlockingChannel
) -> None:
    running.faults.add("slow_close", delay_ms=200)
    began = time.monotonic()
    channel.connection.close()
    assert time.monotonic() - began > 0.19


def test_a_persistent_message_whose_confirm_was_lost_is_on_disk_and_a_nacked_one_is_not(tmp_path: Path) -> None:
    persistent = pika.BasicProperties(delivery_mode=2, expiration="60000")
    store: dict[str, Any] = {"ephemeral": False, "data_dir": str(tmp_path)}
    with RunningServer(**store) as running:
        running.faults.add("confirm_nack", times=1)
        running.faults.add("confirm_delay", after=1, times=1, delay_ms=100)
        channel = connect(running).channel()
        channel.queue_declare("q", durable=True)
        channel.confirm_delivery()
        with pytest.raises(pika.exceptions.NackError):
            publish(channel, b"nacked", properties=persistent)
        publish(channel, b"late", properties=persistent)
        running.faults.add("confirm_drop", times=1)
        running.faults.add("cut", on="confirm", times=1)
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            publish(channel, b"lost", properties=persistent)
    with RunningServer(**store) as running:
        channel = connect(running).channel()
        assert [channel.basic_get("q")[2] for _ in range(3)] == [b"late", b"lost", None]
