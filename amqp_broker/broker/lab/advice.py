"""Advice: habits of clients that fail in production, noticed early and reported once for each place.

No work is done per message. Some habits show at a declaration or a consume. The others show in counts that exist
anyway, which are scanned once a second, and when channels and connections close. A scan covers a portion, so that it
takes about a millisecond; before advice is read, everything is scanned (`Advisor.scan_all`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from amqp_broker.amqp.fields import printable
from amqp_broker.broker.lab.habits import (
    CONSUMERS_MIN,
    EMPTY_POLLS_MIN,
    HABITS,
    LEFT_MS,
    LEFT_QUEUES_MIN,
    POLLS_MIN,
    RATE_MS,
    SHORT_LIVED_MIN,
    UNACKED_MIN,
    UNUSED_MS,
    Habit,
    family,
    is_left,
    is_reply,
    is_short,
    is_unused,
    removed_from,
)
from amqp_broker.broker.lab.seen_clients import Rate, SeenChannel, SeenConnection

if TYPE_CHECKING:
    from amqp_broker.broker.admin.policies import Policy
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.clients.client_channel import ClientChannel
    from amqp_broker.broker.clients.client_connection import Connection
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.vhost import VHost

# Number of places kept for each habit until they are cleared, and of clients whose closed connections are remembered.
PLACES_MAX: Final = 200
CLIENTS_MAX: Final = 500
# Number of channels and queues in one scan, and in a scan of everything.
SCAN_BATCH: Final = 200
SCANNED_MAX: Final = 10_000


@dataclass(frozen=True)
class Place:
    """The place of a habit, by names that outlive a connection; "" means none, or any.

    `client` is the name that the client gives its connections, else that of its library. In names of queues `*` stands
    for a generated part.
    """

    vhost: str
    user: str = ""
    client: str = ""
    exchange: str = ""
    queue: str = ""


@dataclass(slots=True)
class Advice:
    """A habit in a place. `connection`, `channel` and `detail` are those of its first occurrence.

    `count` is the number of consumers, channels, connections or declarations that showed it; of leaks, the highest
    number seen. `messages` is the number of messages that it was about: unroutable ones, those without confirms, and
    those that were acked automatically. Times are in ms since the epoch.
    """

    habit: Habit
    place: Place
    connection: str
    channel: int | None
    detail: str
    first_seen_ms: int
    last_seen_ms: int
    count: int = 1
    messages: int = 0

    @property
    def where(self) -> str:
        """The place in words."""
        place = self.place
        parts = [f"vhost '{printable(place.vhost)}'"]
        parts += [
            f"{kind} '{printable(name)}'"
            for kind, name in (
                ("user", place.user),
                ("client", place.client),
                ("exchange", place.exchange),
                ("queue", place.queue),
            )
            if name
        ]
        parts += [f"connection {self.connection}"] if self.connection else []
        parts += [f"channel {self.channel}"] if self.channel is not None else []
        return ", ".join([*parts, self.detail] if self.detail else parts)

    def __str__(self) -> str:
        habit = self.habit
        return f"{habit.name}: {habit.sentence} {habit.remedy} Seen at {self.where}. See {habit.link}"


class Advisor:
    """All advice of a broker, oldest first. `listeners` are called with each new piece.

    A habit has at most PLACES_MAX places: a flood of one habit hides no other. `beyond` counts the further
    occurrences by habit and vhost.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.listeners: tuple[Callable[[Advice], None], ...] = ()
        self.beyond: Counter[tuple[str, str]] = Counter()
        self._advice: dict[tuple[str, Place], Advice] = {}
        # Number of places by habit.
        self._places: Counter[str] = Counter()
        self._channels: dict[ClientChannel, SeenChannel] = {}
        self._connections: dict[Connection, SeenConnection] = {}
        self._short_connections: dict[Place, Rate] = {}
        self._current_scan = self._scan()

    def __iter__(self) -> Iterator[Advice]:
        return iter(list(self._advice.values()))

    def __len__(self) -> int:
        return len(self._advice)

    def of(self, vhost: str) -> list[Advice]:
        """Return the advice for a vhost."""
        return [advice for advice in self._advice.values() if advice.place.vhost == vhost]

    def clear(self, vhost: str | None = None) -> None:
        """Forget the advice for a vhost or (None) for all.

        It is given again when another channel or consumer shows the habit, or a scan still finds it.
        """
        self._advice = {key: advice for key, advice in self._advice.items() if vhost not in (None, key[1].vhost)}
        self._places = Counter(name for name, _ in self._advice)
        self.beyond = Counter({key: count for key, count in self.beyond.items() if vhost not in (None, key[1])})
        rates = self._short_connections
        self._short_connections = {place: rates[place] for place in rates if vhost not in (None, place.vhost)}

    def _report(
        self,
        name: str,
        place: Place,
        channel: ClientChannel | None = None,
        connection: Connection | None = None,
        detail: str = "",
        count: int = 0,
    ) -> None:
        """Report a habit; `count` is a number of things seen at once."""
        if place.vhost not in self._broker.vhosts:
            # The vhost was deleted during a scan.
            return
        now = self._broker.now
        advice = self._advice.get((name, place))
        if advice is not None:
            advice.count = max(advice.count, count) if count else advice.count + 1
            advice.last_seen_ms = now
            return
        if self._places[name] >= PLACES_MAX:
            self.beyond[name, place.vhost] += 1
            return
        self._places[name] += 1
        if channel is not None:
            connection = channel.connection
        connection_name = connection.name if connection is not None else ""
        number = channel.number if channel is not None else None
        advice = Advice(HABITS[name], place, connection_name, number, detail, now, now, count or 1)
        self._advice[name, place] = advice
        for listener in self.listeners:
            listener(advice)

    def _report_once(
        self, name: str, channel: ClientChannel, key: str = "", detail: str = "", messages: int = 0, **at: str
    ) -> None:
        """Report a habit of a channel, unless it was reported there before, and the messages since then."""
        reported = self._seen(channel).reported
        if (name, key) not in reported:
            reported[name, key] = 0
            self._report(name, place_of(channel.connection, channel.vhost, **at), channel, detail=detail)
        self._add_messages(name, channel, key, messages, **at)

    def _add_messages(self, name: str, channel: ClientChannel, key: str, messages: int, **at: str) -> None:
        """Note that a habit of a channel was about this number of messages so far. A lower one is of a new object."""
        reported = self._seen(channel).reported
        known = reported.get((name, key), 0)
        if messages in (0, known):
            return
        reported[name, key] = messages
        advice = self._advice.get((name, place_of(channel.connection, channel.vhost, **at)))
        if advice is not None:
            advice.messages += messages - known if messages > known else messages
            advice.last_seen_ms = self._broker.now

    def _seen(self, channel: ClientChannel) -> SeenChannel:
        seen = self._channels.get(channel)
        if seen is None:
            seen = self._channels[channel] = SeenChannel()
        return seen

    # Events

    def on_consume(self, channel: ClientChannel, consumer: Consumer) -> None:
        """Check a new consumer. Messages of exclusive and auto-delete queues may be lost."""
        queue = consumer.queue
        if queue.owner is not None or queue.is_auto_delete:
            return
        if consumer.no_ack:
            name = "auto-ack"
        elif not consumer.prefetch and not channel.prefetch_total:
            name = "unlimited-prefetch"
        else:
            return
        self._report(name, place_of(channel.connection, channel.vhost, queue=family(queue.name)), channel)

    def on_declare(self, channel: ClientChannel, queue: Queue) -> None:
        """Check a declared queue."""
        place = place_of(channel.connection, channel.vhost, queue=family(queue.name))
        if not queue.is_durable and queue.owner is None:
            self._report("transient-queue", place, channel)
        removed = removed_from(queue.arguments, "x-") if queue.arguments else []
        if removed:
            self._report("removed-argument", place, channel, detail=", ".join(removed))

    def on_global_prefetch(self, channel: ClientChannel) -> None:
        """Report basic.qos with global=true."""
        self._report_once("global-prefetch", channel)

    def on_policy(self, vhost: VHost, policy: Policy) -> None:
        """Check a policy that was set."""
        removed = removed_from(policy.definition)
        if removed:
            self._report(
                "removed-argument", Place(vhost.name), detail=f"policy '{printable(policy.name)}': {', '.join(removed)}"
            )

    def on_persistent(self, channel: ClientChannel) -> None:
        """Note a persistent message on a channel without confirms and transactions."""
        self._seen(channel).has_persistent = True

    def on_unroutable(self, channel: ClientChannel, exchange: Exchange, routing_key: str) -> None:
        """Report a message that a delayed exchange has routed nowhere at once."""
        self._report_unroutable(channel, exchange, routing_key)

    def on_unroutable_when_due(self, vhost: VHost, exchange: Exchange, routing_key: str) -> None:
        """Report a delayed message that no queue gets. Its publisher may have gone."""
        detail = f"such as with routing key {routing_key!r}, when a delayed message was due"
        place = Place(vhost.name, exchange=exchange.name)
        self._report("unroutable", place, detail=detail)
        if ("unroutable", place) in self._advice:
            self._advice["unroutable", place].messages += 1

    def on_first_binding(self, vhost: VHost, exchange: Exchange) -> None:
        """Note that messages so far were published before the exchange for subscribers had any."""
        for connection in self._broker.connections:
            for channel in connection.channels.values() if connection.vhost is vhost else ():
                channel.collect()
                self._check_channel(channel)
                published = channel.counts.publishes.get(exchange)
                if published is not None and published.drop_unroutable:
                    self._seen(channel).excused[exchange] = published.drop_unroutable

    def on_channel_ended(self, channel: ClientChannel) -> None:
        """Check a channel that closes, alone or with its connection; its counts are complete."""
        self._check_channel(channel)
        self._channels.pop(channel, None)
        seen = self._connections.get(channel.connection)
        if seen is None:
            seen = self._connections[channel.connection] = SeenConnection()
        seen.published += channel.counts.published.publish
        seen.received += channel.counts.delivered.deliver_get

    def on_channel_closed(self, channel: ClientChannel) -> None:
        """Check the rate of channels that close while their connection stays open."""
        counts = channel.counts
        if is_short(counts.published.publish, counts.delivered.deliver_get):
            rate = self._connections[channel.connection].short_channels
            if rate.reaches(SHORT_LIVED_MIN, self._broker.now):
                self._report("channel-per-message", place_of(channel.connection, channel.vhost), channel)

    def on_connection_closed(self, connection: Connection) -> None:
        """Check the rate of connections that close."""
        seen = self._connections.pop(connection, None)
        vhost = connection.vhost
        if seen is None or vhost is None or not is_short(seen.published, seen.received):
            return
        place = place_of(connection, vhost)
        rates = self._short_connections
        rate = rates.get(place)
        if rate is None:
            if len(rates) >= CLIENTS_MAX:
                del rates[next(iter(rates))]
            rate = rates[place] = Rate()
        if rate.reaches(SHORT_LIVED_MIN, self._broker.now):
            self._report("connection-per-message", place, connection=connection)

    def on_vhost_deleted(self, vhost: VHost) -> None:
        self.clear(vhost.name)

    # Scanning

    def scan(self) -> None:
        """Check the next batch of channels and queues."""
        if _count(islice(self._current_scan, SCAN_BATCH)) < SCAN_BATCH:
            self._current_scan = self._scan()

    def scan_all(self) -> None:
        """Check all channels and queues, up to SCANNED_MAX."""
        _count(islice(self._scan(), SCANNED_MAX))

    def _scan(self) -> Iterator[bool]:
        """Check channels and queues one by one."""
        for connection in list(self._broker.connections):
            for channel in list(connection.channels.values()):
                if connection.channels.get(channel.number) is channel:
                    channel.collect()
                    self._check_channel(channel)
                yield True
        for vhost in list(self._broker.vhosts.values()):
            if self._broker.vhosts.get(vhost.name) is vhost:
                yield from self._check_queues(vhost)

    def _check_channel(self, channel: ClientChannel) -> None:
        counts = channel.counts
        if not counts.publishes and not counts.deliveries and not channel.consumers:
            return
        seen = self._channels.get(channel)
        # Without an exchange that took it, a persistent message is no publish that could be lost.
        if seen is not None and seen.has_persistent and counts.publishes:
            exchanges = [exchange.name or "(default)" for exchange in counts.publishes]
            detail = f"published to exchange '{printable(exchanges[-1])}'"
            # Those that come after a confirm.select are confirmed.
            unconfirmed = 0 if channel.is_confirming else counts.published.publish
            self._report_once("no-confirms", channel, detail=detail, messages=unconfirmed)
        for exchange, published in counts.publishes.items():
            excused = 0 if seen is None else seen.excused.get(exchange, 0)
            if published.drop_unroutable > excused and exchange.unroutable_key is not None:
                own = counts.unroutable_keys.get(exchange)
                key = exchange.unroutable_key if own is None or is_reply(exchange.name, own) else own
                self._report_unroutable(channel, exchange, key, published.drop_unroutable - excused)
        for queue, got in counts.deliveries.items():
            if got.get_empty >= EMPTY_POLLS_MIN or got.get + got.get_no_ack >= POLLS_MIN:
                self._report_once("polling", channel, queue.name, queue=family(queue.name))
            if got.deliver_no_ack:
                self._add_messages("auto-ack", channel, queue.name, got.deliver_no_ack, queue=family(queue.name))
        if len(channel.consumers) >= CONSUMERS_MIN:
            self._check_consumers(channel)
        if channel.consumers:
            self._check_unacked(channel)

    def _report_unroutable(
        self, channel: ClientChannel, exchange: Exchange, routing_key: str, messages: int = 0
    ) -> None:
        name = exchange.name or "(default)"
        detail = f"such as with routing key {routing_key!r}"
        self._report_once("unroutable", channel, name, detail, messages, exchange=name)

    def _check_consumers(self, channel: ClientChannel) -> None:
        for queue, number in Counter(consumer.queue for consumer in channel.consumers.values()).items():
            if number >= CONSUMERS_MIN:
                place = place_of(channel.connection, channel.vhost, queue=family(queue.name))
                self._report("leaked-consumers", place, channel, count=number)

    def _check_unacked(self, channel: ClientChannel) -> None:
        """Check for deliveries that grow for a minute without one being settled."""
        unacked = channel.unacked.deliveries
        if len(unacked) < UNACKED_MIN:
            seen = self._channels.get(channel)
            if seen is not None:
                seen.settled = -1
            return
        seen, now = self._seen(channel), self._broker.now
        newest = next(reversed(unacked))
        settled = newest - len(unacked)
        if seen.settled != settled:
            seen.settled, seen.newest_tag, seen.since_ms = settled, newest, now
        elif now - seen.since_ms >= RATE_MS and newest - seen.newest_tag >= UNACKED_MIN:
            queue = unacked[newest][0]
            self._report_once("growing-unacked", channel, queue.name, queue=family(queue.name))

    def _check_queues(self, vhost: VHost) -> Iterator[bool]:
        vhost.counts.collect()
        left: Counter[str] = Counter()
        # Routing keys of dead letters, collected when first needed.
        targets: set[str | None] | None = None
        for queue in list(vhost.queues.values()):
            idle_ms = self._broker.now - queue.idle_since_ms
            if idle_ms >= LEFT_MS and is_left(queue):
                origin = family(queue.name)
                if origin != queue.name:
                    left[origin] += 1
                elif idle_ms >= UNUSED_MS and is_unused(queue):
                    if targets is None:
                        targets = {other.settings.dead_letter_routing_key for other in vhost.queues.values()}
                    if queue.name not in targets:
                        self._report("unused-queue", Place(vhost.name, queue=queue.name), count=1)
            yield True
        for origin, number in left.items():
            if number >= LEFT_QUEUES_MIN:
                self._report("leaked-queues", Place(vhost.name, queue=origin), count=number)


def _count(scan: Iterator[bool]) -> int:
    return sum(1 for _ in scan)


def place_of(connection: Connection, vhost: VHost, *, exchange: str = "", queue: str = "") -> Place:
    """Return a place that a connection uses."""
    given = connection.given_name or connection.client_properties.get("product")
    client = family(printable(given)) if isinstance(given, str) else ""
    user = connection.user.name if connection.user is not None else ""
    return Place(vhost.name, user, client, exchange, queue)
