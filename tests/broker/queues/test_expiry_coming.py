"""Queues know when their messages, and they themselves, expire next."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from tests.peer import NOW, Lab, Peer


def expiring(lab: Lab) -> list[int]:
    """Times from now at which messages of queue `q` expire next."""
    queue = lab.vhost.queues["q"]
    return [queue.deadlines[position] - lab.now for position in queue.backlog.expiring_next()]


@pytest.mark.parametrize("arguments", [{}, {"x-max-priority": 5}, {"x-queue-type": "quorum"}])
def test_only_the_first_message_expires_next(lab: Lab, peer: Peer, arguments: dict[str, Any]) -> None:
    peer.declare("q", durable=True, arguments=arguments)
    assert expiring(lab) == []
    for expiration in ("9000", "3000"):
        peer.publish("q", b"1", expiration=expiration)
    assert expiring(lab) == [9000]


def test_from_4_3_on_the_first_of_each_priority_and_the_first_that_returned_expire_next() -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    for priority, expiration in ((9, "9000"), (9, "8000"), (0, "3000"), (0, "2000")):
        peer.publish("q", b"1", priority=priority, expiration=expiration)
    assert sorted(expiring(lab)) == [3000, 9000]
    peer.get("q", no_ack=False)
    peer.send(commands.Basic.Nack(1, requeue=True))
    assert sorted(expiring(lab)) == [3000, 8000, 9000]


def test_a_queue_expires_next_unless_it_has_a_consumer(lab: Lab, peer: Peer) -> None:
    peer.declare("q", arguments={"x-expires": 7000})
    unused = lab.vhost.queues["q"].unused
    assert unused.due_ms == NOW + 7000
    peer.consume("q")
    assert unused.due_ms is None


def test_a_delayed_message_is_due_next(lab: Lab, peer: Peer) -> None:
    arguments: Any = {"x-delayed-type": "direct"}
    peer.call(commands.Exchange.Declare(exchange="d", exchange_type="x-delayed-message", arguments=arguments))
    exchange = lab.vhost.exchanges["d"]
    assert exchange.next_due_ms is None
    for delay in (9000, 3000):
        peer.publish("q", b"1", exchange="d", headers={"x-delay": delay})
    assert exchange.next_due_ms == NOW + 3000


def test_a_delayed_retry_is_due_next() -> None:
    lab = Lab(compat="4.3")
    peer = lab.connect()
    retries = {"x-delayed-retry-type": "all", "x-delayed-retry-min": 8000}
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", **retries})
    peer.publish("q", b"1")
    peer.get("q", no_ack=False)
    assert lab.vhost.queues["q"].retries.next_ms is None
    peer.send(commands.Basic.Nack(1, requeue=True))
    assert lab.vhost.queues["q"].retries.next_ms == NOW + 8000


def test_a_stream_with_one_chunk_keeps_it(lab: Lab, peer: Peer) -> None:
    peer.declare("q", durable=True, arguments={"x-queue-type": "stream", "x-max-age": "1h"})
    peer.publish("q", b"1")
    assert lab.vhost.queues["q"].next_retention_ms is None
