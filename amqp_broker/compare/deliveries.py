"""Messages that the two brokers hand out: which of ours is which of the upstream's, and who has it.

Two consumers of one queue may get each other's messages, and whoever publishes at the same moment as another may be
first or second. So a message is looked for by what it is, among all that our broker has handed out of that queue,
whoever has got it; and what the client settles is settled there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from amqp_broker.compare import words
from amqp_broker.compare.names import Names
from amqp_broker.compare.report import Report
from amqp_broker.compare.speech import Said

ACK: Final = "basic.ack"
NACK: Final = "basic.nack"
REQUEUE: Final = "basic.nack requeue"


class Place(Protocol):
    """A channel of our broker's that a message was handed out on."""

    def settle(self, tag: int, how: str) -> None:
        """Have this delivery settled there."""
        ...

    def report(self, asked: str, upstream: str, ours: str, note: str = "") -> None: ...

    def on_ahead(self, count: int) -> None:
        """Our broker has handed out this many more messages here (or less) that the upstream has not."""
        ...

    def on_behind(self, count: int) -> None:
        """The upstream has handed out this many more messages here (or less) that our broker has not."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether the client has closed it, or left."""
        ...

    @property
    def is_behind(self) -> bool:
        """Whether the upstream may have more to say here than we have heard."""
        ...


class Held(NamedTuple):
    """A delivery that our broker waits to have settled."""

    place: Place
    tag: int


@dataclass(slots=True)
class Handed:
    """One delivery that its like was not found for yet."""

    place: Place
    said: Said
    asked: str
    at_ms: int
    facts: tuple[Any, ...]


@dataclass(slots=True)
class Settle:
    """What the client has said of a message that our broker has not handed out yet."""

    place: Place
    how: str
    at_ms: int
    asked: str


@dataclass(slots=True)
class Copies:
    """All copies of what looks like the same message in one queue."""

    key: tuple[Any, ...]
    upstreams: list[Handed] = field(default_factory=list)
    ours: list[Handed] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    settles: deque[Settle] = field(default_factory=deque)
    # Somebody had it before, so how often it is handed out depends on who has it, and is not compared.
    was_redelivered: bool = False
    # That it is not handed out is a difference that was told.
    was_told: bool = False

    @property
    def is_done(self) -> bool:
        return not (self.upstreams or self.ours or self.held or self.settles)


