"""Messages that the two brokers deliver, matched with each other across consumers and connections.

The two brokers may distribute a queue's messages differently among its consumers, and concurrent publishes may arrive
in a different order. So a message is matched by its content with any local delivery from the same queue, and a settle
is applied to that delivery.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amqp_broker.compare import method_facts
from amqp_broker.compare.difference_report import DifferenceReport
from amqp_broker.compare.method_reader import Received
from amqp_broker.compare.name_pairs import NamePairs

if TYPE_CHECKING:
    from amqp_broker.compare.channel_pair import ChannelPair
    from amqp_broker.compare.connection_pair import ConnectionPair


ACK: Final = "basic.ack"
NACK: Final = "basic.nack"
REQUEUE: Final = "basic.nack requeue"


class Held(NamedTuple):
    """An unsettled delivery of the local broker."""

    place: ChannelPair
    tag: int


@dataclass(slots=True)
class Handed:
    """A delivery without a match so far."""

    place: ChannelPair
    said: Received
    asked: str
    at_ms: int
    facts: tuple[Any, ...]


@dataclass(slots=True)
class Settle:
    """A settle by the client of a message that the local broker has not delivered yet."""

    place: ChannelPair
    how: str
    at_ms: int
    asked: str


@dataclass(slots=True)
class Copies:
    """All messages of one queue that look alike."""

    key: tuple[Any, ...]
    upstreams: list[Handed] = field(default_factory=list)
    local: list[Handed] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    settles: deque[Settle] = field(default_factory=deque)
    # How often a redelivered message is delivered depends on its consumers, so it is not compared.
    was_redelivered: bool = False
    # The missing delivery has been reported.
    is_reported: bool = False

    @property
    def is_done(self) -> bool:
        return not (self.upstreams or self.local or self.held or self.settles)


class Deliveries:
    """Deliveries of all connections, since clients share queues."""

    def __init__(self, names: NamePairs, report: DifferenceReport) -> None:
        self.names = names
        self.report = report
        self._copies: dict[tuple[Any, ...], Copies] = {}

    def copies(self, vhost: str, queue: str, said: Received) -> Copies:
        """Return the `Copies` that this message belongs to."""
        method, content = said.method, said.content
        assert content is not None, "a message has content"
        properties = content.properties
        marks = (properties.message_id, properties.correlation_id) if properties else ()
        routing_key = method_facts.plain_name(method.routing_key, self.names)
        key = (vhost, queue, method.exchange, routing_key, content.digest, *marks)
        found = self._copies.get(key)
        if found is None:
            found = self._copies[key] = Copies(key)
        return found

    # Deliveries by the brokers

    def on_upstream(self, copies: Copies, place: ChannelPair, said: Received, asked: str, now: int) -> None:
        self._match(copies, copies.local, copies.upstreams, place, said, asked, now)

    def on_local(self, copies: Copies, place: ChannelPair, said: Received, asked: str, now: int, is_held: bool) -> None:
        """Take a delivery of the local broker; `is_held` if it must be settled."""
        if is_held:
            copies.held.append(Held(place, said.method.delivery_tag))
        self._match(copies, copies.upstreams, copies.local, place, said, asked, now)
        if is_held and copies.settles:
            settle = copies.settles.popleft()
            self._settle(copies, settle.how)

    def _match(
        self,
        copies: Copies,
        others: list[Handed],
        own: list[Handed],
        place: ChannelPair,
        said: Received,
        asked: str,
        now: int,
    ) -> None:
        assert said.content is not None, "a message has content"
        copies.was_redelivered |= said.method.redelivered
        facts = method_facts.content_facts(said.content, self.names)
        for at, other in enumerate(others):
            if other.facts == facts:
                self._pair_replies(said, other.said, is_local=own is copies.local)
                del others[at]
                self._count(copies, others, other.place, -1)
                self.report.compared_count += 1
                self.forget_if_done(copies)
                return
        own.append(Handed(place, said, asked, now, facts))
        self._count(copies, own, place, 1)

    @staticmethod
    def _count(copies: Copies, handed: list[Handed], place: ChannelPair, count: int) -> None:
        if handed is copies.local:
            place.on_ahead(count)
        else:
            place.on_behind(count)

    def _pair_replies(self, said: Received, other: Received, is_local: bool) -> None:
        """Pair the generated reply-to names of a direct reply."""
        local, upstream = (said, other) if is_local else (other, said)
        if local.content is None or upstream.content is None:
            return
        if local.content.properties is not None and upstream.content.properties is not None:
            name, of_local = upstream.content.properties.reply_to, local.content.properties.reply_to
            if name and of_local:
                self.names.pair(name, of_local)

    # Settles by the clients

    def settle(self, copies: Copies, place: ChannelPair, how: str, now: int, asked: str) -> None:
        """Settle the local counterpart of an upstream delivery, or note the settle until it is delivered."""
        if copies.held:
            self._settle(copies, how, place)
        else:
            copies.settles.append(Settle(place, how, now, asked))
            self._copies[copies.key] = copies

    def _settle(self, copies: Copies, how: str, place: ChannelPair | None = None) -> None:
        at = next((at for at, held in enumerate(copies.held) if held.place is place), 0)
        held = copies.held.pop(at)
        held.place.settle(held.tag, how)
        self.forget_if_done(copies)

    def forget_held(self, copies: Copies, held: Held) -> None:
        """The local broker has requeued this delivery."""
        if held in copies.held:
            copies.held.remove(held)
        self.forget_if_done(copies)

    def forget_if_done(self, copies: Copies) -> None:
        """Drop copies that both brokers have delivered and that are settled."""
        if copies.is_done:
            self._copies.pop(copies.key, None)

    # Missing deliveries

    def is_unequal(self, connection: ConnectionPair, since: int, until: int) -> bool:
        """Return whether only one broker has delivered a message to a connection, after `since` and up to `until`."""
        return (connection.ahead_count > 0 or connection.behind_count > 0) and any(
            since < one.at_ms <= until and one.place.connection is connection
            for copies in self._copies.values()
            if not copies.was_redelivered
            for one in (*copies.upstreams, *copies.local)
        )

    def report_unequal(self, connection: ConnectionPair, until: int, *, with_surplus: bool) -> None:
        """Report messages that only one broker has delivered to a connection up to `until`.

        `with_surplus` includes those of the local broker. Where the brokers gave the connection different messages of a
        queue, these are none.
        """
        behind = {copies.key[:2] for copies in self._copies.values() if copies.upstreams}
        for copies in [one for one in self._copies.values() if not one.was_redelivered]:
            for handed in _given(copies.upstreams, connection, until):
                copies.upstreams.remove(handed)
                handed.place.on_behind(-1)
                copies.is_reported = True
                _tell(handed, self._first_of_local(copies) if copies.local else None)
            for handed in _given(copies.local, connection, until) if with_surplus else ():
                if copies.key[:2] not in behind:
                    copies.local.remove(handed)
                    handed.place.on_ahead(-1)
                    _tell(None, handed)
            self.forget_if_done(copies)

    def tick(self, now: int, patience_ms: int) -> None:
        """Report messages that only one broker has delivered for `patience_ms`."""
        since = now - patience_ms
        for copies in list(self._copies.values()):
            for upstream, local in self._overdue(copies, since):
                if not copies.was_redelivered:
                    copies.is_reported = True
                    _tell(upstream, local)
            while copies.settles and copies.settles[0].at_ms <= since:
                settle = copies.settles.popleft()
                if not copies.is_reported:
                    settle.place.report(settle.asked, "accepted it", "has not delivered this message")
            self.forget_if_done(copies)

    def _overdue(self, copies: Copies, since: int) -> Iterator[tuple[Handed | None, Handed | None]]:
        while copies.upstreams and copies.upstreams[0].at_ms <= since:
            copies.upstreams[0].place.on_behind(-1)
            yield copies.upstreams.pop(0), self._first_of_local(copies) if copies.local else None
        while copies.local and copies.local[0].at_ms <= since:
            place = copies.local[0].place
            if place.is_behind and not place.is_over:
                return
            handed = self._first_of_local(copies)
            if not place.is_over:
                yield None, handed

    def _first_of_local(self, copies: Copies) -> Handed:
        handed = copies.local.pop(0)
        handed.place.on_ahead(-1)
        return handed


def _given(handed: list[Handed], connection: ConnectionPair, until: int) -> list[Handed]:
    """Return the deliveries to a connection up to `until`."""
    return [one for one in handed if one.place.connection is connection and one.at_ms <= until]


def _tell(upstream: Handed | None, local: Handed | None) -> None:
    copy = upstream or local
    assert copy is not None, "one of the brokers has delivered it"
    copy.place.report(
        copy.asked,
        method_facts.show(upstream.said) if upstream else "has not delivered this message",
        method_facts.show(local.said) if local else "has not delivered this message",
    )
