"""Exchanges that send each message to one of their bindings at random.

Source: RabbitMQ, "Random Exchange Type" and "Local Random Exchange"; rabbit_exchange_type_random.erl,
rabbit_exchange_type_local_random.erl.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.broker.exchanges.choice import Choice
from amqp_broker.broker.exchanges.exchange import Binding, Destination, Exchange

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.vhost import VHost


@dataclass(eq=False)
class RandomExchange(Exchange):
    """Sends each message along a random binding, whatever its key; a queue bound twice gets twice as many."""

    type: ClassVar[str] = "x-random"

    _entropy: Callable[[int], bytes] = field(init=False)
    _choice: Choice = field(default_factory=Choice)

    @property
    def routes_by_message(self) -> bool:
        return True

    def open(self, vhost: VHost) -> None:
        self._entropy = vhost.broker.entropy

    def destinations(
        self, routing_keys: Sequence[str], headers: fields.Table, message: Message | None
    ) -> Collection[Destination]:
        return self._choice.of(int.from_bytes(self._entropy(8)) if len(self._choice) > 1 else 0)

    def _index(self, binding: Binding) -> None:
        self._choice.add(binding.destination)

    def _unindex(self, binding: Binding) -> None:
        self._choice.remove(binding.destination)


@dataclass(eq=False)
class LocalRandomExchange(RandomExchange):
    """A random exchange for queues of the publisher's node, which in this broker are all queues."""

    type: ClassVar[str] = "x-local-random"

    def check(self, binding: Binding) -> None:
        if binding.routing_key:
            raise PreconditionFailed(f"Non empty binding '{binding.routing_key}' key not permitted")
        if isinstance(binding.destination, Exchange):
            raise PreconditionFailed("Destination not found")
        if binding.destination.type != "classic":
            kind = f"rabbit_{binding.destination.type}_queue"
            raise PreconditionFailed(f"Queue type {kind} not valid for this exchange type")
