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
