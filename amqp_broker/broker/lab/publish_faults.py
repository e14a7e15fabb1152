"""Faults of a message that is being published, and of its confirm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from amqp_broker.amqp import frames as wire
from amqp_broker.broker.lab.fault_rules import CONFIRM, PUBLISH

if TYPE_CHECKING:
    from amqp_broker.amqp import fields
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.lab.fault_rules import Rule
    from amqp_broker.broker.observe.message_trace import MessageTrace
    from amqp_broker.broker.routing.route import Route
    from amqp_broker.session.channel.channel import Channel


def before_publish(
    channel: Channel, route: Route, keys: Sequence[str], headers: fields.Table, message: Message
) -> list[Rule]:
    """Return the rules that hit a message before it is routed. Raise what ends the channel or the connection."""
    session, vhost, injector = channel.session, channel.vhost, channel.session.broker.faults

    def queues() -> list[str]:
        return [queue.name for queue in vhost.route(route.exchange, keys, headers, None)[0]]

    possible = [
        rule
        for rule in injector.on_publish
        if (channel.is_confirming or not rule.action.startswith("confirm_"))
        and (route.mandatory or rule.action != "return")
    ]
    rules = injector.hits_of_message(possible, session, message, queues)
    try:
        for rule in rules:
            if rule.on == PUBLISH and not rule.action.startswith("confirm_"):
                if rule.action == "return":
                    frame = wire.return_frame(channel.number, rule.code, rule.text, message.address)
                    session.outbox.append(frame, message.content_for(channel.number, session.frame_max))
                else:
                    session.faults.raise_for(rule)
    except Exception:
        # The message is not published, so `report` is not called.
        injector.report(rules, session, message)
        raise
    return rules


def report(channel: Channel, rules: Sequence[Rule], message: Message, trace: MessageTrace) -> None:
    """Report the rules that have hit a message, after its publish was reported."""
    channel.session.broker.faults.report(rules, channel.session, message)
    for rule in rules:
        if rule.action == "return":
            trace.returned(channel.session, channel.number, message, rule.code, rule.text)


def discards(rules: Sequence[Rule]) -> bool:
    """Return whether the rules keep a message from all queues: it is nacked, or returned as unroutable."""
    return any(rule.action == "confirm_nack" or (rule.action == "return" and not rule.is_routed) for rule in rules)


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
