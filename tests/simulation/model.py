"""What a broker must know, said as simply as possible: no positions, no turns, no sockets, and no hurry.

The simulation compares the broker with this after every step. Nothing here is shared with the broker's code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

# The number that is in a message's body.
Number: TypeAlias = int


class Broken(AssertionError):
    """The broker is not what it must be."""


def demand(condition: object, complaint: str) -> None:
    if not condition:
        raise Broken(complaint)


@dataclass(eq=False)
class QueueModel:
    """A queue: `places` are the messages that are in it, ready or unacked, with their place in the order of arrival.

    Where `is_limited`, the broker decides what stays; `places` then holds what may be there.
    """

    name: str
    owner: object | None = None
    is_auto_delete: bool = False
    length_max: int | None = None
    rejects_publish: bool = False
    consumer_count: int = 0
    # Then it is the only one.
    has_exclusive_consumer: bool = False
    arrived: int = 0
    places: dict[Number, int] = field(default_factory=dict)
    unacked: set[Number] = field(default_factory=set)
    delivered: set[Number] = field(default_factory=set)
    is_deleted: bool = False

    @property
    def is_limited(self) -> bool:
        return self.length_max is not None

    @property
    def ready_count(self) -> int:
        return len(self.places) - len(self.unacked)

    def push(self, number: Number) -> None:
        self.places[number] = self.arrived
        self.arrived += 1

    def deliver(self, number: Number, redelivered: bool, needs_ack: bool) -> int:
        """A message left for a client; returns its place."""
        demand(number in self.places, f"{self.name} delivers {number}, which is not in it")
        demand(number not in self.unacked, f"{self.name} delivers {number}, which is unacked")
        demand(redelivered == (number in self.delivered), f"{self.name} says redelivered={redelivered} of {number}")
        place = self.places[number]
        self.delivered.add(number)
        if needs_ack:
            self.unacked.add(number)
        else:
            del self.places[number]
        return place

    def settle(self, number: Number, requeue: bool) -> None:
        """A client settled a message. What a queue held when it was deleted concerns nobody."""
        if self.is_deleted:
            return
        self.unacked.remove(number)
        if not requeue:
            del self.places[number]

    def purge(self) -> int:
        """Drop what is ready; returns how many that were."""
        count = self.ready_count
        self.places = {number: place for number, place in self.places.items() if number in self.unacked}
        return count


@dataclass(frozen=True)
class BindingModel:
    source: str
    key: str
    destination: QueueModel | str

    def matches(self, kind: str, key: str) -> bool:
        match kind:
            case "fanout":
                return True
            case "direct":
                return self.key == key
            case "topic":
                return is_match(self.key.split(".") if self.key else [], key.split(".") if key else [])
        raise AssertionError(kind)


def is_match(pattern: list[str], words: list[str]) -> bool:
    """The definition of topic patterns, word by word."""
    if not pattern:
        return not words
    if pattern[0] == "#":
        return is_match(pattern[1:], words) or (bool(words) and is_match(pattern, words[1:]))
    return bool(words) and pattern[0] in ("*", words[0]) and is_match(pattern[1:], words[1:])


@dataclass
class ExchangeModel:
    kind: str
    is_auto_delete: bool = False
    alternate: str | None = None


class Topology:
    """Exchanges, bindings and queues."""

    def __init__(self) -> None:
        self.exchanges = {f"amq.{kind}": ExchangeModel(kind) for kind in ("direct", "fanout", "topic")}
        self.queues: dict[str, QueueModel] = {}
        self.bindings: set[BindingModel] = set()

    def route(self, exchange: str, keys: list[str]) -> set[QueueModel]:
        """The queues that a message goes to; with CC and BCC it has several keys."""
        if exchange == "":
            return {self.queues[key] for key in keys if key in self.queues}
        found: set[QueueModel] = set()
        seen: set[str] = set()
        pending = [exchange]
        while pending:
            name = pending.pop()
            if name in seen or name not in self.exchanges:
                continue
            seen.add(name)
            kind = self.exchanges[name].kind
            matching = [
                binding for binding in self.bindings_from(name) if any(binding.matches(kind, key) for key in keys)
            ]
            for binding in matching:
                if isinstance(binding.destination, QueueModel):
                    found.add(binding.destination)
                else:
                    pending.append(binding.destination)
            alternate = self.exchanges[name].alternate
            if not matching and alternate:
                pending.append(alternate)
        return found

    def unbind(self, binding: BindingModel) -> None:
        """Remove a binding; an auto-delete exchange goes with its last one."""
        self.bindings.discard(binding)
        source = binding.source
        if source in self.exchanges and self.exchanges[source].is_auto_delete and not self.bindings_from(source):
            self.delete_exchange(source)

    def bindings_from(self, exchange: str) -> list[BindingModel]:
        return [binding for binding in self.bindings if binding.source == exchange]

    def delete_exchange(self, name: str) -> None:
        if self.exchanges.pop(name, None) is None:
            return
        self.bindings -= set(self.bindings_from(name))
        self._unbind_destination(name)

    def delete_queue(self, queue: QueueModel) -> None:
        queue.is_deleted = True
        del self.queues[queue.name]
        self._unbind_destination(queue)

    def _unbind_destination(self, destination: QueueModel | str) -> None:
        for binding in [binding for binding in self.bindings if binding.destination == destination]:
            self.unbind(binding)
