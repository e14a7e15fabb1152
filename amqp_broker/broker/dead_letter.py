"""Dead-lettering: what a message becomes when its queue gives it up, and where it goes then.

The history is kept in the header `x-death`, newest first, one entry per queue and reason. Where a message would come
back to a queue that it has died in, without having been rejected in between, it is dropped: nobody would end that
cycle.
Source: RabbitMQ, "Dead Letter Exchanges"; rabbit_dead_letter.erl.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amqp_broker import fields
from amqp_broker.message import Address, Message, SpecialMessage

if TYPE_CHECKING:
    from amqp_broker.broker.queue import Queue

REJECTED: Final = "rejected"
EXPIRED: Final = "expired"
MAXLEN: Final = "maxlen"
DELIVERY_LIMIT: Final = "delivery_limit"


def dead_letter(queue: Queue, message: Message, reason: str, now: int) -> None:
    """Publish a message that `queue` gives up to its dead-letter exchange, if it has one and that exists."""
    settings, vhost = queue.settings, queue.vhost
    exchange = vhost.exchanges.get(settings.dead_letter_exchange or "")
    if settings.dead_letter_exchange is None or exchange is None:
        return
    dead, keys = _dead_message(queue, message, reason, now)
    properties = dead.properties()
    headers = properties.headers or {}
    deaths = headers.get("x-death", [])
    if vhost.trace is not None:
        dead = vhost.trace.numbered(dead, message)
    routed, _ = vhost.route(exchange, keys, headers, dead)
    targets = [target for target in routed if not is_cycle(target.name, deaths)]
    if vhost.trace is not None:
        vhost.trace.dead_lettered(queue, message, dead, reason, targets)
    for target in targets:
        target.accept(dead)


def _dead_message(queue: Queue, message: Message, reason: str, now: int) -> tuple[Message, list[str]]:
    """The message as it is published anew, and all its routing keys."""
    settings = queue.settings
    properties = message.properties()
    headers = dict(properties.headers or {})
    copies = [key for key in headers.get("CC", []) if isinstance(key, str)]
    death = {
        "count": fields.Long(1),
        "reason": reason,
        "queue": queue.name,
        "time": fields.Timestamp(now // 1000),
        "exchange": message.exchange,
        "routing-keys": [message.routing_key, *copies],
    }
    if properties.expiration is not None:
        death["original-expiration"] = properties.expiration
        properties.expiration = None
    history = _history(queue, message, headers)
    headers["x-death"] = with_death(history, death)
    for prefix in ("x-last-death",) if history else ("x-first-death", "x-last-death"):
        headers[f"{prefix}-exchange"] = message.exchange
        headers[f"{prefix}-queue"] = queue.name
        headers[f"{prefix}-reason"] = reason
    blind_keys: list[str] = []
    if settings.dead_letter_routing_key is not None:
        keys = [settings.dead_letter_routing_key]
        headers.pop("CC", None)
    else:
        keys = [message.routing_key, *copies]
        if isinstance(message, SpecialMessage):
            blind_keys = message.blind_keys
            keys += blind_keys
    properties.headers = dict(sorted(headers.items()))
    assert settings.dead_letter_exchange is not None
    address = Address(settings.dead_letter_exchange, keys[0])
    dead = SpecialMessage.of(Message.build(address, properties, message.body))
    dead.has_died, dead.blind_keys = True, blind_keys
    return dead, keys


def _history(queue: Queue, message: Message, headers: fields.Table) -> list[dict[str, Any]]:
    """The deaths that a message has died before, newest first; a header that a client made up is none since 4.0."""
    has_died = isinstance(message, SpecialMessage) and message.has_died
    deaths = headers.get("x-death")
    if not isinstance(deaths, list) or not (has_died or queue.vhost.broker.profile.client_deaths_count):
        return []
    return [death for death in deaths if isinstance(death, dict)]


def with_death(deaths: list[dict[str, Any]], death: dict[str, Any]) -> list[dict[str, Any]]:
    """The history with one more death in front: counted up if queue and reason died together before."""
    others = []
    for known in deaths:
        if known.get("queue") == death["queue"] and known.get("reason") == death["reason"]:
            count = known.get("count")
            death = {**known, "count": fields.Long(count + 1 if isinstance(count, int) else 1)}
        else:
            others.append(known)
    return [death, *others]


def is_cycle(queue: str, deaths: list[dict[str, Any]]) -> bool:
    """Whether a message with this history, newest death first, was in the queue since it was last rejected."""
    for death in deaths:
        if death.get("reason") == REJECTED:
            return False
        if death.get("queue") == queue:
            return True
    return False
