"""The parts of a queue, a vhost and a broker that exchanges need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from amqp_broker.amqp import fields
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.durability.journal import Journal
    from amqp_broker.broker.exchanges.exchange import Binding, Exchange
    from amqp_broker.broker.timers import Timers


class BoundQueue(Protocol):
    """A queue to which an exchange routes messages."""

    @property
    def type(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def is_durable(self) -> bool: ...

    @property
    def incoming(self) -> dict[Binding, None]: ...

    def accept(self, message: Message) -> bool:
        """Take a message; return False if the queue refuses it."""
        ...


class Undrained(Protocol):
    """A backlog that is handled in batches, with the sockets flushed in between."""

    def continue_drain(self) -> None:
        """Handle the next batch."""
        ...


class ExchangeBroker(Protocol):
    """The broker of an exchange."""

    now: int

    @property
    def timers(self) -> Timers: ...

    @property
    def journal(self) -> Journal: ...

    @property
    def entropy(self) -> Callable[[int], bytes]: ...

    @property
    def undrained(self) -> list[Undrained]: ...


class ExchangeVHost(Protocol):
    """The vhost of an exchange."""

    @property
    def broker(self) -> ExchangeBroker: ...

    def exchange_type(self, name: str) -> type[Exchange]:
        """Return the type of exchange of that name. Raises PreconditionFailed."""
        ...

    def route(
        self, exchange: Exchange, routing_keys: Sequence[str], headers: fields.Table, message: Message | None
    ) -> tuple[Sequence[BoundQueue], bool]:
        """Return the queues for a message, and whether more than its routing keys decided."""
        ...
