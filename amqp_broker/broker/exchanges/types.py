"""The table of exchange types, by the names in declarations."""

from __future__ import annotations

from typing import Final

from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.broker.exchanges.deduplication import DeduplicationExchange
from amqp_broker.broker.exchanges.delayed import DelayedExchange
from amqp_broker.broker.exchanges.exchange import DirectExchange, Exchange, FanoutExchange
from amqp_broker.broker.exchanges.hash import ConsistentHashExchange, ModulusHashExchange
from amqp_broker.broker.exchanges.headers import HeadersExchange
from amqp_broker.broker.exchanges.random_choice import LocalRandomExchange, RandomExchange
from amqp_broker.broker.exchanges.recent_history import RecentHistoryExchange
from amqp_broker.broker.exchanges.topic import TopicExchange
from amqp_broker.settings.profiles import Profile

EXCHANGE_TYPES: Final[dict[str, type[Exchange]]] = {
    kind.type: kind
    for kind in (
        DirectExchange,
        FanoutExchange,
        TopicExchange,
        HeadersExchange,
        ConsistentHashExchange,
        ModulusHashExchange,
        RandomExchange,
        LocalRandomExchange,
        RecentHistoryExchange,
        DelayedExchange,
        DeduplicationExchange,
    )
}


def exchange_type(profile: Profile, name: str) -> type[Exchange]:
    """Return the type of that name. Raises PreconditionFailed."""
    kind = exchange_types(profile).get(name)
    if kind is None:
        raise PreconditionFailed(f"{'unknown' if name else 'invalid'} exchange type '{name}'")
    return kind


def exchange_types(profile: Profile) -> dict[str, type[Exchange]]:
    """Return the types of one version of RabbitMQ, with its plugins."""
    known = dict(EXCHANGE_TYPES)
    if not profile.has_local_random:
        del known[LocalRandomExchange.type]
    return known
