"""The channel of a client, as the broker sees it, and how it counts publishes. A session's channel is one."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from amqp_broker.broker.clients.channel_counts import ChannelCounts
from amqp_broker.broker.queues.refused_publishers import Publisher

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.clients.client_connection import Connection
    from amqp_broker.broker.counting.counters import PublishCounts
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.routing.route import Route
    from amqp_broker.broker.vhost import VHost
    from amqp_broker.session.channel.unacked import Unacked


# With fewer cancelled consumers, do not check which have settled everything.
LEAVERS_UNCHECKED: Final = 16

# Queue, consumer (None: basic.get), position in the queue, and message. A tuple, because one is made per delivery.
Delivery: TypeAlias = "tuple[Queue, Consumer | None, int, Message]"


class ClientChannel:
    """A channel of a connection.

    `prefetch` is the prefetch count of its next consumer, `prefetch_total` that of the channel as a whole
    (global_prefetch_count); 0 is no limit.

    Publishes are counted as runs: those since `run_start` all took the same `route`. A run is added to the route's
    count when another route follows (`take_route`), or when counts are collected.
    """

    unacked: Unacked

    def __init__(self, vhost: VHost, number: int) -> None:
        self.vhost = vhost
        self.number = number
        self.prefetch = 0
        self.prefetch_total = 0
        self.consumers: dict[str, Consumer] = {}
        # Cancelled consumers with unsettled deliveries; checked again when there are `leavers_check` of them.
        self.leavers: list[Consumer] = []
        self.leavers_check = LEAVERS_UNCHECKED
        # Number of publishes, from confirm.select on if that was used; so it is the last publish number.
        self.publish_count = 0
        self.run_start = 0
        self.route: Route | None = None
        # The last confirmed publish number, and the current exchange. `exchange_marks` has the last publish number for
        # each earlier exchange that has unconfirmed publishes, and the counts of their confirms.
        self.confirmed_count = 0
        self.exchange: Exchange | None = None
        self.publish_counts: tuple[PublishCounts, ...] = ()
        self.exchange_marks: deque[tuple[int, tuple[PublishCounts, ...]]] = deque()
        self.counts = ChannelCounts(vhost)
        self.publisher = Publisher()

    # State

    @property
    @abstractmethod
    def connection(self) -> Connection:
        """The connection of the channel."""

    @property
    def name(self) -> str:
        """RabbitMQ's name of the channel."""
        return f"{self.connection.name} ({self.number})"

    @property
    @abstractmethod
    def is_confirming(self) -> bool:
        """True if the channel confirms publishes."""

    @property
    @abstractmethod
    def is_transactional(self) -> bool:
        """True if the channel has transactions (tx.select)."""

    @property
    @abstractmethod
    def messages_unacknowledged(self) -> int:
        """Number of deliveries that are not settled, or whose settling is not committed."""

    @property
    def messages_unconfirmed(self) -> int:
        """Number of publishes whose confirms wait for the journal."""
        return self.publish_count - self.confirmed_count if self.is_confirming else 0

    @property
    @abstractmethod
    def messages_uncommitted(self) -> int:
        """Number of publishes that wait for tx.commit."""

    @property
    @abstractmethod
    def acks_uncommitted(self) -> int:
        """Number of deliveries whose settling waits for tx.commit."""

    @abstractmethod
    def deliveries(self) -> list[Delivery]:
        """Return the deliveries that are not settled, or whose settling is not committed."""

    @abstractmethod
    def unacked_messages(self) -> Iterator[tuple[Queue, Message]]:
        """Yield the messages that `messages_unacknowledged` counts, as their queues have them, with these queues."""

    @property
    def status(self) -> str:
        """RabbitMQ's `state`: "flow" while its connection is blocked by an alarm, else "running"."""
        return "flow" if self.connection.status == "blocked" else "running"

    @property
    def idle_since_ms(self) -> int:
        """When activity was last noticed (ms since the epoch); it is noticed when statistics are collected."""
        return self.counts.active_at_ms

    # Counting

    def collect(self) -> None:
        """Add the counts of the channel and its consumers to all others that include them."""
        if self.publish_count != self.run_start:
            self.take_route(self.route)
            self.counts.active_at_ms = self.vhost.broker.now
        for consumer in (*self.consumers.values(), *self.leavers):
            if consumer.collect():
                self.counts.active_at_ms = self.vhost.broker.now
                consumer.queue.statistics.active_at_ms = self.vhost.broker.now

    def take_route(self, route: Route | None) -> None:
        """End the run of publishes with one route, and begin one with another."""
        count, last = self.publish_count - self.run_start, self.route
        if count:
            assert last is not None
            self.run_start = self.publish_count
            if not last.count:
                self.vhost.counts.pending_routes.append(last)
            last.count += count
            self._count_own(self.publish_counts, count, len(last.queues), last.mandatory)
            if not last.queues and not last.mandatory:
                self.counts.unroutable_keys[last.exchange] = last.address.routing_key
        self.route = route
        if route is not None and route.exchange is not self.exchange:
            self._take_exchange(route.exchange)

    def count_published(self, exchange: Exchange, routing_key: str, queues: tuple[Queue, ...], mandatory: bool) -> None:
        """Count a message that took no cached route."""
        self._count_own(self.counts.of_exchange(exchange), 1, len(queues), mandatory)
        if not queues and not mandatory:
            self.counts.unroutable_keys[exchange] = routing_key
        self.vhost.counts.add(exchange, queues, 1, mandatory)

    def count_refused(self, exchange: Exchange) -> None:
        """Count a message that a fault has refused: it was published, and is not unroutable."""
        for counts in self.counts.of_exchange(exchange):
            counts.publish += 1
        if self.is_confirming:
            self.vhost.broker.counters.received_confirm += 1

    def _count_own(self, counts: tuple[PublishCounts, ...], messages: int, queues: int, mandatory: bool) -> None:
        counts[0].count(messages, queues, mandatory)
        counts[1].count(messages, queues, mandatory)
        if self.is_confirming:
            self.vhost.broker.counters.received_confirm += messages

    def _take_exchange(self, exchange: Exchange) -> None:
        """Note that publishes go to another exchange from now on; confirms are counted for the right one."""
        if self.is_confirming and self.publish_count != self.confirmed_count:
            self.exchange_marks.append((self.publish_count, self.publish_counts))
        self.exchange = exchange
        self.publish_counts = self.counts.of_exchange(exchange)

    def count_confirms(self, until: int, rejected: list[int]) -> None:
        """Count the confirms up to a publish number, for the exchanges that the messages were published to.

        That number becomes `confirmed_count`. `rejected` has the publish numbers of rejected messages in ascending
        order; they are not counted.
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
        self.confirmed_count = until

    def count_ack(self, queue: Queue) -> None:
        """Count an ack of a message from basic.get."""
        queue.note_change()
        for counts in self.counts.of_queue(queue):
            counts.ack += 1

    def drop_consumer(self, tag: str) -> Consumer | None:
        """Remove a consumer from the channel; its deliveries stay with the channel until they are settled."""
        consumer = self.consumers.pop(tag, None)
        if consumer is not None:
            consumer.collect()
            if consumer.in_flight:
                self.leavers.append(consumer)
                if len(self.leavers) >= self.leavers_check:
                    self._check_leavers()
        return consumer

    def _check_leavers(self) -> None:
        """Forget cancelled consumers whose deliveries are settled. Checked for each, many would take long to leave."""
        for leaver in self.leavers:
            leaver.collect()
            if not leaver.in_flight:
                leaver.queue.forget_leaver(leaver)
        self.leavers = [leaver for leaver in self.leavers if leaver.in_flight]
        self.leavers_check = LEAVERS_UNCHECKED + 2 * len(self.leavers)

    def forget_leavers(self) -> None:
        """Forget all cancelled consumers. They refer to the channel, which is to be freed at once."""
        for leaver in self.leavers:
            leaver.queue.forget_leaver(leaver)
        self.leavers = []

    def forget_leaver(self, leaver: Consumer) -> None:
        """Forget a cancelled consumer whose deliveries another one has."""
        leaver.collect()
        self.leavers.remove(leaver)
        leaver.queue.forget_leaver(leaver)
