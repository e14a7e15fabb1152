"""Advice: habits that bite in production, noticed while they do no harm yet, and each said once for a place.

Nothing is noticed per message. What shows at a declaration or a consume is noticed there; the rest by looking, once a
second and when channels and connections close, at what is counted anyway. A look sees a portion, so that it takes a
millisecond however much there is; who reads advice looks at all of it first (`Advisor.look_at_all`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from amqp_broker.broker.habits import (
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
    removed_from,
)
from amqp_broker.fields import printable

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.channel import Channel
    from amqp_broker.broker.connection import Connection
    from amqp_broker.broker.consumer import Consumer
    from amqp_broker.broker.exchange import Exchange
    from amqp_broker.broker.policies import Policy
    from amqp_broker.broker.queue import Queue
    from amqp_broker.broker.vhost import VHost

# How much is said at most, before somebody clears it; how many clients' closed connections are remembered.
ADVICE_MAX: Final = 500
CLIENTS_MAX: Final = 500
# How many channels and queues one look sees.
PORTION: Final = 200
LOOKS_MAX: Final = 10_000


@dataclass(frozen=True)
class Place:
    """Where a habit shows, by names that outlive a connection; "" is none, or any.

    `client` is the name that it gives its connections, else that of its library. In names of queues `*` stands for what
    a program made up.
    """

    vhost: str
    user: str = ""
    client: str = ""
    exchange: str = ""
    queue: str = ""


@dataclass(slots=True)
class Advice:
    """A habit in a place. `connection`, `channel` and `detail` are those of the first time.

    `count` is in how many consumers, channels, connections or declarations it was noticed; of leaks, how many there
    were at most. Times are in ms since the epoch.
    """

    habit: Habit
    place: Place
    connection: str
    channel: int | None
    detail: str
    first_seen_ms: int
    last_seen_ms: int
    count: int = 1

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


class _SeenChannel:
    """What is remembered of a channel between looks."""

    __slots__ = ("has_persistent", "newest_tag", "said", "settled", "since_ms")

    def __init__(self) -> None:
        # Whether a persistent message was published here without confirms.
        self.has_persistent = False
        # Habits that were noticed here already, with what else tells them apart.
        self.said: set[tuple[str, str]] = set()
        # How many deliveries were settled, and since when no other was; -1: not enough is unacked.
        self.settled = -1
        self.newest_tag = 0
        self.since_ms = 0


class _Rate:
    """How many there were within a minute."""

    __slots__ = ("count", "since_ms")

    def __init__(self) -> None:
        self.count = 0
        self.since_ms = 0

    def reaches(self, limit: int, now: int) -> bool:
        """One more; returns whether that makes so many, and begins anew then."""
        if now - self.since_ms > RATE_MS:
            self.count, self.since_ms = 0, now
        self.count += 1
        if self.count < limit:
            return False
        self.count = 0
        return True


class _SeenConnection:
    """What the closed channels of a connection have done, and how many did next to nothing."""

    __slots__ = ("published", "received", "short_channels")

    def __init__(self) -> None:
        self.published = self.received = 0
        self.short_channels = _Rate()


class Advisor:
    """All advice of a broker, oldest first. `listeners` hear of each when it is new."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.listeners: tuple[Callable[[Advice], None], ...] = ()
        self._said: dict[tuple[str, Place], Advice] = {}
        self._channels: dict[Channel, _SeenChannel] = {}
        self._connections: dict[Connection, _SeenConnection] = {}
        self._short_connections: dict[Place, _Rate] = {}
        self._round = self._looks()

    def __iter__(self) -> Iterator[Advice]:
        return iter(list(self._said.values()))

    def __len__(self) -> int:
        return len(self._said)

    def of(self, vhost: str) -> list[Advice]:
        """What was said of a vhost."""
        return [advice for advice in self._said.values() if advice.place.vhost == vhost]

    def clear(self, vhost: str | None = None) -> None:
        """Forget what was said, of a vhost or (None) of all.

        It is said again when another channel or consumer shows it; of what is there to see, at the next look.
        """
        self._said = {key: advice for key, advice in self._said.items() if vhost not in (None, key[1].vhost)}
        rates = self._short_connections
        self._short_connections = {place: rates[place] for place in rates if vhost not in (None, place.vhost)}

    def _say(
        self,
        name: str,
        place: Place,
        channel: Channel | None = None,
        connection: Connection | None = None,
        detail: str = "",
        count: int = 0,
    ) -> None:
        """A habit shows, `count` things at once if there is one. What is beyond ADVICE_MAX is not said."""
        if place.vhost not in self._broker.vhosts:
            # It was deleted in the middle of a look.
            return
        now = self._broker.now
        advice = self._said.get((name, place))
        if advice is not None:
            advice.count = max(advice.count, count) if count else advice.count + 1
            advice.last_seen_ms = now
            return
        if len(self._said) >= ADVICE_MAX:
            return
        if channel is not None:
            connection = channel.connection
        connection_name = connection.name if connection is not None else ""
        number = channel.number if channel is not None else None
        advice = Advice(HABITS[name], place, connection_name, number, detail, now, now, count or 1)
        self._said[name, place] = advice
        for listener in self.listeners:
            listener(advice)

    def _say_once(self, name: str, channel: Channel, key: str = "", detail: str = "", **at: str) -> None:
        """A habit shows on a channel, and is counted once there."""
        seen = self._seen(channel)
        if (name, key) not in seen.said:
            seen.said.add((name, key))
            self._say(name, place_of(channel.connection, channel.vhost, **at), channel, detail=detail)

    def _seen(self, channel: Channel) -> _SeenChannel:
        seen = self._channels.get(channel)
        if seen is None:
            seen = self._channels[channel] = _SeenChannel()
        return seen

    # What is told when it happens

    def on_consume(self, channel: Channel, consumer: Consumer) -> None:
        """A consumer has come. What is exclusive or goes with its last consumer is nobody else's, and may be lost."""
        queue = consumer.queue
        if queue.owner is not None or queue.is_auto_delete:
            return
        if consumer.no_ack:
            name = "auto-ack"
        elif not consumer.prefetch and not channel.prefetch_total:
            name = "unlimited-prefetch"
        else:
            return
        self._say(name, place_of(channel.connection, channel.vhost, queue=family(queue.name)), channel)

    def on_declare(self, channel: Channel, queue: Queue) -> None:
        """A queue was declared."""
        place = place_of(channel.connection, channel.vhost, queue=family(queue.name))
        if not queue.is_durable and queue.owner is None:
            self._say("transient-queue", place, channel)
        removed = removed_from(queue.arguments, "x-") if queue.arguments else []
        if removed:
            self._say("removed-argument", place, channel, detail=", ".join(removed))

    def on_global_prefetch(self, channel: Channel) -> None:
        """basic.qos asks for a limit to the channel."""
        self._say_once("global-prefetch", channel)

    def on_policy(self, vhost: VHost, policy: Policy) -> None:
        """A policy was set."""
        removed = removed_from(policy.definition)
        if removed:
            self._say(
                "removed-argument", Place(vhost.name), detail=f"policy '{printable(policy.name)}': {', '.join(removed)}"
            )

    def on_persistent(self, channel: Channel) -> None:
        """A persistent message is published on a channel that is not in confirm mode, nor transactional."""
        self._seen(channel).has_persistent = True

    def on_channel_ended(self, channel: Channel) -> None:
        """A channel is closed, alone or with its connection, and has told what it counted."""
        self._look_at_channel(channel)
        self._channels.pop(channel, None)
        seen = self._connections.get(channel.connection)
        if seen is None:
            seen = self._connections[channel.connection] = _SeenConnection()
        seen.published += channel.counts.published.publish
        seen.received += channel.counts.delivered.deliver_get

    def on_channel_closed(self, channel: Channel) -> None:
        """The same, while its connection stays open."""
        counts = channel.counts
        if is_short(counts.published.publish, counts.delivered.deliver_get):
            rate = self._connections[channel.connection].short_channels
            if rate.reaches(SHORT_LIVED_MIN, self._broker.real_now()):
                self._say("channel-per-message", place_of(channel.connection, channel.vhost), channel)

    def on_connection_closed(self, connection: Connection) -> None:
        """A connection that was open is closed."""
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
            rate = rates[place] = _Rate()
        if rate.reaches(SHORT_LIVED_MIN, self._broker.real_now()):
            self._say("connection-per-message", place, connection=connection)

    def on_vhost_deleted(self, vhost: VHost) -> None:
        self.clear(vhost.name)

    # Looking

    def look(self) -> None:
        """Look at the next channels and queues."""
        if _count(islice(self._round, PORTION)) < PORTION:
            self._round = self._looks()

    def look_at_all(self) -> None:
        """Look at all of them, unless there are very many."""
        _count(islice(self._looks(), LOOKS_MAX))

    def _looks(self) -> Iterator[bool]:
        """One look after the other."""
        for connection in list(self._broker.connections):
            for channel in list(connection.channels.values()):
                if connection.channels.get(channel.number) is channel:
                    channel.collect()
                    self._look_at_channel(channel)
                yield True
        for vhost in list(self._broker.vhosts.values()):
            if self._broker.vhosts.get(vhost.name) is vhost:
                yield from self._look_at_queues(vhost)

    def _look_at_channel(self, channel: Channel) -> None:
        counts = channel.counts
        if not counts.publishes and not counts.deliveries and not channel.consumers:
            return
        seen = self._channels.get(channel)
        if seen is not None and seen.has_persistent:
            exchanges = [exchange.name or "(default)" for exchange in counts.publishes]
            self._say_once("no-confirms", channel, detail=f"published to exchange '{printable(exchanges[-1])}'")
        for exchange, published in counts.publishes.items():
            if published.drop_unroutable and exchange.unroutable_key is not None and loses(exchange):
                name = exchange.name or "(default)"
                detail = f"such as with routing key {exchange.unroutable_key!r}"
                self._say_once("unroutable", channel, name, detail, exchange=name)
        for queue, got in counts.deliveries.items():
            if got.get_empty >= EMPTY_POLLS_MIN or got.get + got.get_no_ack >= POLLS_MIN:
                self._say_once("polling", channel, queue.name, queue=family(queue.name))
        if len(channel.consumers) >= CONSUMERS_MIN:
            self._look_at_consumers(channel)
        if channel.consumers:
            self._look_at_unacked(channel)

    def _look_at_consumers(self, channel: Channel) -> None:
        for queue, number in Counter(consumer.queue for consumer in channel.consumers.values()).items():
            if number >= CONSUMERS_MIN:
                place = place_of(channel.connection, channel.vhost, queue=family(queue.name))
                self._say("leaked-consumers", place, channel, count=number)

    def _look_at_unacked(self, channel: Channel) -> None:
        """Deliveries that become more for a minute, without one being settled."""
        unacked = channel.unacked
        if len(unacked) < UNACKED_MIN:
            seen = self._channels.get(channel)
            if seen is not None:
                seen.settled = -1
            return
        seen, now = self._seen(channel), self._broker.real_now()
        newest = next(reversed(unacked))
        settled = newest - len(unacked)
        if seen.settled != settled:
            seen.settled, seen.newest_tag, seen.since_ms = settled, newest, now
        elif now - seen.since_ms >= RATE_MS and newest - seen.newest_tag >= UNACKED_MIN:
            queue = unacked[newest][0]
            self._say_once("growing-unacked", channel, queue.name, queue=family(queue.name))

    def _look_at_queues(self, vhost: VHost) -> Iterator[bool]:
        vhost.count_routes()
        left: Counter[str] = Counter()
        # Where queues dead-letter to; found when it is first asked for.
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
                        self._say("unused-queue", Place(vhost.name, queue=queue.name), count=1)
            yield True
        for origin, number in left.items():
            if number >= LEFT_QUEUES_MIN:
                self._say("leaked-queues", Place(vhost.name, queue=origin), count=number)


