from __future__ import annotations

from collections import Counter

import pytest

from compat.waiting import wait_until
from pyspark_amqp import held_queue
from pyspark_amqp.held_queue import HeldQueue
from tests.pyspark_amqp.conftest import At
from tests.pyspark_amqp.reading import options_of


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a batch as large as its limit, even if a busy broker pauses between two messages."""
    monkeypatch.setattr(held_queue, "QUIET_S", 10.0)


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_prefetch_follows_the_size_of_the_messages(amqp_broker: At) -> None:
    queue = amqp_broker.queue()
    amqp_broker.publish(queue, [b"x" * 10_000] * 600)
    options = options_of(amqp_broker, queue, maxOffsetsPerTrigger=5000, maxBytesPerTrigger=1_000_000)
    held = HeldQueue(options, 0)
    assert held.gather(5000, 5.0) == 99
    wait_until(lambda: held.prefetch <= 200)
    assert held.held_bytes < 4_500_000
    held.settle(99)
    assert held.gather(5000, 5.0) == 99
    held.close()


def test_the_marks_of_a_lost_connection_are_forgotten_after_twice_as_many_deliveries(amqp_broker: At) -> None:
    queue = amqp_broker.queue()
    amqp_broker.publish(queue, numbers(10))
    for marks, kept in ((5, 0), (6, 6)):
        held = HeldQueue(options_of(amqp_broker, queue), 0, Counter({1: marks}))
        assert held.gather(10, 5.0) == 10
        assert held.known().total() == 10 + kept
        held.close()


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_deliveries_that_no_batch_has_go_back_in_order_after_the_idle_timeout(amqp_broker: At, kind: str) -> None:
    queue = amqp_broker.queue(kind)
    amqp_broker.publish(queue, numbers(50))
    held = HeldQueue(options_of(amqp_broker, queue, idleTimeout="1ms"), 0)
    # Before the first batch, nothing was asked for.
    wait_until(lambda: amqp_broker.count(queue) == 50)
    assert held.held_count == 0
    assert held.gather(20, 5.0) == 20
    bodies = [body for run in held.runs(0, 20) for body in run.bodies]
    assert bodies == numbers(20)
    wait_until(lambda: amqp_broker.count(queue) == 30)
    held.settle(20)
    assert held.gather(50, 5.0) == 30
    assert [body for run in held.runs(20, 50) for body in run.bodies] == numbers(50)[20:]
    held.settle(50)
    held.close()
    assert amqp_broker.count(queue) == 0


def test_a_slow_query_takes_the_messages_of_one_batch_only(amqp_broker: At) -> None:
    queue = amqp_broker.queue()
    held = HeldQueue(options_of(amqp_broker, queue, idleTimeout="1ms", maxOffsetsPerTrigger=150), 0)
    for start in (0, 150):
        wait_until(lambda: amqp_broker.channel.queue_declare(queue, passive=True).method.consumer_count == 0)
        amqp_broker.publish(queue, numbers(250))
        assert held.gather(150, 5.0) == 150
        assert not any(run.redelivered for run in held.runs(start, start + 150))
        held.settle(start + 150)
    held.close()
    assert amqp_broker.count(queue) == 200
