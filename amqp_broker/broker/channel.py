"""Seam: what others see of a client's channel, and what it counts. A session's channel is one."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from amqp_broker.broker.counters import DeliveryCounts, PublishCounts

if TYPE_CHECKING:
    from amqp_broker.broker.connection import Connection
    from amqp_broker.broker.consumer import Consumer
    from amqp_broker.broker.exchange import Exchange
    from amqp_broker.broker.queue import Queue
    from amqp_broker.broker.route import Route
    from amqp_broker.broker.vhost import VHost
    from amqp_broker.message import Message

# Beyond so many a channel looks which of the exchanges and queues that it has used are gone.
USED_MAX: Final = 64


class ChannelCounts:
    """What a channel has counted: in all, and by exchange that it published to and queue that it received from.

    `Counters.collect` brings it up to date. What is gone is not told any more, but in the sums.
    """

    __slots__ = ("_used_max", "_vhost", "active_at_ms", "delivered", "deliveries", "published", "publishes")

    def __init__(self, vhost: VHost) -> None:
        self._vhost = vhost
        self._used_max = USED_MAX
        self.published = PublishCounts()
        self.delivered = DeliveryCounts()
        self.publishes: dict[Exchange, PublishCounts] = {}
        self.deliveries: dict[Queue, DeliveryCounts] = {}
        # When it was last seen to have done something (ms since the epoch).
        self.active_at_ms = vhost.broker.now

    def of_exchange(self, exchange: Exchange) -> tuple[PublishCounts, ...]:
        """All that has to count a confirm of what this channel published to an exchange; its own two come first."""
        counts = self.publishes.get(exchange)
        if counts is None:
            self._forget_gone()
            counts = self.publishes[exchange] = PublishCounts()
        return (counts, self.published, *self._vhost.publish_counts(exchange))

    def of_queue(self, queue: Queue) -> tuple[DeliveryCounts, ...]:
        """All that has to count a delivery from a queue to this channel."""
        counts = self.deliveries.get(queue)
        if counts is None:
            self._forget_gone()
            counts = self.deliveries[queue] = DeliveryCounts()
        return (counts, self.delivered, *queue.delivery_counts)

    def by_exchange(self) -> Iterator[tuple[Exchange, PublishCounts]]:
        """What it published to each exchange that is still there; one of the same name may be another."""
        exchanges = self._vhost.exchanges
        return ((one, counts) for one, counts in self.publishes.items() if exchanges.get(one.name) is one)

    def by_queue(self) -> Iterator[tuple[Queue, DeliveryCounts]]:
        """What it received from each queue that is still there."""
        return ((one, counts) for one, counts in self.deliveries.items() if not one.is_deleted)

    def _forget_gone(self) -> None:
        if len(self.publishes) + len(self.deliveries) < self._used_max:
            return
        self.publishes, self.deliveries = dict(self.by_exchange()), dict(self.by_queue())
        self._used_max = USED_MAX + 2 * (len(self.publishes) + len(self.deliveries))

    def message_stats(self) -> dict[str, int]:
        """The `message_stats` of a channel."""
        return {**self.published.stats(), **self.delivered.stats()}


class Channel:
    """A channel of a connection.

    `prefetch` is what its next consumer gets (prefetch_count), `prefetch_total` a limit to the channel as a whole
    (global_prefetch_count); 0 is no limit.

    Publishes are counted as runs: those since `run_start` all took the same `route`. A run is told to others when it
    ends (`take_route`), which most never do before somebody asks.
    """

    # By delivery tag: queue, consumer (None: basic.get), position in the queue, and message.
    unacked: dict[int, tuple[Queue, Consumer | None, int, Message]]

    def __init__(self, vhost: VHost, number: int) -> None:
        self.vhost = vhost
        self.number = number
        self.prefetch = 0
        self.prefetch_total = 0
        self.consumers: dict[str, Consumer] = {}
        # Consumers that were cancelled before all that they got was settled.
        self.leavers: list[Consumer] = []
        # What was published here: since confirm.select, if that was asked for, and so the publish numbers.
        self.publish_count = 0
        self.run_start = 0
        self.route: Route | None = None
        # What is confirmed, and the exchange that is published to; `exchange_marks` tells for which publish numbers up
        # to the last one of each it was another, and who counts that.
        self.confirmed_count = 0
        self.exchange: Exchange | None = None
        self.publish_counts: tuple[PublishCounts, ...] = ()
        self.exchange_marks: deque[tuple[int, tuple[PublishCounts, ...]]] = deque()
        self.counts = ChannelCounts(vhost)

    # What others see

    @property
    def connection(self) -> Connection:
        raise NotImplementedError

    @property
    def name(self) -> str:
        """What RabbitMQ calls it."""
        return f"{self.connection.name} ({self.number})"

    @property
    def is_confirming(self) -> bool:
        """Whether its publisher asked for confirms."""
        raise NotImplementedError

    @property
    def is_transactional(self) -> bool:
        raise NotImplementedError

    @property
    def messages_unacknowledged(self) -> int:
        """Deliveries that it has to settle, or whose settling is not committed yet."""
        raise NotImplementedError

    @property
    def messages_unconfirmed(self) -> int:
        """Publishes whose confirms wait for the journal."""
        return self.publish_count - self.confirmed_count if self.is_confirming else 0

    @property
    def messages_uncommitted(self) -> int:
        """Publishes that wait for tx.commit."""
        raise NotImplementedError

    @property
    def acks_uncommitted(self) -> int:
        """Deliveries whose settling waits for tx.commit."""
        raise NotImplementedError

    def unacked_messages(self) -> Iterator[tuple[Queue, Message]]:
        """What `messages_unacknowledged` counts, and where that came from."""
        raise NotImplementedError

    @property
    def status(self) -> str:
        """RabbitMQ's `state`: "flow" while its connection is blocked by an alarm, else "running"."""
        return "flow" if self.connection.status == "blocked" else "running"

    @property
    def idle_since_ms(self) -> int:
        """When it was last seen to be busy (ms since the epoch); as exact as statistics are asked for often."""
        return self.counts.active_at_ms

    # Counting

    def collect(self) -> None:
        """Tell its counts to all that have to know them."""
        if self.publish_count != self.run_start:
            self.take_route(self.route)
            self.counts.active_at_ms = self.vhost.broker.now
        for consumer in (*self.consumers.values(), *self.leavers):
            if consumer.collect():
                self.counts.active_at_ms = self.vhost.broker.now
                consumer.queue.note_activity()

    def take_route(self, route: Route | None) -> None:
        """The run of publishes that took the same route is over; from here on they take this one."""
        count, last = self.publish_count - self.run_start, self.route
        if count:
            assert last is not None
            self.run_start = self.publish_count
            if not last.count:
                self.vhost.counted_routes.append(last)
            last.count += count
            self._count_own(self.publish_counts, count, len(last.queues), last.mandatory)
        self.route = route
        if route is not None and route.exchange is not self.exchange:
            self._take_exchange(route.exchange)

    def count_published(self, exchange: Exchange, queues: tuple[Queue, ...], mandatory: bool) -> None:
        """Count a message that went a way of its own."""
        self._count_own(self.counts.of_exchange(exchange), 1, len(queues), mandatory)
        self.vhost.count_publishes(exchange, queues, 1, mandatory)

    def _count_own(self, counts: tuple[PublishCounts, ...], messages: int, queues: int, mandatory: bool) -> None:
        counts[0].count(messages, queues, mandatory)
        counts[1].count(messages, queues, mandatory)
        if self.is_confirming:
            self.vhost.broker.counters.received_confirm += messages

    def _take_exchange(self, exchange: Exchange) -> None:
        """What is published from here on goes to another exchange; confirms will have to tell them apart."""
        if self.is_confirming and self.publish_count != self.confirmed_count:
            self.exchange_marks.append((self.publish_count, self.publish_counts))
        self.exchange = exchange
        self.publish_counts = self.counts.of_exchange(exchange)

    def count_confirms(self, until: int, rejected: list[int]) -> None:
        """Count what is about to be confirmed, for the exchanges that it was published to.

        That is everything up to a publish number, but for `rejected`, which stand in order.
        """
        start, marks = self.confirmed_count, self.exchange_marks
        while start < until:
            end, publish_counts = until, self.publish_counts
            if marks:
                end, publish_counts = min(until, marks[0][0]), marks[0][1]
                if marks[0][0] <= until:
                    marks.popleft()
            count = end - start - (bisect_right(rejected, end) - bisect_right(rejected, start))
            for counts in publish_counts:
                counts.confirm += count
            start = end

    def count_ack(self, queue: Queue) -> None:
        """Count an ack of what was got with basic.get."""
        for counts in self.counts.of_queue(queue) if queue.is_counted else ():
            counts.ack += 1

    def drop_consumer(self, tag: str) -> Consumer | None:
        """Take a consumer off the channel; what it has not settled stays, to be settled or given back with it."""
        consumer = self.consumers.pop(tag, None)
        if consumer is not None:
            self.leavers.append(consumer)
            for leaver in self.leavers:
                leaver.collect()
            self.leavers = [leaver for leaver in self.leavers if leaver.in_flight]
        return consumer
