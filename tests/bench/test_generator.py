"""The load generator reports its results, and fails if messages are missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from bench.generator import Load, LoadError, build_generator, run_load
from compat.brokers import AmqpBroker
from compat.oracles.rabbitmq import RabbitMQ

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="the load generator needs a C compiler")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AmqpBroker]:
    process = AmqpBroker(tmp_path_factory.mktemp("broker"))
    process.start()
    yield process
    process.kill()


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    if not RabbitMQ.is_installed():
        pytest.skip("RabbitMQ is not installed")
    process = RabbitMQ(tmp_path_factory.mktemp("rabbitmq"), plugins=("rabbitmq_consistent_hash_exchange",))
    process.start()
    yield process
    process.kill()


CONFIRMED = Load(messages=2000, window=100, ack=1, prefetch=50, seconds=20)


@pytest.mark.parametrize(
    ("load", "received"),
    [
        (Load(messages=2000), 2000),
        (Load(messages=2000, body=0), 2000),
        (Load(messages=20, body=300_000), 20),
        (CONFIRMED, 2000),
        (replace(CONFIRMED, ack=7), 2000),
        (replace(CONFIRMED, publishers=3, consumers=5, queues=4), 6000),
        (Load(messages=500, consumers=3, queues=10, fanout=True), 5000),
        (Load(messages=2000, queues=100, spread=True), 2000),
        (Load(messages=2000, queues=3, topic_bindings=50, topic_keys=5), 2000),
        (Load(messages=50, publishers=20, batch=10, window=10, idle=5), 1000),
        (Load(messages=200, rate=1000), 200),
        (Load(messages=2000, argument="x-max-length=10", consumers=0, window=100), 0),
        (Load(messages=2000, argument="x-max-priority=10", priorities=10), 2000),
        (Load(messages=2000, argument="x-message-ttl=60000", expiration=60000), 2000),
        (Load(messages=2000, queues=2, consumers=2, publishers=2, expiration=1, dead_letter=True), 4000),
        (Load(messages=2000, delay=1), 2000),
        (replace(CONFIRMED, persistent=True, argument="x-queue-type=quorum"), 2000),
        (replace(CONFIRMED, persistent=True, stream=True), 2000),
    ],
    ids=lambda value: " ".join(value.options()) if isinstance(value, Load) else None,
)
def test_all_messages_arrive(broker: AmqpBroker, load: Load, received: int) -> None:
    outcome = run_load(load, broker, broker.pid)
    assert outcome.is_complete
    assert outcome.sent == load.messages * load.publishers
    assert outcome.confirmed == (outcome.sent if load.window else 0)
    assert outcome.received == received


def test_a_session_publishes_a_message_that_is_confirmed(broker: AmqpBroker) -> None:
    outcome = run_load(Load(publishers=0, consumers=0, sessions=5), broker, broker.pid)
    assert (outcome.is_complete, outcome.sent, outcome.confirmed) == (True, 5, 5)


def test_a_stream_is_read_from_its_first_message(broker: AmqpBroker) -> None:
    stored = Load(consumers=0, messages=2000, window=100, persistent=True, stream=True, prefix="replay", keep=True)
    run_load(stored, broker, broker.pid)
    read = replace(stored, publishers=0, consumers=1, window=0, ack=10, prefetch=100, receive=2000, keep=False)
    assert run_load(read, broker, broker.pid).received >= 2000


NODE = Load(shape="node", body=400, messages=500, seconds=20)
CALLS = replace(NODE, publishers=0, consumers=1, messages=20, callers=5)


@pytest.mark.parametrize(
    ("loop", "sent", "received"),
    [("channel", 100, 100), ("declare", 100, 100), ("tx", 100, 100), ("rpc", 100, 100), ("rpc-queue", 100, 100)],
)
def test_each_call_is_answered_before_the_next(broker: AmqpBroker, loop: str, sent: int, received: int) -> None:
    outcome = run_load(replace(CALLS, loop=loop), broker, broker.pid)
    assert (outcome.is_complete, outcome.sent, outcome.received) == (True, sent, received)
    assert outcome.latency_p99_us is not None


def test_messages_are_got_one_by_one(broker: AmqpBroker) -> None:
    run_load(replace(NODE, consumers=0, window=100, prefix="got", keep=True), broker, broker.pid)
    got = replace(CALLS, consumers=0, loop="get", callers=1, messages=500, ack=1, prefix="got")
    assert run_load(got, broker, broker.pid).received == 500


def test_getting_from_an_empty_queue_is_an_error(broker: AmqpBroker) -> None:
    with pytest.raises(LoadError, match=r"unexpected method 60\.72"):
        run_load(replace(CALLS, consumers=0, loop="get"), broker, broker.pid)


def test_many_connections_are_opened_at_once(broker: AmqpBroker) -> None:
    load = replace(CALLS, shape="", consumers=0, loop="connect", callers=200, messages=1)
    assert run_load(load, broker, broker.pid).sent == 200


def test_each_message_has_a_reply(broker: AmqpBroker) -> None:
    load = replace(NODE, shape="celery", consumers=4, ack=1, prefetch=1, reply=True)
    assert run_load(load, broker, broker.pid).received == 500


def test_each_message_is_requeued_once(broker: AmqpBroker) -> None:
    load = replace(NODE, consumers=2, ack=1, prefetch=10, requeue=True)
    assert run_load(load, broker, broker.pid).received == 500


def test_messages_go_through_two_exchanges(broker: AmqpBroker) -> None:
    load = replace(NODE, shape="servicebus", queues=3, consumers=3, fanout=True, endpoints=True)
    assert run_load(load, broker, broker.pid).received == 1500


@pytest.fixture
def channel(broker: AmqpBroker) -> Iterator[BlockingChannel]:
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        yield connection.channel()


def messages_of(channel: BlockingChannel, queue: str) -> list[tuple[str, pika.BasicProperties]]:
    """Return routing key and properties of all messages in a queue."""
    found = []
    while (message := channel.basic_get(queue, auto_ack=True))[0] is not None:
        found.append((message[0].routing_key, message[1]))
    return found


def test_queues_have_the_requested_argument(broker: AmqpBroker, channel: BlockingChannel) -> None:
    load = Load(messages=50, consumers=0, window=10, prefix="short", argument="x-max-length=7", keep=True)
    run_load(load, broker, broker.pid)
    assert len(messages_of(channel, "short.queue.00000")) == 7


def test_priorities_rotate(broker: AmqpBroker, channel: BlockingChannel) -> None:
    run_load(Load(messages=7, consumers=0, window=7, priorities=3, prefix="high", keep=True), broker, broker.pid)
    found = messages_of(channel, "high.queue.00000")
    assert [properties.priority for _, properties in found] == [0, 1, 2, 0, 1, 2, 0]


def test_expired_messages_are_consumed_from_the_dead_letter_queue(broker: AmqpBroker, channel: BlockingChannel) -> None:
    load = Load(
        messages=5, publishers=1, consumers=0, window=5, expiration=1, dead_letter=True, prefix="late", keep=True
    )
    run_load(load, broker, broker.pid)
    deadline = time.monotonic() + 60
    while channel.queue_declare("late.dead.00000", passive=True).method.message_count < 5:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for _, properties in messages_of(channel, "late.dead.00000"):
        death = properties.headers["x-death"][0]
        assert (death["reason"], death["queue"], death["original-expiration"]) == ("expired", "late.queue.00000", "1")


@pytest.mark.verify
def test_keys_are_hashed_over_all_queues(rabbitmq: RabbitMQ) -> None:
    load = Load(messages=2000, queues=5, consumers=5, hash_keys=1000)
    assert run_load(load, rabbitmq, rabbitmq.pid).received == 2000
    run_load(replace(load, consumers=0, window=100, prefix="hash", keep=True), rabbitmq, rabbitmq.pid)
    with pika.BlockingConnection(pika.URLParameters(rabbitmq.url)) as connection:
        found = [messages_of(connection.channel(), f"hash.queue.{queue:05}") for queue in range(5)]
    assert min(map(len, found)) > 100
    assert len({key for messages in found for key, _ in messages}) == 1000


def test_latency_needs_space_for_the_time_in_the_body(broker: AmqpBroker) -> None:
    outcome = run_load(Load(messages=100, body=8), broker, broker.pid)
    assert outcome.latency_p50_us is not None
    assert outcome.latency_p99_us is not None
    assert outcome.latency_max_us is not None
    assert outcome.latency_p999_us is not None
    assert 0 < outcome.latency_p50_us <= outcome.latency_p99_us <= outcome.latency_p999_us <= outcome.latency_max_us
    assert run_load(Load(messages=100, body=7), broker, broker.pid).latency_p50_us is None


def test_the_cpu_time_of_other_programs_is_measured(broker: AmqpBroker) -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        outcome = run_load(Load(messages=500, rate=1000), broker, broker.pid)
        other.kill()
    assert outcome.elsewhere_share > 0.3


def test_a_requested_rate_is_not_exceeded(broker: AmqpBroker) -> None:
    assert run_load(Load(messages=500, rate=1000), broker, broker.pid).publish_rate < 1050


def test_a_backlog_keeps_its_size(broker: AmqpBroker) -> None:
    filled = Load(messages=3000, consumers=0, window=100, prefix="backlog", keep=True)
    run_load(filled, broker, broker.pid)
    through = run_load(replace(CONFIRMED, prefix="backlog", receive=2000, keep=True), broker, broker.pid)
    assert 2000 <= through.received <= 2000 + CONFIRMED.prefetch
    # All 3000 messages are still there, and none was published now.
    rest = run_load(replace(CONFIRMED, publishers=0, prefix="backlog", receive=2900), broker, broker.pid)
    assert rest.received >= 2900


def test_a_slow_run_is_an_error_with_its_counts(broker: AmqpBroker) -> None:
    with pytest.raises(LoadError, match=r"after 0.2 s: \d+ sent"):
        run_load(Load(messages=5000, rate=1000, seconds=0.2), broker, broker.pid)


def test_the_error_contains_the_brokers_text(broker: AmqpBroker) -> None:
    run_load(Load(messages=1, consumers=0, prefix="taken", topic_bindings=1, keep=True), broker, broker.pid)
    with pytest.raises(LoadError, match="PRECONDITION_FAILED"):
        run_load(Load(messages=1, prefix="taken", fanout=True), broker, broker.pid)


def test_an_unreachable_broker_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="not running"):
        run_load(Load(), AmqpBroker(tmp_path), pid=2**30)
    with pytest.raises(LoadError, match="connecting"):
        run_load(Load(), AmqpBroker(tmp_path), pid=os.getpid())


def test_it_is_built_only_if_its_sources_are_newer() -> None:
    before = build_generator().stat().st_mtime_ns
    assert build_generator().stat().st_mtime_ns == before
