"""Bindings of exchanges without a vhost."""

from __future__ import annotations

from typing import Any

from amqp_broker.broker.exchanges.exchange import Binding, Exchange


def bound(exchange: Exchange, destination: Any, routing_key: str = "", **arguments: Any) -> Binding:
    binding = Binding(exchange, destination, routing_key, arguments)
    exchange.check(binding)
    exchange.add(binding)
    return binding


def names(exchange: Exchange, routing_key: str = "", **headers: Any) -> list[str]:
    """Return the names of a message's destinations."""
    return sorted(destination.name for destination in exchange.match(routing_key, headers))
