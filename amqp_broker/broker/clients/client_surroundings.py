"""The parts of a vhost and a broker that connections and channels need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from amqp_broker.lab import subjects

if TYPE_CHECKING:
    from amqp_broker.broker.counters import Counters
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.routing.vhost_counts import VHostCounts


class ClientBroker(Protocol):
    """The broker of a client."""

    now: int
    counters: Counters


class ClientVHost(subjects.VHost, Protocol):
    """The vhost of a client, to which faults and advice apply."""

    @property
    def broker(self) -> ClientBroker: ...

    @property
    def counts(self) -> VHostCounts: ...

    @property
    def exchanges(self) -> Mapping[str, Exchange]: ...
