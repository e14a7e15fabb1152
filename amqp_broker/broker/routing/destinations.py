"""The queues of a message: from its exchange through bound and alternate exchanges."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from amqp_broker.amqp import fields
from amqp_broker.broker.exchanges.delayed import DelayedExchange
from amqp_broker.broker.exchanges.exchange import Destination, Exchange
from amqp_broker.broker.exchanges.topic import TopicExchange
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.queues.reply import REPLY_PREFIX, REPLY_TO, ReplyQueue
from amqp_broker.broker.scheduling.portions import KEYS_AT_ONCE, Steps

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.vhost import VHost


# The work of an exchange on the way of a message, beside that of matching (`Exchange.match_work`).
EXCHANGE_WORK: Final = 8


def find_queues(
    vhost: VHost,
    exchange: Exchange,
    routing_keys: Sequence[str],
    headers: fields.Table,
    message: Message | None,
) -> tuple[list[Queue], bool]:
    """Return the queues for a message, each once, and whether more than its routing keys decided.

    An exchange without a match passes the message to its alternate exchange. Cycles of exchanges are walked once.
    Call this once per message: an exchange may remember the message, or keep it to route it later. Without a
    message, return the queues for these keys and headers, if nothing else decides.
    """
    if headers and vhost.broker.profile.normalizes_properties:
        headers = _routing_headers(headers)
    queues: dict[Queue, None] = {}
    work = 0
    by_message = False
    seen = {exchange}
    pending = [exchange]
    while pending:
        exchange = pending.pop()
        if exchange is vhost.default_exchange:
            queues.update((queue, None) for key in routing_keys if (queue := _queue_named(vhost, key)) is not None)
            continue
        by_message = by_message or exchange.routes_by_message
        exchange.match_work = 0
        destinations = exchange.destinations(routing_keys, headers, message)
        work += EXCHANGE_WORK + len(destinations) + exchange.match_work
        _follow(vhost, exchange, destinations, queues, seen, pending)
    vhost.broker.routing_work += work
    return list(queues), by_message


def finding_queues(
    vhost: VHost, exchange: Exchange, routing_keys: Sequence[str], headers: fields.Table, message: Message
) -> Steps[list[Queue]]:
    """Return the queues for a message with many keys, in steps."""
    if headers and vhost.broker.profile.normalizes_properties:
        headers = _routing_headers(headers)
    queues: dict[Queue, None] = {}
    seen = {exchange}
    pending = [exchange]
    while pending:
        exchange = pending.pop()
        destinations: Collection[Destination]
        if exchange is vhost.default_exchange:
            queues.update((queue, None) for key in routing_keys if (queue := _queue_named(vhost, key)) is not None)
            continue
        matching = exchange.undelayed(headers) if isinstance(exchange, DelayedExchange) else exchange
        if isinstance(matching, TopicExchange):
            destinations = yield from _matched(vhost, matching, routing_keys)
        else:
            exchange.match_work = 0
            destinations = exchange.destinations(routing_keys, headers, message)
            vhost.broker.work += exchange.match_work
        _follow(vhost, exchange, destinations, queues, seen, pending)
        vhost.broker.work += EXCHANGE_WORK + len(destinations)
        yield
    return [queue for queue in queues if not queue.is_deleted]


def _follow(
    vhost: VHost,
    exchange: Exchange,
    destinations: Collection[Destination],
    queues: dict[Queue, None],
    seen: set[Exchange],
    pending: list[Exchange],
) -> None:
    """Add queues and exchanges that were not seen. Without any, the alternate exchange follows."""
    is_matched = False
    for destination in destinations:
        if destination.is_deleted:
            # Its bindings are removed in steps.
            continue
        is_matched = True
        if isinstance(destination, Queue):
            queues[destination] = None
        elif isinstance(destination, Exchange) and destination not in seen:
            seen.add(destination)
            pending.append(destination)
    # The default exchange has no bindings of its own, so as an alternate it matches nothing.
    if not is_matched and exchange.alternate:
        alternate = vhost.exchanges.get(exchange.alternate)
        if alternate is not None and alternate not in seen:
            seen.add(alternate)
            pending.append(alternate)


def _matched(vhost: VHost, exchange: TopicExchange, routing_keys: Sequence[str]) -> Steps[set[Destination]]:
    """Return the destinations of many keys, a few of which are matched in each step."""
    found: set[Destination] = set()
    for at in range(0, len(routing_keys), KEYS_AT_ONCE):
        exchange.match_work = 0
        found |= exchange.match_each(routing_keys[at : at + KEYS_AT_ONCE], is_next=at > 0)
        vhost.broker.work += exchange.match_work
        yield
    return found


def _routing_headers(headers: fields.Table) -> fields.Table:
    """Return the headers that exchanges of RabbitMQ 4 see: the last value of each key, and times in ms.

    Source: mc_amqpl.erl, routing_headers. The arguments of bindings have times in seconds.
    """
    if isinstance(headers, fields.RepeatedKeys):
        headers = headers.last
    times = {key: fields.Long(value * 1000) for key, value in headers.items() if isinstance(value, fields.Timestamp)}
    return {**headers, **times} if times else headers


def _queue_named(vhost: VHost, name: str) -> Queue | None:
    """Return the queue to which the default exchange routes this key."""
    queue = vhost.queues.get(name)
    if queue is not None or not name.startswith(REPLY_PREFIX):
        return queue
    reply_queue = vhost.reply_queues.get(name)
    if reply_queue is None and not vhost.broker.profile.returns_late_replies:
        # The requester has gone. Its reply is lost but not unroutable: in RabbitMQ, only its own node knows.
        return ReplyQueue(vhost, REPLY_TO)
    return reply_queue
