"""A hint at what is wrong with a message that no queue received: the closest binding keys, or queues."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from typing import TYPE_CHECKING, Final

from amqp_broker.broker.admin.similar_names import did_you_mean

if TYPE_CHECKING:
    from amqp_broker.broker.vhost import VHost

# Keys that a hint names.
NAMED_MAX: Final = 3
# Types that route by a routing key.
_BY_KEY: Final = frozenset({"direct", "topic"})


def hint(vhost: VHost, exchange: str, routing_key: str) -> str:
    """Return a hint, such as "did you mean 'order.paid'?"; "" if there is none."""
    if not exchange:
        return did_you_mean(routing_key, vhost.queues)
    found = vhost.exchanges.get(exchange)
    if found is None:
        return ""
    if not found.bindings:
        return "the exchange has no bindings"
    if found.type not in _BY_KEY:
        return ""
    keys = dict.fromkeys(binding.routing_key for binding in found.bindings.values())
    return did_you_mean(routing_key, keys) or f"its bindings have {_named(keys)}"


def _named(keys: Collection[str]) -> str:
    more = len(keys) - NAMED_MAX
    return ", ".join(map(repr, islice(keys, NAMED_MAX))) + (f" and {more} more" if more > 0 else "")
