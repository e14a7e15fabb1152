"""Dead-lettering: the headers and the targets of a message that its queue gives up.

The history is in the header `x-death`, newest first, with one entry per queue and reason. A message that would return
to a queue in which it has died, without a rejection in between, is dropped, because such a cycle would never end.
Source: RabbitMQ, "Dead Letter Exchanges"; rabbit_dead_letter.erl.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import Address, Message, Properties, SpecialMessage, failures_of, with_property_list
from amqp_broker.amqp.property_list import Layout, scan, with_fields
from amqp_broker.broker.counting.counters import AT_LEAST_ONCE, CONFIRMED
from amqp_broker.broker.queues.dead_letter_reasons import REJECTED
from amqp_broker.broker.queues.giving_up import GivingUpQueue
from amqp_broker.broker.scheduling.portions import KNOWN_BYTES, READ_BYTES

if TYPE_CHECKING:
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.queues.refused_publishers import Publisher
    from amqp_broker.broker.scheduling.portions import Steps
    from amqp_broker.broker.vhost import VHost

# A message that was rejected so often in one queue goes round.
ROUNDS_MIN: Final = 10
# Limits of the cache of dead forms: entries, after which it starts anew, and size of the properties of one.
DEAD_FORMS_MAX: Final = 256
PROPERTY_LIST_BYTES_MAX: Final = 1024
# Larger ones are kept for the last messages with a history, which the next death of these does not read again.
LONG_FORMS_MAX: Final = 4
# Routing keys with which a dead letter finds its targets at once. One with more may be overtaken, and is lost if the
# process ends meanwhile.
DEAD_KEYS_MAX: Final = 64
# From this number of deaths on, their encoding is kept for the next.
LONG_DEATHS_MIN: Final = 8
# The headers of a first death, in their order.
_ADDED: Final = (
    "x-death",
    *(f"x-{which}-death-{name}" for which in ("first", "last") for name in ("exchange", "queue", "reason")),
)


@dataclass(slots=True)
class DeadForm:
    """A dead letter without its body, shared by messages that differ only in their bodies and died alike.

    `keys` are all its routing keys, `blind_keys` those that consumers do not see. `added` are its new headers, encoded,
    by key; empty if they depend on its other headers. `had_empty_table` says that the message had an empty table of
    headers. `rounds` says how often the message has died in this queue for this reason. `targets` are its queues; None
    if another message with these properties may go elsewhere.
    """

    address: Address
    keys: list[str]
    blind_keys: Sequence[str]
    headers: fields.Table
    property_list: bytes
    is_rerouted: bool
    added: list[tuple[bytes, bytes]]
    properties: Properties
    had_empty_table: bool
    rounds: int = 1
    targets: list[Queue] | None = None


# Key of a dead form: queue, exchange, routing key, reason, time in s, address, and whether the message is rerouted.
FormKey: TypeAlias = "tuple[Queue, Exchange, str | None, str, int, Address, bool]"


class DeadForms:
    """Dead forms by their death and the property list of the message, and by death and expiration.

    `long` has the last ones of messages with a long history: death, property list and form.
    """

    __slots__ = ("by_expiration", "by_list", "long")

    def __init__(self) -> None:
        self.by_list: dict[tuple[FormKey, bytes], DeadForm] = {}
        self.by_expiration: dict[tuple[FormKey, bytes | None], DeadForm] = {}
        self.long: deque[tuple[FormKey, bytes, DeadForm]] = deque(maxlen=LONG_FORMS_MAX)

    def clear(self) -> None:
        self.by_list.clear()
        self.by_expiration.clear()
        self.long.clear()


class DeadLetter(NamedTuple):
    """A message that `queue` has given up, as `former`, and its targets; None if they are found in steps."""

    queue: Queue
    former: Message
    reason: str
    dead: Message
    form: DeadForm
    targets: list[Queue] | None


def dead_letter(vhost: VHost, queue: Queue, message: Message, reason: str, died_at_ms: int) -> DeadLetter | None:
    """Return the dead letter of a message that `queue` gives up; None if its dead-letter exchange does not exist.

    Finding its targets counts as work of this turn.
    """
    exchange = vhost.exchanges.get(queue.settings.dead_letter_exchange or "")
    if queue.settings.dead_letter_exchange is None or exchange is None:
        return None
    form = _dead_form(vhost, queue, exchange, message, reason, died_at_ms // 1000)
    content = with_property_list(message.content, form.property_list)
    dead: Message = SpecialMessage(
        form.address,
        content,
        message.channel,
        message.is_persistent,
        blind_keys=form.blind_keys,
        has_died=True,
        failures=failures_of(message),
        is_rerouted=form.is_rerouted,
        had_empty_table=_had_empty_table(message, form),
    )
    if vhost.trace is not None:
        dead = vhost.trace.numbered(dead, message)
    targets = form.targets
    if targets is None and len(form.keys) <= DEAD_KEYS_MAX:
        targets, by_message = _find_targets(vhost, exchange, form, dead)
        if not by_message:
            form.targets = targets
    return DeadLetter(queue, message, reason, dead, form, targets)


def _find_targets(vhost: VHost, exchange: Exchange, form: DeadForm, dead: Message) -> tuple[list[Queue], bool]:
    broker = vhost.broker
    counted, broker.routing_work = broker.routing_work, 0
    routed, by_message = vhost.route(exchange, form.keys, form.headers, dead)
    broker.work += broker.routing_work
    broker.routing_work = counted
    return [target for target in routed if not is_cycle(target.name, form.headers["x-death"])], by_message


def finding_targets(vhost: VHost, letter: DeadLetter) -> Steps[DeadLetter]:
    """Return a dead letter of many keys with its targets, in steps."""
    exchange = vhost.exchanges.get(letter.queue.settings.dead_letter_exchange or "")
    if exchange is None:
        return letter._replace(targets=[])
    headers = letter.form.headers
    queues = yield from vhost.routing(exchange, letter.form.keys, headers, letter.dead)
    return letter._replace(targets=[queue for queue in queues if not is_cycle(queue.name, headers["x-death"])])


def push(vhost: VHost, letter: DeadLetter, taken_by: Collection[str] = ()) -> tuple[list[str], bool]:
    """Push a dead letter to its targets.

    Queues of the names in `taken_by` have it already. Return the names of those that have taken it now, and whether no
    target lacks it.
    """
    queue, former, reason, dead, form, found = letter
    targets = found or []
    if form.rounds >= ROUNDS_MIN and reason == REJECTED:
        queue.statistics.noted_incidents().notice_round(form.rounds, vhost.broker.real_now())
    if taken_by:
        targets = [target for target in targets if target.name not in taken_by]
    faults = vhost.broker.faults
    if faults.on_dead_letter and targets and faults.drops(queue, dead, targets):
        targets, taken_by = [], ()
    if vhost.trace is not None:
        vhost.trace.dead_lettered(queue, former, dead, reason, targets)
    publisher = queue.publisher if queue.dead_letters_at_least_once else None
    accepted = [target.name for target in targets if _accepts(target, dead, publisher, len(targets))]
    is_done = len(accepted) == len(targets) and bool(accepted or taken_by)
    if is_done and queue.dead_letters_at_least_once:
        queue.vhost.broker.counters.dead_lettered[queue.type, AT_LEAST_ONCE, CONFIRMED] += 1
    return accepted, is_done


def _accepts(target: Queue, dead: Message, publisher: Publisher | None, targets: int) -> bool:
    if isinstance(target, GivingUpQueue) and target.giving_up:
        return target.offer_dead_letter(dead, publisher, targets)
    return target.offer(dead, publisher)


def _dead_form(vhost: VHost, queue: Queue, exchange: Exchange, message: Message, reason: str, now_s: int) -> DeadForm:
    """Return the cached form or make it; often many messages die alike."""
    if isinstance(message, SpecialMessage) and message.blind_keys:
        return _make_dead_form(queue, message, reason, now_s)
    property_list = message.property_list
    forms = vhost.dead_forms
    routing_key = queue.settings.dead_letter_routing_key
    # Addresses are compared by identity. A message that has died never shares one with a message that has not.
    death = (queue, exchange, routing_key, reason, now_s, message.address, _is_rerouted(message))
    if len(property_list) > PROPERTY_LIST_BYTES_MAX and _has_died(message):
        return _long_dead_form(forms, death, message, property_list)
    form = forms.by_list.get((death, property_list))
    if form is not None:
        return form
    layout = scan(property_list)
    alike = forms.by_expiration.get((death, layout.expiration))
    if alike is not None:
        form = _like(alike, property_list, layout)
    if form is None:
        form = _make_dead_form(queue, message, reason, now_s)
        if form.added:
            if len(forms.by_expiration) >= DEAD_FORMS_MAX:
                forms.clear()
            forms.by_expiration[death, layout.expiration] = form
    if len(property_list) <= PROPERTY_LIST_BYTES_MAX:
        if len(forms.by_list) >= DEAD_FORMS_MAX:
            forms.clear()
        forms.by_list[death, property_list] = form
    return form


def _long_dead_form(forms: DeadForms, death: FormKey, message: Message, property_list: bytes) -> DeadForm:
    """Return the form of a message with a long history."""
    former = None
    for known_death, known_list, form in forms.long:
        if known_death == death and known_list == property_list:
            return form
        if form.property_list == property_list:
            former = form
    queue, _, _, reason, now_s, _, _ = death
    form = _make_dead_form(queue, message, reason, now_s, former)
    forms.long.append((death, property_list, form))
    return form


def _like(form: DeadForm, property_list: bytes, layout: Layout) -> DeadForm | None:
    """Return the form of a message that died like another one, but had other properties; None if more differs."""
    if form.targets is None:
        return None
    dead_list = with_fields(property_list, layout, form.added)
    if dead_list is None:
        return None
    return DeadForm(
        form.address,
        form.keys,
        form.blind_keys,
        form.headers,
        dead_list,
        form.is_rerouted,
        form.added,
        form.properties,
        layout.entries == [],
        form.rounds,
        form.targets,
    )


def _make_dead_form(
    queue: Queue, message: Message, reason: str, now_s: int, former: DeadForm | None = None
) -> DeadForm:
    """Make the form of a message; `former` is the form with which it came here, where that is known."""
    settings = queue.settings
    properties = message.properties() if former is None else copy.copy(former.properties)
    had_empty_table = properties.headers == {}
    headers = dict(properties.headers or {})
    is_rerouted = _is_rerouted(message)
    copies = [] if is_rerouted else [key for key in headers.get("CC", []) if isinstance(key, str)]
    blind_keys = message.blind_keys if isinstance(message, SpecialMessage) else ()
    # RabbitMQ 4 leaves out a key of the BCC, even if the queue before this one gave it to the message.
    is_blind = is_rerouted and message.routing_key in blind_keys
    death = {
        "count": fields.Long(1),
        "reason": reason,
        "queue": queue.name,
        "time": fields.Timestamp(now_s),
        "exchange": message.exchange,
        "routing-keys": [] if is_blind else [message.routing_key, *copies],
    }
    if properties.expiration is not None:
        death["original-expiration"] = properties.expiration
        properties.expiration = None
    history = _history(queue, message, headers)
    headers["x-death"] = deaths = with_death(history, death)
    rounds = deaths[0]["count"]
    for prefix in ("x-last-death",) if history else ("x-first-death", "x-last-death"):
        headers[f"{prefix}-exchange"] = message.exchange
        headers[f"{prefix}-queue"] = queue.name
        headers[f"{prefix}-reason"] = reason
    if settings.dead_letter_routing_key is not None:
        keys, is_rerouted = [settings.dead_letter_routing_key], True
        if not queue.vhost.broker.profile.keeps_copies:
            headers.pop("CC", None)
            blind_keys = ()
    else:
        keys = [message.routing_key, *copies]
        if not is_rerouted:
            keys += blind_keys
    added = []
    if not history and not copies and not blind_keys:
        added = [(name.encode("ascii"), fields.encode_table({name: headers[name]})[4:]) for name in _ADDED]
    properties.headers = headers = dict(sorted(headers.items()))
    if len(deaths) > LONG_DEATHS_MIN and not isinstance(deaths, fields.EncodedList):
        headers["x-death"] = fields.EncodedList.of(deaths)
    property_list = properties.encode()
    queue.vhost.broker.work += len(property_list) // (READ_BYTES if former is None else KNOWN_BYTES)
    assert settings.dead_letter_exchange is not None
    address = Address(settings.dead_letter_exchange, keys[0])
    return DeadForm(
        *(address, keys, blind_keys, headers, property_list, is_rerouted, added, properties, had_empty_table),
        rounds=rounds,
    )


def _is_rerouted(message: Message) -> bool:
    return isinstance(message, SpecialMessage) and message.is_rerouted


def _had_empty_table(message: Message, form: DeadForm) -> bool:
    if isinstance(message, SpecialMessage) and message.has_died:
        return message.had_empty_table
    return form.had_empty_table


def _has_died(message: Message) -> bool:
    return isinstance(message, SpecialMessage) and message.has_died


def _history(queue: Queue, message: Message, headers: fields.Table) -> list[dict[str, Any]]:
    """Return the earlier deaths of a message, newest first; since 4.0, a client's header does not count."""
    deaths = headers.get("x-death")
    if isinstance(deaths, fields.EncodedList):
        return deaths
    if not isinstance(deaths, list) or not (_has_died(message) or queue.vhost.broker.profile.client_deaths_count):
        return []
    return [death for death in deaths if isinstance(death, dict)]


def with_death(deaths: list[dict[str, Any]], death: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the history with a death in front, which replaces one of the same queue and reason."""
    others = []
    for known in deaths:
        if known.get("queue") == death["queue"] and known.get("reason") == death["reason"]:
            count = known.get("count")
            death = {**known, "count": fields.Long(count + 1 if isinstance(count, int) else 1)}
        else:
            others.append(known)
    if isinstance(deaths, fields.EncodedList) and len(others) == len(deaths):
        return deaths.after(death)
    return [death, *others]


def is_cycle(queue: str, deaths: list[dict[str, Any]]) -> bool:
    """Return whether a message with this history died in the queue since its last rejection."""
    for death in deaths:
        if death.get("reason") == REJECTED:
            return False
        if death.get("queue") == queue:
            return True
    return False