def _count(looks: Iterator[bool]) -> int:
    return sum(1 for _ in looks)


def place_of(connection: Connection, vhost: VHost, *, exchange: str = "", queue: str = "") -> Place:
    """A place that a connection has to do with."""
    given = connection.client_properties.get("connection_name")
    if not isinstance(given, str) or not given:
        given = connection.client_properties.get("product")
    client = family(printable(given)) if isinstance(given, str) else ""
    user = connection.user.name if connection.user is not None else ""
    return Place(vhost.name, user, client, exchange, queue)


def loses(exchange: Exchange) -> bool:
    """Whether what an exchange has no queue for is lost.

    It is not if nobody has bound anything to an exchange for many, who thus are none at the moment. What is delayed
    counts as unroutable when it comes.
    """
    if exchange.type == "x-delayed-message":
        return False
    return exchange.type == "direct" or bool(exchange.bindings)


def is_short(published: int, received: int) -> bool:
    """Whether a channel or a connection was there for one message: sent, or got, or got and answered."""
    return published <= 1 and received <= 1 and published + received > 0


def is_left(queue: Queue) -> bool:
    """Whether a queue stays though nobody consumes it."""
    return not (queue.is_deleted or queue.owner is not None or queue.consumers or queue.settings.expires_ms)


def is_unused(queue: Queue) -> bool:
    """Whether nothing ever came to a queue or was asked from it, and nothing is bound to it."""
    return not (
        queue.incoming
        or queue.ready_count
        or queue.unacked_count
        or queue.published
        or queue.deliveries.deliver_get
        or queue.deliveries.get_empty
    )
