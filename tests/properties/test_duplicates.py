"""Deduplication against the simplest model: a list of what was seen, or of what is in the queue."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pamqp.commands import Basic, Queue

from amqp_broker.amqp.deduplication_key import HEADER
from amqp_broker.broker.exchanges import deduplication
from amqp_broker.broker.exchanges.deduplication import DeduplicationExchange
from amqp_broker.broker.queues.deduplicated import DeduplicatedPriorityQueue, DeduplicatedQueue
from tests.broker_parts import bind, new_exchange, new_message, new_queue
from tests.peer import NOW, Lab
from tests.present import present
from tests.properties.generators import examples

# A header, how long it counts (0: for as long as the exchange says), and how much time passes before.
PUBLISHES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 20), st.integers(0, 8)), max_size=80)


@settings(max_examples=examples(2))
@given(PUBLISHES, st.integers(1, 5), st.one_of(st.none(), st.integers(1, 20)))
def test_an_exchange_routes_what_it_has_not_seen(
    publishes: list[tuple[int, int, int]], size: int, ttl_ms: int | None
) -> None:
    lab = Lab()
    lab.broker.tick(NOW)
    arguments = {"x-cache-size": size, **({} if ttl_ms is None else {"x-cache-ttl": ttl_ms})}
    exchange = new_exchange(lab.vhost, "x", "x-message-deduplication", arguments=arguments)
    assert isinstance(exchange, DeduplicationExchange)
    bind(exchange, new_queue(lab.vhost), lab.vhost)
    seen: list[tuple[int, float]] = []
    for value, own_ttl_ms, pause in publishes:
        lab.advance(pause)
        lab.broker.tick(lab.now)
        headers = {HEADER: value, **({"x-cache-ttl": own_ttl_ms} if own_ttl_ms else {})}
        with pytest.MonkeyPatch.context() as patch:
            # The model forgets all that has expired at once.
            patch.setattr(deduplication, "EXPIRED_AT_ONCE", 1000)
            routed = bool(lab.vhost.route(exchange, ["k"], headers, new_message())[0])
        seen = [entry for entry in seen if entry[1] > lab.now]
        assert routed is (value not in [one for one, _ in seen])
        if routed:
            seen = [*seen, (value, lab.now + (own_ttl_ms or ttl_ms or inf))][-size:]
        assert exchange.entry_count == len(seen)


STEPS = st.lists(
    st.tuples(st.sampled_from(["publish", "get", "take", "ack", "reject", "requeue", "purge"]), st.integers(0, 4)),
    max_size=60,
)


def value_of(headers: Any) -> int:
    return int(headers[HEADER])


@settings(max_examples=examples(2))
@given(STEPS, st.sampled_from([None, 3]), st.sampled_from([None, 2]))
def test_a_queue_has_each_key_once(
    steps: list[tuple[str, int]], priorities: int | None, length_max: int | None
) -> None:
    peer = Lab().connect()
    arguments: dict[str, Any] = {"x-message-deduplication": True}
    arguments |= {} if priorities is None else {"x-max-priority": priorities}
    arguments |= {} if length_max is None else {"x-max-length": length_max}
    peer.declare("q", arguments=arguments)
    queue = peer.lab.vhost.queues["q"]
    assert isinstance(queue, (DeduplicatedQueue, DeduplicatedPriorityQueue))
    unacked: dict[int, int] = {}
    for step, value in steps:
        ready = {value_of(message.properties().headers) for message in queue.messages()}
        tag = list(unacked)[value % len(unacked)] if unacked else 0
        if step == "publish":
            peer.publish("q", headers={HEADER: value}, priority=value)
            is_new = value not in ready and value not in unacked.values()
            expected = len(ready) + is_new
            assert queue.ready_count == (expected if length_max is None else min(expected, length_max))
        elif step in ("get", "take"):
            got = peer.get("q", no_ack=step == "get")
            if got is not None and step == "take":
                unacked[present(got[0].delivery_tag)] = value_of(got[1].properties.headers)
        elif step == "purge":
            peer.call(Queue.Purge(queue="q"))
        elif tag:
            del unacked[tag]
            peer.send(Basic.Ack(tag) if step == "ack" else Basic.Reject(tag, requeue=step == "requeue"))
        held = [value_of(message.properties().headers) for message in queue.messages()] + list(unacked.values())
        assert len(held) == len(set(held)) == len(queue.keys)
