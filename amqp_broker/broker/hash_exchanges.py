"""Exchanges that give all messages of one hash to one destination.

The hash functions are our own. They depend on nothing but names, so that a message finds the same queue after a
restart, whatever the order in which the bindings are made again.
Source: RabbitMQ, "Consistent Hash Exchange Type"; rabbit_exchange_type_consistent_hash.erl,
rabbit_exchange_type_modulus_hash.erl.
"""

from __future__ import annotations

import hashlib
import math
import re
from bisect import insort
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from amqp_broker import fields
from amqp_broker.broker.exchange import Binding, Destination, Exchange
from amqp_broker.errors import PreconditionFailed

if TYPE_CHECKING:
    from amqp_broker.broker.vhost import VHost
    from amqp_broker.message import Message

HASH_PROPERTIES: Final = ("correlation_id", "message_id", "timestamp")
WEIGHT_MAX: Final = 10_000
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_WORD: Final = (1 << 64) - 1


@dataclass(eq=False)
class ConsistentHashExchange(Exchange):
    """Each hash has one destination, and each destination a share of the hashes that follows its weight.

    Each destination draws a lot for each hash, from both their names, and the best lot wins ("rendezvous hashing"). So
    a new destination takes only what it wins itself, and one that goes leaves only that to others.

    The weight is the binding key. What is hashed is the first routing key, the header that the argument `hash-header`
    names, or the property that `hash-property` names; what lacks it goes where all goes that lacks it.
    """

    type: ClassVar[str] = "x-consistent-hash"

    _hash_header: str | None = None
    _hash_property: str | None = None
    # weight and seed of each
    _shares: dict[Destination, tuple[int, int]] = field(default_factory=dict)

    @property
    def routes_by_message(self) -> bool:
        return self._hash_header is not None or self._hash_property is not None

    def open(self, vhost: VHost) -> None:
        self._hash_header = self._text("hash-header")
        self._hash_property = self._text("hash-property")
        if self._hash_header is not None and self._hash_property is not None:
            raise PreconditionFailed("hash-header and hash-property are mutually exclusive")
        if self._hash_property is not None and self._hash_property not in HASH_PROPERTIES:
            raise PreconditionFailed(f"Unsupported property: {self._hash_property}")

    def _text(self, name: str) -> str | None:
        value = self.arguments.get(name)
        if name in self.arguments and not isinstance(value, str):
            # RabbitMQ's channel process crashes, which ends the connection with 541.
            raise PreconditionFailed(f"invalid type '{fields.type_name(value)}' for arg '{name}' in {self}")
        return value

    def check(self, binding: Binding) -> None:
        key = binding.routing_key
        if not _INTEGER.fullmatch(key):
            raise PreconditionFailed(f"The binding key must be an integer: {fields.erlang_term(key)}")
        if int(key) < 1:
            raise PreconditionFailed("The binding key must be greater than 0")
        if int(key) > WEIGHT_MAX:
            raise PreconditionFailed(f"The binding key must not exceed {WEIGHT_MAX}")

    def destinations(
        self, routing_keys: Sequence[str], headers: fields.Table, message: Message | None
    ) -> Collection[Destination]:
        value: Any = routing_keys[0]
        if self._hash_header is not None:
            value = headers.get(self._hash_header)
        elif self._hash_property is not None:
            value = getattr(message.properties(), self._hash_property) if message is not None else None
        if len(self._shares) < 2:
            return self._shares
        return (self._winner(hash64(_octets(value))),)

    def _winner(self, number: int) -> Destination:
        # The logarithm of an even lot between 0 and 1, divided by a weight, is largest as often as the weight says.
        shares = self._shares
        return max(shares, key=lambda destination: _lot(number ^ shares[destination][1]) / shares[destination][0])

    def _index(self, binding: Binding) -> None:
        # A further binding of the same destination is there, but counts for nothing.
        seed = hash64(_kind_and_name(binding.destination).encode("utf-8", "surrogateescape"))
        self._shares.setdefault(binding.destination, (int(binding.routing_key), seed))

    def _unindex(self, binding: Binding) -> None:
        # Whichever of its bindings goes, RabbitMQ takes the destination out.
        self._shares.pop(binding.destination, None)


@dataclass(eq=False)
class ModulusHashExchange(Exchange):
    """The hash of all routing keys together, modulo the number of bindings, is the place of the one that is used.

    Bindings stand in the order of their destinations: exchanges first, then queues, each by name.
    """

    type: ClassVar[str] = "x-modulus-hash"

    _destinations: list[Destination] = field(default_factory=list)

    def destinations(
        self, routing_keys: Sequence[str], headers: fields.Table, message: Message | None
    ) -> Collection[Destination]:
        if len(self._destinations) < 2:
            return self._destinations
        octets = "\0".join(routing_keys).encode("utf-8", "surrogateescape")
        return (self._destinations[hash64(octets) % len(self._destinations)],)

    def _index(self, binding: Binding) -> None:
        insort(self._destinations, binding.destination, key=_kind_and_name)

    def _unindex(self, binding: Binding) -> None:
        self._destinations.remove(binding.destination)


def hash64(octets: bytes) -> int:
    """64 bits that depend on all of the octets, the same in every process."""
    return int.from_bytes(hashlib.blake2b(octets, digest_size=8).digest())


def _lot(word: int) -> float:
    """The logarithm of a number from 0 to 1 that depends on all bits of a 64-bit word (splitmix64's mixer)."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB & _WORD
    return math.log((((word ^ word >> 31) >> 11) + 1) / (1 << 53))


def _kind_and_name(destination: Destination) -> str:
    kind = "exchange" if isinstance(destination, Exchange) else "queue"
    return f"{kind} {destination.name}"


def _octets(value: Any) -> bytes:
    """What is hashed of a header or property; an integer's width does not count."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, int):
        return b"%d" % value
    return fields.encode_table({"": value})
