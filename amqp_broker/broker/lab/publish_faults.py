"""Faults of a message that is being published, and of its confirm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from amqp_broker.amqp import frames as wire
from amqp_broker.broker.lab.fault_rules import CONFIRM, ENDS, PUBLISH

if TYPE_CHECKING:
    from amqp_broker.amqp import fields
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.lab.fault_rules import Rule
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.routing.route import Route
    from amqp_broker.session.channel.channel import Channel


class Discard(NamedTuple):
    """A fault that keeps a message from its queues, or (`delayed_in`) from an exchange that would delay it."""

    action: str
    queues: tuple[Queue, ...]
    delayed_in: str = ""

    @property
    def is_nack(self) -> bool:
        """True if the message is refused with a nack, and not returned as unroutable."""
        return self.action == "confirm_nack"


def before_publish(
    channel: Channel, route: Route, keys: Sequence[str], headers: fields.Table, message: Message
) -> list[Rule]:
    """Return the rules that hit a message before it is routed. Raise what ends the channel or the connection.

    In a transaction these are the rules that act when the publish arrives; see `before_commit` for the others.
    """
    session, vhost, injector = channel.session, channel.vhost, channel.session.broker.faults

    def queues() -> list[str]:
        return [queue.name for queue in vhost.route(route.exchange, keys, headers, None)[0]]

    def hits(rules: list[Rule], *, one: bool = False) -> list[Rule]:
        return injector.hits_of_message(rules, session, message, queues, one=one) if rules else []

    # A rule that begins when one of them is spent hits the next message at the earliest.
    active = injector.on_publish
    for rule in hits([rule for rule in active if rule.on == PUBLISH and rule.action in ENDS], one=True):
        # No publish is reported: this event has the message.
        injector.report([rule], session, message, more={"is_taken": False, "channel": channel.number})
        session.faults.raise_for(rule)
    is_blocked = session.faults.blocking_reason is not None
    rules = hits([rule for rule in active if rule.action == "block" and not is_blocked], one=True)
    for rule in rules:
        session.faults.raise_for(rule)
    if channel.transaction is not None:
        return rules
    ends = hits([rule for rule in active if rule.on == CONFIRM], one=True)
    if ends:
        # The message is routed, and its confirm never leaves.
        return rules + ends
    if route.mandatory:
        rules += _returns(channel, active, message, queues, is_routable=bool(queues()))
    if channel.is_confirming:
        drops = hits([rule for rule in active if rule.action == "confirm_drop"], one=True)
        if not drops:
            rules += hits([rule for rule in active if rule.action == "confirm_nack"], one=True)
            drops = hits([rule for rule in active if rule.action == "confirm_delay"], one=True)
        rules += drops
    return rules


def _returns(
    channel: Channel, active: Iterable[Rule], message: Message, queues: Callable[[], list[str]], *, is_routable: bool
) -> list[Rule]:
    """Return a mandatory message that has a queue to its publisher, if a rule says so; return that rule."""
    session, injector = channel.session, channel.session.broker.faults
    returns = [rule for rule in active if rule.action == "return"]
    rules = injector.hits_of_message(returns, session, message, queues, one=True) if returns and is_routable else []
    for rule in rules:
        frame = wire.return_frame(channel.number, rule.code, rule.text, message.address)
        session.outbox.append(frame, message.content_for(channel.number, session.frame_max))
    return rules


def before_commit(channel: Channel, message: Message, queues: Sequence[Queue]) -> list[Rule]:
    """Return a mandatory message to its publisher at the commit, if a rule says so; return that rule."""
    active = channel.session.broker.faults.on_publish
    return _returns(channel, active, message, partial(_names_of, queues), is_routable=bool(queues))


def end_of_commit(channel: Channel, publishes: Iterable[tuple[Message, Sequence[Queue]]]) -> Rule | None:
    """Return the rule on confirms that hits one of the messages that a transaction has routed; None if none does.

    commit-ok confirms them together, so one rule alone takes its place.
    """
    session, injector = channel.session, channel.session.broker.faults
    ends = [rule for rule in injector.on_publish if rule.on == CONFIRM]
    for message, queues in publishes if ends else ():
        hits = injector.hits_of_message(ends, session, message, partial(_names_of, queues), one=True)
        if hits:
            injector.report(hits, session, message)
            return hits[0]
    return None


def _names_of(queues: Sequence[Queue]) -> list[str]:
    return [queue.name for queue in queues]


def report(channel: Channel, rules: Sequence[Rule], message: Message) -> None:
    """Report the rules that have hit a message, after its publish was reported."""
    channel.session.broker.faults.report(rules, channel.session, message)
    trace = channel.vhost.trace
    for rule in rules:
        if rule.action == "return" and trace is not None:
            trace.returned(channel.session, channel.number, message, rule.code, rule.text)


def discard(
    rules: Iterable[Rule], queues: Callable[[], Iterable[Queue]], exchange: Exchange, headers: fields.Table
) -> Discard | None:
    """Return the fault that keeps a message from all queues, if one of the rules is such a fault.

    `queues` returns these queues.
    """
    for rule in rules:
        if rule.action == "confirm_nack" or (rule.action == "return" and not rule.is_routed):
            return Discard(rule.action, tuple(queues()), exchange.name if exchange.delays(headers) else "")
    return None


def after_publish(channel: Channel, rules: Sequence[Rule]) -> None:
    """Act on the confirm of the last message, which has been routed.

    Raise what ends the channel or the connection.
    """
    confirms = channel.confirms
    if confirms is not None:
        is_nacked = any(rule.action == "confirm_nack" for rule in rules)
        is_dropped = any(rule.action == "confirm_drop" or rule.on == CONFIRM for rule in rules)
        delay_ms = max((rule.delay_ms for rule in rules if rule.action == "confirm_delay"), default=0)
        if is_dropped or delay_ms:
            confirms.withhold(None if is_dropped else delay_ms, is_nacked)
        elif is_nacked:
            confirms.reject()
    for rule in rules:
        if rule.on == CONFIRM:
            channel.session.faults.raise_for(rule)
