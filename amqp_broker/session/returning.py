"""How a channel gives deliveries back to their queues.

RabbitMQ settles many at once consumer by consumer. Each basic.get counts as a consumer, whose tag is the delivery tag.
The order shows in quorum queues and in dead letters. Source: rabbit_channel.erl, foreach_per_queue; rabbit_fifo.erl,
handle_down; rabbit_quorum_queue.erl, quorum_ctag.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from amqp_broker.broker.portions import WORK_MAX

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.clients.client_channel import Delivery
    from amqp_broker.broker.portions import Steps
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.session.channel import Channel

# The work (`Broker.work`) of settling a delivery as rejected, or of returning it.
REJECT_WORK: Final = 8
# Deliveries that are settled in one step; more are settled in several.
SETTLED_MAX: Final = 1024

Deliveries: TypeAlias = "list[tuple[int, Delivery]]"

# Parts of a pair of tag and delivery, and of the delivery. A loop in Python would take long for all that are settled.
_DELIVERY: Final = itemgetter(1)
_QUEUE: Final = itemgetter(0)
_CONSUMER: Final = itemgetter(1)


def settling(channel: Channel, deliveries: Deliveries, *, requeue: bool, has_failed: bool) -> Steps[None]:
    """Settle deliveries as rejected, in portions."""
    broker, deliveries = channel.session.broker, settled_order(deliveries)

    def give_back(portion: Deliveries) -> Iterable[Queue]:
        return channel.give_back(portion, has_failed)

    if requeue:
        for together in apart(deliveries):
            yield from _returning(broker, together, give_back, channel.serve_returned)
        return
    for portion in portions(deliveries):
        with broker.dead_letters_held():
            channel.give_up(portion, has_failed)
        broker.work += REJECT_WORK * len(portion)
        yield


def coming_back(broker: Broker, channels: Iterable[Deliveries]) -> Steps[None]:
    """Return the deliveries of lost channels, in portions. One channel follows the other."""

    def give_back(portion: Deliveries) -> Iterable[Queue]:
        return requeue_all(portion, has_failed=True, is_lost=True)

    def serve(queues: Iterable[Queue]) -> None:
        for queue in queues:
            queue.serve_returned()

    for deliveries in channels:
        yield from _returning(broker, deliveries, give_back, serve)


def _returning(
    broker: Broker,
    deliveries: Deliveries,
    give_back: Callable[[Deliveries], Iterable[Queue]],
    serve: Callable[[Iterable[Queue]], None],
) -> Steps[None]:
    """Give deliveries back to their queues. These serve nothing before all are back, so that the order stays."""
    if len(deliveries) <= SETTLED_MAX:
        with broker.dead_letters_held():
            serve(give_back(deliveries))
        broker.work += REJECT_WORK * len(deliveries)
        if broker.work >= WORK_MAX:
            yield
        return
    queues: dict[Queue, None] = dict.fromkeys(map(_QUEUE, map(_DELIVERY, deliveries)))
    for queue in queues:
        queue.hold()
    try:
        for portion in portions(deliveries):
            with broker.dead_letters_held():
                give_back(portion)
            broker.work += REJECT_WORK * len(portion)
            yield
    finally:
        with broker.dead_letters_held():
            for queue in queues:
                queue.end_hold()
            serve(queues)


def portions(deliveries: Deliveries) -> Iterator[Deliveries]:
    """Yield deliveries in the portions in which they are settled."""
    for start in range(0, len(deliveries), SETTLED_MAX):
        yield deliveries[start : start + SETTLED_MAX]


def settled_order(deliveries: list[tuple[int, Delivery]]) -> list[tuple[int, Delivery]]:
    """Sort deliveries, given by ascending tag, as nack and recover settle them.

    Messages from basic.get come first, then those of each consumer, by the consumers' tags.
    """
    if not _are_of_many(deliveries):
        return deliveries
    return sorted(deliveries, key=_by_consumer_tag)


def lost_order(deliveries: list[tuple[int, Delivery]], *, is_by_tag: bool) -> list[tuple[int, Delivery]]:
    """Sort deliveries, given by ascending tag, as a lost channel returns them.

    Consumers follow in the order of their subscriptions. Messages from basic.get come last, by the text of their tags:
    10 is before 9. With `is_by_tag` (up to 3.13), consumers and gets are sorted together by the text of their tags.
    """
    if not _are_of_many(deliveries):
        return deliveries
    return sorted(deliveries, key=_by_any_tag if is_by_tag else _by_subscription)


def apart(deliveries: Deliveries) -> Iterator[Deliveries]:
    """Yield deliveries in the portions in which they come back: those of one consumer after the other.

    After each portion, its consumer takes again, and a queue drops what is too much and what has expired. Where that
    may drop them, each delivery of basic.get, or that goes to the tail, is a portion.
    """
    queues: set[Queue] = set(map(_QUEUE, map(_DELIVERY, deliveries)))
    is_limited = any(queue.limits_returns for queue in queues)
    if not is_limited and not _are_of_many(deliveries):
        yield deliveries
        return
    for consumer, portion in groupby(deliveries, key=_consumer_of):
        if is_limited and (consumer is None or consumer.queue.returns_to_tail):
            for one in portion:
                yield [one]
        else:
            yield list(portion)


def requeue_all(deliveries: Iterable[tuple[int, Delivery]], *, has_failed: bool, is_lost: bool) -> Iterable[Queue]:
    """Put deliveries back in this order, and return their queues, whose `serve_returned` the caller calls."""
    returned: dict[Queue, list[tuple[int, Message]]] = {}
    for _, (queue, _, position, message) in deliveries:
        returned.setdefault(queue, []).append((position, message))
    for queue, messages in returned.items():
        queue.requeue_all(messages, has_failed=has_failed, is_lost=is_lost)
    return returned


def _consumer_of(one: tuple[int, Delivery]) -> Consumer | None:
    return one[1][1]


def _are_of_many(deliveries: Deliveries) -> bool:
    """Return whether not all deliveries are of the same consumer."""
    if len(deliveries) < 2:
        return False
    consumers = set(map(_CONSUMER, map(_DELIVERY, deliveries)))
    return len(consumers) > 1 or None in consumers


def _by_consumer_tag(one: tuple[int, Delivery]) -> tuple[bool, str]:
    consumer = one[1][1]
    return (False, "") if consumer is None else (True, consumer.tag)


def _by_any_tag(one: tuple[int, Delivery]) -> str:
    consumer = one[1][1]
    return str(one[0]) if consumer is None else consumer.tag


def _by_subscription(one: tuple[int, Delivery]) -> tuple[bool, int, str]:
    consumer = one[1][1]
    return (True, 0, str(one[0])) if consumer is None else (False, consumer.sequence, "")
