"""The parts of a vhost and a broker that observers need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from amqp_broker.amqp import fields
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.admin.metadata import Metadata
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.observe.trace import Trace
    from amqp_broker.broker.observe.tracing import Tracing
    from amqp_broker.broker.observe.waiting import IdleWait
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.settings.settings import Settings


class ObservedBroker(Protocol):
    """The broker whose messages and objects are observed."""

    now: int
    now_us: Callable[[], int]
    node: str
    numbered_since_us: int
    settings: Settings
    idle_waits: list[IdleWait]

    @property
    def vhosts(self) -> Mapping[str, ObservedVHost]: ...

    def next_message_number(self) -> int:
        """Return a number for a traced message."""
        ...


class ObservedVHost(Protocol):
    """The vhost whose messages and objects are observed."""

    name: str
    metadata: Metadata
    trace: Trace | None
    tracing: Tracing

    @property
    def broker(self) -> ObservedBroker: ...

    @property
    def exchanges(self) -> Mapping[str, Exchange]: ...

    @property
    def queues(self) -> Mapping[str, Queue]: ...

    def topology_changed(self) -> None:
        """Discard what publishers know about routes."""
        ...

    def route(
        self, exchange: Exchange, routing_keys: Sequence[str], headers: fields.Table, message: Message | None
    ) -> tuple[list[Queue], bool]:
        """Return the queues for a message, and whether more than its routing keys decided."""
        ...
