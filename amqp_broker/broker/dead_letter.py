"""Dead-lettering: what a message becomes when its queue gives it up, and where it goes then.

The history is kept in the header `x-death`, newest first, one entry per queue and reason. Where a message would come
back to a queue that it has died in, without having been rejected in between, it is dropped: nobody would end that
cycle.
Source: RabbitMQ, "Dead Letter Exchanges"; rabbit_dead_letter.erl.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from amqp_broker import fields
from amqp_broker.message import Address, Message, SpecialMessage, with_property_list

if TYPE_CHECKING:
    from amqp_broker.broker.exchange import Exchange
    from amqp_broker.broker.queue import Queue

REJECTED: Final = "rejected"
EXPIRED: Final = "expired"
MAXLEN: Final = "maxlen"
DELIVERY_LIMIT: Final = "delivery_limit"


# Beyond these sizes what is known of dead messages starts anew, or is not kept.
DEAD_FORMS_MAX: Final = 256
PROPERTY_LIST_BYTES_MAX: Final = 1024


@dataclass(slots=True)
class DeadForm:
    """What dying makes of a message: the same for all that were alike but for their bodies and died alike.

    `keys` are all its routing keys then, `blind_keys` those that nobody is told of. `targets` are the queues that it
    goes to; None where another message with these properties may go elsewhere.
    """

    address: Address
    keys: list[str]
    blind_keys: Sequence[str]
    headers: fields.Table
    property_list: bytes
    targets: list[Queue] | None = None


# By queue, exchange, routing key, reason, time in s, address and property list.
DeadForms: TypeAlias = "dict[tuple[Queue, Exchange, str | None, str, int, Address, bytes], DeadForm]"


def dead_letter(queue: Queue, message: Message, reason: str, now: int) -> None:
    """Publish a message that `queue` gives up to its dead-letter exchange, if it has one and that exists."""
    vhost = queue.vhost
    exchange = vhost.exchanges.get(queue.settings.dead_letter_exchange or "")
    if queue.settings.dead_letter_exchange is None or exchange is None:
        return
    form = _dead_form(queue, exchange, message, reason, now // 1000)
    content = with_property_list(message.content, form.property_list)
    dead: Message = SpecialMessage(
        form.address, content, message.channel, message.is_persistent, blind_keys=form.blind_keys, has_died=True
    )
    if vhost.trace is not None:
        dead = vhost.trace.numbered(dead, message)
    targets = form.targets
    if targets is None:
        routed, by_message = vhost.route(exchange, form.keys, form.headers, dead)
        targets = [target for target in routed if not is_cycle(target.name, form.headers["x-death"])]
        if not by_message:
            form.targets = targets
    if vhost.trace is not None:
        vhost.trace.dead_lettered(queue, message, dead, reason, targets)
    for target in targets:
        target.accept(dead)


def _dead_form(queue: Queue, exchange: Exchange, message: Message, reason: str, now_s: int) -> DeadForm:
    """Make the form, or find it: messages often die in numbers, and of the same."""
    if isinstance(message, SpecialMessage) and message.blind_keys:
        return _make_dead_form(queue, message, reason, now_s)
    property_list = message.property_list
    forms = queue.vhost.dead_forms
    routing_key = queue.settings.dead_letter_routing_key
    # The address is the route's that it came by, or the form's that it died with: so it tells whether it has died, too.
    key = (queue, exchange, routing_key, reason, now_s, message.address, property_list)
    form = forms.get(key)
    if form is None:
        form = _make_dead_form(queue, message, reason, now_s)
        if len(property_list) <= PROPERTY_LIST_BYTES_MAX:
            if len(forms) >= DEAD_FORMS_MAX:
                forms.clear()
            forms[key] = form
    return form


def _make_dead_form(queue: Queue, message: Message, reason: str, now_s: int) -> DeadForm:
    settings = queue.settings
    properties = message.properties()
    headers = dict(properties.headers or {})
    copies = [key for key in headers.get("CC", []) if isinstance(key, str)]
    death = {
        "count": fields.Long(1),
        "reason": reason,
        "queue": queue.name,
        "time": fields.Timestamp(now_s),
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
    blind_keys: Sequence[str] = ()
    if settings.dead_letter_routing_key is not None:
        keys = [settings.dead_letter_routing_key]
        headers.pop("CC", None)
    else:
        keys = [message.routing_key, *copies]
        if isinstance(message, SpecialMessage):
            blind_keys = message.blind_keys
            keys += blind_keys
    properties.headers = headers = dict(sorted(headers.items()))
    assert settings.dead_letter_exchange is not None
    address = Address(settings.dead_letter_exchange, keys[0])
    return DeadForm(address, keys, blind_keys, headers, properties.encode())


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
