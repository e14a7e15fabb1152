"""The parts of a vhost and a broker that observers need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from amqp_broker.broker.observe.trace import TracedBroker
from amqp_broker.broker.observe.tracing import TracingVHost
from amqp_broker.broker.observe.waiting import IdleBroker, IdleVHost

if TYPE_CHECKING:
    from amqp_broker.broker.admin.metadata import Metadata
    from amqp_broker.broker.observe.tracing import Tracing
    from amqp_broker.settings.settings import Settings


class ObservedBroker(TracedBroker, IdleBroker, Protocol):
    """The broker whose messages and objects are observed."""

    now: int
    settings: Settings

    @property
    def vhosts(self) -> Mapping[str, ObservedVHost]: ...


class ObservedVHost(TracingVHost, IdleVHost, Protocol):
    """The vhost whose messages and objects are observed."""

    metadata: Metadata
    tracing: Tracing

    @property
    def broker(self) -> ObservedBroker: ...
