"""Bugs to plant into counters: counts that are doubled, missing, or on the wrong object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from amqp_broker.amqp.message import Message
from amqp_broker.broker.exchanges.exchange import DirectExchange, Exchange
from amqp_broker.broker.queues.consumer import Consumer
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.queues.statistics import QueueStatistics
from amqp_broker.broker.vhost import VHost
from amqp_broker.session.channel.channel import Channel
from tests.simulation.planting import plant, replace


@plant
def what_took_a_route_is_forgotten_with_its_cache(patch: pytest.MonkeyPatch) -> None:
    def make(change: Callable[[VHost], None]) -> Any:
        def wrong(self: VHost) -> None:
            self.counts.pending_routes.clear()
            change(self)

        return wrong

    replace(patch, VHost, "topology_changed", make)


@plant
def a_channel_takes_what_it_has_counted_with_it(patch: pytest.MonkeyPatch) -> None:
    def make(end: Callable[[Channel], None]) -> Any:
        def wrong(self: Channel) -> None:
            self.run_start = self.publish_count
            end(self)

        return wrong

    replace(patch, Channel, "end", make)


@plant
def acks_after_a_cancel_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    def drop_consumer(self: Channel, tag: str) -> Consumer | None:
        consumer = self.consumers.pop(tag, None)
        if consumer is not None:
            consumer.collect()
        return consumer

    patch.setattr(Channel, "drop_consumer", drop_consumer)


@plant
def what_is_refused_counts_as_acked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Consumer, "acked", property(lambda self: 0 if self.no_ack else self.delivered - self.in_flight))


@plant
def confirms_are_counted_for_the_exchange_of_the_next_message(patch: pytest.MonkeyPatch) -> None:
    def _take_exchange(self: Channel, exchange: Exchange) -> None:
        self.exchange = exchange
        self.publish_counts = self.counts.of_exchange(exchange)

    patch.setattr(Channel, "_take_exchange", _take_exchange)


@plant
def nacks_count_as_confirms(patch: pytest.MonkeyPatch) -> None:
    def make(count: Callable[[Channel, int, list[int]], None]) -> Any:
        return lambda self, until, rejected: count(self, until, [])

    replace(patch, Channel, "count_confirms", make)


@plant
def a_deleted_exchange_is_still_named_as_a_source(patch: pytest.MonkeyPatch) -> None:
    def make(count: Callable[[QueueStatistics, Exchange | None, int, int], None]) -> Any:
        def wrong(self: QueueStatistics, exchange: Exchange | None, number: int, now: int) -> None:
            count(self, exchange or DirectExchange("/", "gone"), number, now)

        return wrong

    replace(patch, QueueStatistics, "count_publishes", make)


@plant
def what_was_refused_and_dead_lettered_counts_twice(patch: pytest.MonkeyPatch) -> None:
    def make(give_up: Callable[..., None]) -> Any:
        def wrong(self: Queue, message: Message, reason: str, **options: bool) -> None:
            if reason == "rejected":
                self.statistics.given_up[reason] += 1
            give_up(self, message, reason, **options)

        return wrong

    replace(patch, Queue, "_give_up", make)


@plant
def acks_of_what_was_got_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Channel, "count_ack", lambda self, queue: None)
