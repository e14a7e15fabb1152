"""How a channel gives deliveries back to their queues.

RabbitMQ settles many at once consumer by consumer. Each basic.get counts as a consumer, whose tag is the delivery tag.
The order shows in quorum queues and in dead letters. Source: rabbit_channel.erl, foreach_per_queue; rabbit_fifo.erl,
handle_down; rabbit_quorum_queue.erl, quorum_ctag.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from amqp_broker.broker.scheduling.portions import WORK_MAX, popping

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.clients.client_channel import Delivery
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.scheduling.portions import Steps
    from amqp_broker.session.channel.channel import Channel
    from amqp_broker.session.channel.unacked import Taken

# The work (`Broker.work`) of settling a delivery as rejected, or of returning it.
REJECT_WORK: Final = 8
# Deliveries that are settled in one step; more are settled in several.
SETTLED_MAX: Final = 1024
# The work of looking whose delivery one is.
PART_WORK: Final = 1
# Parts of a pair of tag and delivery, and of the delivery.
_DELIVERY: Final = itemgetter(1)
_CONSUMER: Final = itemgetter(1)

Deliveries: TypeAlias = "list[tuple[int, Delivery]]"
# The deliveries of one consumer, or of basic.get (None); and those of each.
Group: TypeAlias = "tuple[Consumer | None, deque[tuple[int, Delivery]]]"
Parted: TypeAlias = "dict[Consumer | None, deque[tuple[int, Delivery]]]"


def settling(channel: Channel, taken: Taken, *, requeue: bool, has_failed: bool, reason: str = "") -> Steps[None]:
    """Settle deliveries as rejected, in portions; `reason` as in `Channel.give_back`."""
    broker = channel.session.broker
    groups = settled_order((yield from by_consumer(broker, taken)))
    # Deliveries are freed as they are settled.
    taken = ()

    def give_back(portion: Deliveries) -> Iterable[Queue]:
        return channel.give_back(portion, has_failed, reason)

    if requeue:
        for together in apart(groups, has_limit=channel.limit is not None):
            yield from returning(broker, together, give_back, channel.serve_returned)
        return
    for portion in portions(groups):
        left = deque(portion)
        while left:
            with broker.dead_letters_held():
                give_up(channel, left, has_failed=has_failed)
            yield


def give_up(channel: Channel, deliveries: deque[tuple[int, Delivery]], *, has_failed: bool) -> None:
    """Drop or dead-letter rejected deliveries, as far as this turn has time; take those out, one at least."""
    broker = channel.session.broker
    given_up: Deliveries = []
    while deliveries and not (given_up and broker.work >= WORK_MAX):
        given_up.append(deliveries.popleft())
        channel.count_rejected(given_up[-1:], False)
        queue, _, position, message = given_up[-1][1]
        if has_failed:
            queue.note_failure(position)
        queue.reject(position, message)
        broker.work += REJECT_WORK
    channel.release_prefetch(given_up)


def coming_back(broker: Broker, channels: Iterable[Taken], reason: str) -> Steps[None]:
    """Return the deliveries of channels that are lost for a reason, in portions. One channel follows the other."""

    def give_back(portion: Deliveries) -> Iterable[Queue]:
        for _, (queue, _, _, message) in portion:
            trace = queue.vhost.trace
            if trace is None:
                break
            trace.requeued(queue, message, reason)
        return requeue_all(portion, has_failed=True, is_lost=True)

    def serve(queues: Iterable[Queue]) -> None:
        for queue in queues:
            queue.serve_returned()

    left = deque(filter(None, channels))
    channels = ()
    for taken in popping(left):
        parted = yield from by_consumer(broker, taken)
        # Deliveries are freed as they come back.
        taken = ()
        groups = lost_order(parted, is_by_tag=broker.profile.returns_by_tag)
        yield from returning(broker, groups, give_back, serve)


def returning(
    broker: Broker,
    groups: Sequence[Group],
    give_back: Callable[[Deliveries], Iterable[Queue]],
    serve: Callable[[Iterable[Queue]], None],
) -> Steps[None]:
    """Give deliveries back to their queues. These serve nothing before all are back, so that the order stays."""
    count = sum(len(deliveries) for _, deliveries in groups)
    if count <= SETTLED_MAX:
        with broker.dead_letters_held():
            for portion in portions(groups):
                serve(give_back(portion))
        broker.work += REJECT_WORK * count
        if broker.work >= WORK_MAX:
            yield
        return
    queues = _queues_of(groups)
    for queue in queues:
        queue.hold()
    try:
        for portion in portions(groups):
            with broker.dead_letters_held():
                give_back(portion)
            broker.work += REJECT_WORK * len(portion)
            yield
    finally:
        with broker.dead_letters_held():
            for queue in queues:
                queue.end_hold()
            serve(queues)


def by_consumer(broker: Broker, taken: Taken) -> Steps[Parted]:
    """Part deliveries by their consumers, in portions."""
    parted: Parted = {}
    rest = iter(taken)
    for left in range(len(taken), 0, -SETTLED_MAX):
        portion = list(islice(rest, SETTLED_MAX))
        consumers = set(map(_CONSUMER, map(_DELIVERY, portion)))
        if len(consumers) == 1:
            parted.setdefault(consumers.pop(), deque()).extend(portion)
        else:
            for one in portion:
                parted.setdefault(one[1][1], deque()).append(one)
        if left > SETTLED_MAX:
            broker.work += PART_WORK * SETTLED_MAX
            yield
    return parted


def portions(groups: Iterable[Group]) -> Iterator[Deliveries]:
    """Take deliveries out of their groups, in the portions in which they are settled."""
    portion: Deliveries = []
    for _, deliveries in groups:
        while deliveries:
            count = min(SETTLED_MAX - len(portion), len(deliveries))
            portion += islice(iter(deliveries.popleft, None), count)
            if len(portion) == SETTLED_MAX:
                yield portion
                portion = []
    if portion:
        yield portion


def settled_order(parted: Parted) -> list[Group]:
    """Return deliveries as nack and recover settle them.

    Those of basic.get come first, then those of each consumer, by the consumers' tags.
    """
    return sorted(parted.items(), key=_by_consumer_tag)


def lost_order(parted: Parted, *, is_by_tag: bool) -> list[Group]:
    """Return deliveries as a lost channel returns them.

    Consumers follow in the order of their subscriptions. Messages from basic.get come last, by the text of their tags:
    10 is before 9. With `is_by_tag` (up to 3.13), consumers and gets are sorted together by the text of their tags.
    """
    gets = sorted(parted.pop(None, ()), key=_text_of_tag)
    if is_by_tag:
        groups: list[Group] = [*parted.items(), *((None, deque([get])) for get in gets)]
        groups.sort(key=_by_any_tag)
        return groups
    return [*sorted(parted.items(), key=_by_subscription), (None, deque(gets))]


def apart(groups: Sequence[Group], *, has_limit: bool = False) -> Iterator[Sequence[Group]]:
    """Yield deliveries in the portions in which they come back: those of one consumer after the other.

    After each portion, its consumer takes again, and a queue drops what is too much and what has expired. Each delivery
    of basic.get is a portion, and, where a queue may drop them, each that goes to the tail. With a limit of the channel
    (`ChannelLimit`), all come back before a consumer takes again: the limiter of RabbitMQ is informed at the end.
    """
    is_limited = any(queue.limits_returns for queue in _queues_of(groups))
    if has_limit and not (is_limited and any(_is_alone(consumer) for consumer, _ in groups)):
        yield groups
        return
    for consumer, deliveries in groups:
        if consumer is None or (is_limited and consumer.queue.returns_to_tail):
            for one in popping(deliveries):
                yield [(consumer, deque([one]))]
        else:
            yield [(consumer, deliveries)]


def _is_alone(consumer: Consumer | None) -> bool:
    """Return whether each delivery of a consumer, or of basic.get, is a portion where a queue may drop it."""
    return consumer is None or consumer.queue.returns_to_tail


def _queues_of(groups: Iterable[Group]) -> dict[Queue, None]:
    """Return the queues of deliveries, in the order of their first ones."""
    queues: dict[Queue, None] = {}
    for consumer, deliveries in groups:
        if consumer is None:
            queues.update(dict.fromkeys(delivery[0] for _, delivery in deliveries))
        else:
            queues[consumer.queue] = None
    return queues


def requeue_all(deliveries: Iterable[tuple[int, Delivery]], *, has_failed: bool, is_lost: bool) -> Iterable[Queue]:
    """Put deliveries back in this order, and return their queues, whose `serve_returned` the caller calls."""
    returned: dict[Queue, list[tuple[int, Message]]] = {}
    for _, (queue, _, position, message) in deliveries:
        returned.setdefault(queue, []).append((position, message))
    for queue, messages in returned.items():
        queue.requeue_all(messages, has_failed=has_failed, is_lost=is_lost)
    return returned


def _by_consumer_tag(group: Group) -> tuple[bool, str]:
    consumer = group[0]
    return (False, "") if consumer is None else (True, consumer.tag)


def _by_any_tag(group: Group) -> str:
    consumer, deliveries = group
    return _text_of_tag(deliveries[0]) if consumer is None else consumer.tag


def _by_subscription(group: Group) -> int:
    consumer = group[0]
    assert consumer is not None
    return consumer.sequence


def _text_of_tag(one: tuple[int, Delivery]) -> str:
    return str(one[0])
