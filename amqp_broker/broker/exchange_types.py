"""All types of exchanges, by the names that clients declare them by."""

from __future__ import annotations

from typing import Final

from amqp_broker.broker.delayed_exchange import DelayedExchange
from amqp_broker.broker.exchange import DirectExchange, Exchange, FanoutExchange, HeadersExchange, TopicExchange
from amqp_broker.broker.hash_exchanges import ConsistentHashExchange, ModulusHashExchange
from amqp_broker.broker.random_exchanges import LocalRandomExchange, RandomExchange
from amqp_broker.broker.recent_history import RecentHistoryExchange
from amqp_broker.compat import Profile
from amqp_broker.errors import PreconditionFailed

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
    )
}


def exchange_type(profile: Profile, name: str) -> type[Exchange]:
    """The type of that name. Raises PreconditionFailed."""
    kind = exchange_types(profile).get(name)
    if kind is None:
        raise PreconditionFailed(f"{'unknown' if name else 'invalid'} exchange type '{name}'")
    return kind


def exchange_types(profile: Profile) -> dict[str, type[Exchange]]:
    """The types that one version of RabbitMQ has, its plugins included."""
    known = dict(EXCHANGE_TYPES)
    if not profile.has_local_random:
        del known[LocalRandomExchange.type]
    return known
