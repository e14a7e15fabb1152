"""Exchanges that send all messages with the same hash to one destination.

The hash functions differ from RabbitMQ's. They depend only on names, so that a message goes to the same queue after a
restart, in whatever order the bindings are restored.
Source: RabbitMQ, "Consistent Hash Exchange Type"; rabbit_exchange_type_consistent_hash.erl,
rabbit_exchange_type_modulus_hash.erl.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.broker.exchanges.choice import Choice, kind_and_name, without_deleted
from amqp_broker.broker.exchanges.exchange import Binding, Destination, Exchange

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.vhost import VHost


HASH_PROPERTIES: Final = ("correlation_id", "message_id", "timestamp")
WEIGHT_MAX: Final = 10_000
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_WORD: Final = (1 << 64) - 1


@dataclass(eq=False)
class ConsistentHashExchange(Exchange):
    """Sends each hash to one destination, and to each destination a share of the hashes as its weight.

    For each hash, each destination gets a score computed from hash and name, and the best score wins ("rendezvous
    hashing"). Adding or removing a destination therefore moves only the hashes that it wins.

    The weight is the binding key. The hash is that of the first routing key, of the header that the argument
    `hash-header` names, or of the property that `hash-property` names. All messages without this header or property
    have the same hash.
    """

    type: ClassVar[str] = "x-consistent-hash"

    _hash_header: str | None = None
    _hash_property: str | None = None
    # Weight and seed by destination.
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
        number = hash64(_octets(value))
        self.match_work += len(self._shares)
        winner = self._winner(number)
        if winner.is_deleted:
            # Its bindings are removed in steps.
            self._shares = without_deleted(self._shares)
            return (self._winner(number),) if self._shares else ()
        return (winner,)

    def _winner(self, number: int) -> Destination:
        # With u uniform between 0 and 1, log(u) / weight is largest with a probability in proportion to the weight.
        shares = self._shares
        return max(shares, key=lambda destination: _lot(number ^ shares[destination][1]) / shares[destination][0])

    def _index(self, binding: Binding) -> None:
        # A further binding of the same destination has no effect.
        seed = hash64(kind_and_name(binding.destination).encode("utf-8", "surrogateescape"))
        self._shares.setdefault(binding.destination, (int(binding.routing_key), seed))

    def _unindex(self, binding: Binding) -> None:
        # As in RabbitMQ, removing any binding of a destination takes away its whole share.
        self._shares.pop(binding.destination, None)


@dataclass(eq=False)
class ModulusHashExchange(Exchange):
    """Uses the binding whose index is the hash of all routing keys, modulo the number of bindings."""

    type: ClassVar[str] = "x-modulus-hash"

    _choice: Choice = field(default_factory=Choice)

    def destinations(
        self, routing_keys: Sequence[str], headers: fields.Table, message: Message | None
    ) -> Collection[Destination]:
        return self._choice.of(hash64("\0".join(routing_keys).encode("utf-8", "surrogateescape")))

    def _index(self, binding: Binding) -> None:
        self._choice.add(binding.destination)

    def _unindex(self, binding: Binding) -> None:
        self._choice.remove(binding.destination)


def hash64(octets: bytes) -> int:
    """Return a hash of 64 bits that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(octets, digest_size=8).digest())


def _lot(word: int) -> float:
    """Return the logarithm of a number from 0 to 1 that depends on all 64 bits (splitmix64's mixer)."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB & _WORD
    return math.log((((word ^ word >> 31) >> 11) + 1) / (1 << 53))


def _octets(value: Any) -> bytes:
    """Return the octets to hash for a header or property; the width of an integer does not matter."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, int):
        return b"%d" % value
    return fields.encode_table({"": value})