class Deliveries:
    """Of all connections, for their clients share queues."""

    def __init__(self, names: Names, report: Report) -> None:
        self.names = names
        self.report = report
        self._copies: dict[tuple[Any, ...], Copies] = {}

    def copies(self, vhost: str, queue: str, said: Said) -> Copies:
        """Those that this message is one of."""
        method, content = said.method, said.content
        assert content is not None, "a message has a content"
        properties = content.properties
        marks = (properties.message_id, properties.correlation_id) if properties else ()
        routing_key = words.plain_name(method.routing_key, self.names)
        key = (vhost, queue, method.exchange, routing_key, content.digest, *marks)
        found = self._copies.get(key)
        if found is None:
            found = self._copies[key] = Copies(key)
        return found

    # What the brokers hand out

    def on_upstream(self, copies: Copies, place: Place, said: Said, asked: str, now: int) -> None:
        self._match(copies, copies.ours, copies.upstreams, place, said, asked, now)

    def on_ours(self, copies: Copies, place: Place, said: Said, asked: str, now: int, is_held: bool) -> None:
        """Our broker hands one out, which waits for being settled if it `is_held`."""
        if is_held:
            copies.held.append(Held(place, said.method.delivery_tag))
        self._match(copies, copies.upstreams, copies.ours, place, said, asked, now)
        if is_held and copies.settles:
            settle = copies.settles.popleft()
            self._settle(copies, settle.how)

    def _match(
        self,
        copies: Copies,
        others: list[Handed],
        own: list[Handed],
        place: Place,
        said: Said,
        asked: str,
        now: int,
    ) -> None:
        assert said.content is not None, "a message has a content"
        copies.was_redelivered |= said.method.redelivered
        facts = words.content_facts(said.content, self.names)
        for at, other in enumerate(others):
            if other.facts == facts:
                self._pair_replies(said, other.said, is_ours=own is copies.ours)
                del others[at]
                self._count(copies, others, other.place, -1)
                self.report.compared_count += 1
                self.forget_if_done(copies)
                return
        own.append(Handed(place, said, asked, now, facts))
        self._count(copies, own, place, 1)

    @staticmethod
    def _count(copies: Copies, handed: list[Handed], place: Place, count: int) -> None:
        if handed is copies.ours:
            place.on_ahead(count)
        else:
            place.on_behind(count)

    def _pair_replies(self, said: Said, other: Said, is_ours: bool) -> None:
        """Where a direct reply goes is a name of each broker's own."""
        ours, upstream = (said, other) if is_ours else (other, said)
        if ours.content is None or upstream.content is None:
            return
        if ours.content.properties is not None and upstream.content.properties is not None:
            name, of_ours = upstream.content.properties.reply_to, ours.content.properties.reply_to
            if name and of_ours:
                self.names.pair(name, of_ours)

    # What clients settle

    def settle(self, copies: Copies, place: Place, how: str, now: int, asked: str) -> None:
        """The client settles what it got from the upstream: have it settled at ours, as soon as it is handed out."""
        if copies.held:
            self._settle(copies, how, place)
        else:
            copies.settles.append(Settle(place, how, now, asked))
            self._copies[copies.key] = copies

    def _settle(self, copies: Copies, how: str, place: Place | None = None) -> None:
        at = next((at for at, held in enumerate(copies.held) if held.place is place), 0)
        held = copies.held.pop(at)
        held.place.settle(held.tag, how)
        self.forget_if_done(copies)

    def forget_held(self, copies: Copies, held: Held) -> None:
        """Our broker has taken it back."""
        if held in copies.held:
            copies.held.remove(held)
        self.forget_if_done(copies)

    def forget_if_done(self, copies: Copies) -> None:
        """Nothing is to be known any more of a message that both have handed out and nobody holds."""
        if copies.is_done:
            self._copies.pop(copies.key, None)

    # What is missing

    def tick(self, now: int, patience_ms: int) -> None:
        """Tell what one broker has handed out and the other has not, for so long."""
        since = now - patience_ms
        for copies in list(self._copies.values()):
            for upstream, ours in self._overdue(copies, since):
                if not copies.was_redelivered:
                    copies.was_told = True
                    _tell(upstream, ours)
            while copies.settles and copies.settles[0].at_ms <= since:
                settle = copies.settles.popleft()
                if not copies.was_told:
                    settle.place.report(settle.asked, "took it", "has not handed this message out")
            self.forget_if_done(copies)

    def _overdue(self, copies: Copies, since: int) -> Iterator[tuple[Handed | None, Handed | None]]:
        while copies.upstreams and copies.upstreams[0].at_ms <= since:
            copies.upstreams[0].place.on_behind(-1)
            yield copies.upstreams.pop(0), self._first_of_ours(copies) if copies.ours else None
        while copies.ours and copies.ours[0].at_ms <= since:
            place = copies.ours[0].place
            if place.is_behind and not place.is_over:
                return
            handed = self._first_of_ours(copies)
            if not place.is_over:
                yield None, handed

    def _first_of_ours(self, copies: Copies) -> Handed:
        handed = copies.ours.pop(0)
        handed.place.on_ahead(-1)
        return handed


def _tell(upstream: Handed | None, ours: Handed | None) -> None:
    told = upstream or ours
    assert told is not None, "one of them was handed out"
    told.place.report(
        told.asked,
        words.show(upstream.said) if upstream else "has not delivered this message",
        words.show(ours.said) if ours else "has not delivered this message",
    )
