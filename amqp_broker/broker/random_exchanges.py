"""Exchanges that give each message to one of their bindings, whichever chance has it.

Source: RabbitMQ, "Random Exchange Type" and "Local Random Exchange"; rabbit_exchange_type_random.erl,
rabbit_exchange_type_local_random.erl.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from amqp_broker import fields
from amqp_broker.broker.exchange import Binding, Destination, Exchange
from amqp_broker.errors import PreconditionFailed

if TYPE_CHECKING:
    from amqp_broker.broker.vhost import VHost
    from amqp_broker.message import Message


@dataclass(eq=False)
class RandomExchange(Exchange):
    """Keys count for nothing; a queue that is bound twice gets twice as much."""

    type: ClassVar[str] = "x-random"

    _entropy: Callable[[int], bytes] = field(init=False)
    _destinations: list[Destination] = field(default_factory=list)

    @property
    def routes_by_message(self) -> bool:
        return True

    def open(self, vhost: VHost) -> None:
        self._entropy = vhost.broker.entropy

    def destinations(
        self, routing_keys: Sequence[str], headers: fields.Table, message: Message | None
    ) -> Collection[Destination]:
        if len(self._destinations) < 2:
            return self._destinations
        return (self._destinations[int.from_bytes(self._entropy(8)) % len(self._destinations)],)

    def _index(self, binding: Binding) -> None:
        self._destinations.append(binding.destination)

    def _unindex(self, binding: Binding) -> None:
        self._destinations.remove(binding.destination)


@dataclass(eq=False)
class LocalRandomExchange(RandomExchange):
    """A random exchange that uses only queues of the publisher's node, which all of them are here."""

    type: ClassVar[str] = "x-local-random"

    def check(self, binding: Binding) -> None:
        if binding.routing_key:
            raise PreconditionFailed(f"Non empty binding '{binding.routing_key}' key not permitted")
        if isinstance(binding.destination, Exchange):
            raise PreconditionFailed("Destination not found")
        if binding.destination.type != "classic":
            kind = f"rabbit_{binding.destination.type}_queue"
            raise PreconditionFailed(f"Queue type {kind} not valid for this exchange type")
