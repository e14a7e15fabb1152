"""Deleted queues are freed at once. Collecting thousands of them as garbage would delay all clients."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.queues.queue import QueueDeclaration
from tests.memory_journal import MemoryJournal
from tests.peer import Lab, Peer
from tests.restarting import durable_lab, restarted

# Compiled objects do not clear weak references.
pytestmark = pytest.mark.interpreted

QUORUM = {"x-queue-type": "quorum"}
RETRIES = {**QUORUM, "x-delayed-retry-type": "all", "x-delayed-retry-min": 1000}
DEAD_LETTERS = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "nowhere"}
AT_LEAST_ONCE = {**QUORUM, **DEAD_LETTERS, "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}


def commit(lab: Lab) -> None:
    journal = lab.broker.journal
    assert isinstance(journal, MemoryJournal)
    journal.commit()
    lab.broker.on_committed()


def leave_unused(peer: Peer) -> None:
    pass


def publish(peer: Peer) -> None:
    peer.publish("k", b"x", exchange="amq.direct", delivery_mode=2, expiration="5000", priority=3)


def reject(peer: Peer, *, requeue: bool) -> None:
    pulled = peer.get("q", no_ack=False)
    assert pulled is not None
    peer.send(commands.Basic.Reject(pulled[0].delivery_tag, requeue=requeue))


def return_messages(peer: Peer) -> None:
    for _ in range(3):
        publish(peer)
        reject(peer, requeue=True)


def give_up_messages(peer: Peer) -> None:
    for _ in range(3):
        publish(peer)
        reject(peer, requeue=False)


def read(peer: Peer) -> None:
    peer.send(commands.Basic.Qos(prefetch_count=10))
    peer.expect(commands.Basic.QosOk)
    peer.consume("q", arguments={"x-stream-offset": "first"})
    for _ in range(3):
        publish(peer)
        commit(peer.lab)
        peer.lab.advance(1000)


def consume_exclusively(peer: Peer) -> None:
    peer.consume("q", exclusive=True)
    publish(peer)
    peer.expect_delivery()


def refuse(peer: Peer) -> None:
    peer.send(commands.Confirm.Select())
    peer.expect(commands.Confirm.SelectOk)
    for _ in range(3):
        publish(peer)
    commit(peer.lab)
    peer.session.outbox.take()


def consume(peer: Peer) -> None:
    for number in range(2):
        peer.consume("q", f"c{number}", no_ack=True)
    publish(peer)
    peer.expect_delivery()


@pytest.mark.parametrize("use", [leave_unused, publish, return_messages, give_up_messages, consume])
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"x-message-ttl": 1000, "x-expires": 1000, "x-max-length": 1},
        {"x-max-priority": 5, **DEAD_LETTERS},
        {"x-single-active-consumer": True},
        QUORUM,
        {**QUORUM, "x-delivery-limit": 1, **DEAD_LETTERS},
        RETRIES,
        AT_LEAST_ONCE,
        {**RETRIES, **AT_LEAST_ONCE, "x-expires": 1000, "x-delivery-limit": 1},
    ],
    ids=["classic", "limits", "priority", "single", "quorum", "delivery-limit", "retries", "at-least-once", "all"],
)
def test_a_deleted_queue_is_freed_at_once(arguments: dict[str, Any], use: Callable[[Peer], None]) -> None:
    lab = durable_lab("4.3")
    peer = used(lab, arguments, use)
    assert is_freed(lab, peer)


def test_a_deleted_queue_with_an_exclusive_consumer_is_freed_at_once() -> None:
    lab = durable_lab("4.3")
    peer = used(lab, {}, consume_exclusively)
    assert is_freed(lab, peer)


@pytest.mark.parametrize("use", [leave_unused, publish, read])
def test_a_deleted_stream_is_freed_at_once(use: Callable[[Peer], None]) -> None:
    lab = durable_lab("4.3")
    peer = used(lab, {"x-queue-type": "stream", "x-max-age": "10s"}, use)
    assert is_freed(lab, peer)


def test_a_deleted_exchange_with_delayed_messages_is_freed_at_once() -> None:
    lab = durable_lab("4.3")
    peer = used(lab, {}, leave_unused)
    declare = commands.Exchange.Declare(
        exchange="x", exchange_type="x-delayed-message", durable=True, arguments={"x-delayed-type": "direct"}
    )
    peer.call(declare)
    peer.call(commands.Queue.Bind(queue="q", exchange="x", routing_key="k"))
    for delay_ms in (0, 1000):
        peer.publish("k", b"x", exchange="x", delivery_mode=2, headers={"x-delay": delay_ms})
    exchange = weakref.ref(lab.vhost.exchanges["x"])
    gc.disable()
    try:
        lab.connect().send(commands.Exchange.Delete(exchange="x"))
        peer.send(commands.Channel.Close(200, "", 0, 0))
        assert exchange() is None
    finally:
        gc.enable()


def test_a_full_queue_that_refused_publishes_is_freed_at_once() -> None:
    lab = durable_lab("4.3")
    peer = used(lab, {**QUORUM, "x-max-length": 1, "x-overflow": "reject-publish"}, refuse)
    assert is_freed(lab, peer)


@pytest.mark.parametrize(
    ("arguments", "use"), [(RETRIES, return_messages), (AT_LEAST_ONCE, give_up_messages), (QUORUM, return_messages)]
)
def test_a_queue_of_a_former_process_is_freed_at_once(arguments: dict[str, Any], use: Callable[[Peer], None]) -> None:
    lab = durable_lab("4.3")
    used(lab, arguments, use)
    lab = restarted(lab)
    assert is_freed(lab, lab.connect())


def used(lab: Lab, arguments: dict[str, Any], use: Callable[[Peer], None]) -> Peer:
    """Declare a queue, bind and use it; return the client."""
    peer = lab.connect()
    peer.declare("q", durable=True, arguments=arguments)
    peer.call(commands.Queue.Bind(queue="q", exchange="amq.direct", routing_key="k"))
    use(peer)
    return peer


def is_freed(lab: Lab, peer: Peer) -> bool:
    """Delete the queue, and close a channel that has used it; return whether the queue is gone."""
    queue = lab.vhost.queues["q"]
    seen = weakref.ref(queue)
    del queue
    gc.disable()
    try:
        lab.connect().send(commands.Queue.Delete(queue="q"))
        # It has counts of its queues.
        peer.send(commands.Channel.Close(200, "", 0, 0))
        commit(lab)
        return seen() is None
    finally:
        gc.enable()


def test_each_queue_of_a_deleted_vhost_is_freed_in_its_turn() -> None:
    lab = Lab()
    lab.broker.add_vhost("v")
    for number in range(5):
        lab.broker.vhosts["v"].declare_queue(QueueDeclaration(str(number), {}))
    seen = [weakref.ref(queue) for queue in lab.broker.vhosts["v"].queues.values()]
    freed = set()
    gc.disable()
    try:
        for _ in lab.broker.deleting_vhost("v"):
            freed.add(sum(queue() is None for queue in seen))
    finally:
        gc.enable()
    assert freed >= {0, 1, 2, 3, 4}
