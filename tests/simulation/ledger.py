"""The ledger of the simulation: each published message, and the state of each copy.

A message that goes to three queues is three copies, and one that dies in a queue becomes new copies of a new message.
Each copy is in exactly one state at any time, and goes from one to the next only where `NEXT` lets it. Nothing here is
shared with the broker's code.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tests.simulation.queues import QueueModel

REJECTED, EXPIRED, MAXLEN, DELIVERY_LIMIT = "rejected", "expired", "maxlen", "delivery_limit"


class Broken(AssertionError):
    """The broker is not what it must be."""


def demand(condition: object, complaint: str) -> None:
    if not condition:
        raise Broken(complaint)


class State(Enum):
    """Where a copy is. The first three are in the broker, the others are ends."""

    READY = "ready"
    UNACKED = "unacked"
    # Held back by an exchange until its time comes. Nothing does that yet; what will, enters copies in this state.
    DELAYED = "delayed"
    SETTLED = "settled"
    DROPPED = "dropped"
    EXPIRED = "expired"
    DEAD_LETTERED = "dead-lettered"


ENDS = {State.SETTLED, State.DROPPED, State.EXPIRED, State.DEAD_LETTERED}
NEXT = {
    State.READY: {State.UNACKED, *ENDS},
    State.UNACKED: {State.READY, State.SETTLED, State.DROPPED, State.DEAD_LETTERED},
    State.DELAYED: {State.READY, State.DROPPED},
}


class Heard(NamedTuple):
    """All that a client sees of a message; the number is the start of its body."""

    number: int
    body_bytes: int
    exchange: str
    routing_key: str
    properties: dict[str, Any]


def heard_in(method: Any, header: Any, body: bytes) -> Heard:
    """A content decoded by pamqp, with the routing of its method."""
    properties = {name: value for name, value in header.properties if value not in (None, "", {})}
    return Heard(int(body.partition(b" ")[0]), len(body), method.exchange, method.routing_key, properties)


@dataclass(frozen=True)
class Death:
    """An entry of x-death."""

    queue: str
    reason: str
    count: int
    time_s: int
    exchange: str
    routing_keys: tuple[str, ...]
    expiration: str | None

    def as_table(self) -> dict[str, Any]:
        table = {
            "queue": self.queue,
            "reason": self.reason,
            "count": self.count,
            "time": datetime.fromtimestamp(self.time_s, UTC),
            "exchange": self.exchange,
            "routing-keys": list(self.routing_keys),
        }
        return table if self.expiration is None else {**table, "original-expiration": self.expiration}


@dataclass(frozen=True, repr=False)
class Message:
    """A message published by a client or dead-lettered by a queue. `deaths` are newest first.

    `properties` are those beside the headers; `copy_keys` and `blind_keys` are those of CC and BCC that count, and
    `shown_copies` those in the header CC. `ends` are queue and reason of the first and the last death. `failures`
    counts the refusals in quorum queues.
    """

    number: int
    body_bytes: int
    exchange: str
    routing_key: str
    properties: dict[str, Any]
    copy_keys: tuple[str, ...] = ()
    shown_copies: tuple[str, ...] = ()
    failures: int = 0
    blind_keys: tuple[str, ...] = ()
    deaths: tuple[Death, ...] = ()
    ends: tuple[tuple[str, str, str], ...] = ()

    @property
    def keys(self) -> list[str]:
        """All keys that it is routed by."""
        return [self.routing_key, *self.copy_keys, *self.blind_keys]

    @property
    def expiration_ms(self) -> int | None:
        expiration = self.properties.get("expiration")
        return None if expiration is None else int(expiration)

    @property
    def is_persistent(self) -> bool:
        return self.properties.get("delivery_mode") == 2

    def died(self, queue: str, reason: str, now: int, exchange: str, routing_key: str | None) -> Message:
        """Return the dead letter of a queue with this dead-letter exchange and routing key."""
        expiration = self.properties.get("expiration")
        keys = (self.routing_key, *self.copy_keys)
        death = Death(queue, reason, 1, now // 1000, self.exchange, keys, expiration)
        others = []
        for known in self.deaths:
            if (known.queue, known.reason) == (queue, reason):
                death = replace(known, count=known.count + 1)
            else:
                others.append(known)
        end = (self.exchange, queue, reason)
        return replace(
            self,
            exchange=exchange,
            routing_key=self.routing_key if routing_key is None else routing_key,
            properties={name: value for name, value in self.properties.items() if name != "expiration"},
            copy_keys=self.copy_keys if routing_key is None else (),
            blind_keys=self.blind_keys if routing_key is None else (),
            deaths=(death, *others),
            ends=(*self.ends[:1], end),
        )

    def would_cycle(self, queue: str) -> bool:
        """Return whether it has died in the queue before and no client has rejected it since."""
        since = takewhile(lambda death: death.reason != REJECTED, self.deaths)
        return any(death.queue == queue for death in since)

    def __repr__(self) -> str:
        return f"{self.number} to {self.exchange}/{','.join(self.keys)} {self.properties or ''}"

    def heard(self, delivery_count: int = 0) -> Heard:
        """Return the content that a client must see."""
        headers: dict[str, Any] = {}
        if self.shown_copies:
            headers["CC"] = list(self.shown_copies)
        if self.deaths:
            headers["x-death"] = [death.as_table() for death in self.deaths]
            for which, end in (("first", self.ends[0]), ("last", self.ends[-1])):
                for name, value in zip(("exchange", "queue", "reason"), end, strict=True):
                    headers[f"x-{which}-death-{name}"] = value
        if delivery_count:
            headers["x-delivery-count"] = delivery_count
        properties = {**self.properties, "headers": headers} if headers else self.properties
        return Heard(self.number, self.body_bytes, self.exchange, self.routing_key, properties)


@dataclass(eq=False)
class Copy:
    """A message in one queue. `rank` is its place there: what is lower is served before.

    `returns` counts how often it came back to a quorum queue, `losses` how often so with a lost channel.
    """

    message: Message
    queue: QueueModel
    state: State
    rank: tuple[int, int] = (0, 0)
    # Its rank but for its having come back: where a restart finds it, and how often it had come back then.
    place: tuple[int, int] = (0, 0)
    stored_returns: int = 0
    deadline_ms: int | None = None
    was_delivered: bool = False
    returns: int = 0
    losses: int = 0
    # Set for a duplicate that a fault made.
    is_duplicate: bool = False
    # The broker's message, once it was found to be what it must be; a message never changes.
    seen: object = None

    def __repr__(self) -> str:
        deaths = "".join(f", {death.reason} in {death.queue}" for death in self.message.deaths)
        return f"<{self.message.number} in {self.queue.name}: {self.state.value}{deaths}>"

    def heard(self) -> Heard:
        return self.message.heard(self.returns or self.carried)

    @property
    def carried(self) -> int:
        """The failures elsewhere that count here."""
        return self.message.failures if self.queue.is_quorum else 0

    @property
    def is_redelivered(self) -> bool:
        """Return whether it is delivered as redelivered."""
        return self.was_delivered or self.carried > 0


@dataclass
class Ledger:
    """How many copies there were, and how many are in which state."""

    copies: int = 0
    counts: Counter[State] = field(default_factory=Counter)

    def enter(self, message: Message, queue: QueueModel, state: State) -> Copy:
        """A copy comes into being."""
        self.copies += 1
        self.counts[state] += 1
        return Copy(message, queue, state)

    def move(self, copy: Copy, state: State) -> None:
        demand(state in NEXT.get(copy.state, ()), f"{copy} becomes {state.value}")
        self.counts[copy.state] -= 1
        self.counts[state] += 1
        copy.state = state
