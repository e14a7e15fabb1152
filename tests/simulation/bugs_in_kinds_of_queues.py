"""Bugs to plant into priority queues, quorum queues and single active consumers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import chain
from operator import itemgetter
from typing import Any

import pytest

from amqp_broker.amqp.message import Message
from amqp_broker.broker.queues.backlog_queue import BacklogQueue
from amqp_broker.broker.queues.consumer import Consumer
from amqp_broker.broker.queues.consumer_rotation import ConsumerRotation
from amqp_broker.broker.queues.priority_backlog import PriorityBacklog
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.queues.quorum import QuorumQueue
from amqp_broker.broker.queues.quorum_backlog import QuorumBacklog
from amqp_broker.broker.queues.quorum_order import TwoLevels
from amqp_broker.session.channel import acks, returning
from amqp_broker.session.channel.returning import Group, Parted
from tests.simulation.planting import plant, replace


@plant
def low_priorities_come_first(patch: pytest.MonkeyPatch) -> None:
    with_priority(patch, lambda priority, priority_max: priority_max - min(priority, priority_max))


@plant
def priorities_above_the_highest_do_not_count(patch: pytest.MonkeyPatch) -> None:
    with_priority(patch, lambda priority, priority_max: 0 if priority > priority_max else priority)


def with_priority(patch: pytest.MonkeyPatch, change: Callable[[int, int], int]) -> None:
    """Have a message's priority be another where a priority queue looks at it."""

    def new_position(self: PriorityBacklog, message: Message) -> int:
        count = self.range_count
        position = self._next * count + change(message.priority or 0, count - 1)
        self._next += 1
        return position

    patch.setattr(PriorityBacklog, "_new_position", new_position)


@plant
def what_came_back_goes_before_higher_priorities(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PriorityBacklog, "_is_returned_next", lambda self: bool(self._returned))


@plant
def a_quorum_queue_knows_no_priorities(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TwoLevels, "level", lambda self, priority: 4)


@plant
def low_priorities_starve(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TwoLevels, "count", lambda self: None)


@plant
def priority_four_is_high(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TwoLevels, "level", lambda self, priority: 5 if priority is not None and priority >= 4 else 4)


@plant
def the_active_consumer_stays_whoever_comes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(QuorumQueue, "subscribe", Queue.subscribe)


@plant
def a_purge_leaves_the_counts_of_what_came_back(patch: pytest.MonkeyPatch) -> None:
    def clear(self: QuorumBacklog) -> None:
        for position, message in self._returned:
            self.forget(position, message)
            self._deadlines.pop(position, None)
            self._counts.forget(position)
        self._returned.clear()
        for level in self._levels:
            level.clear()
        self._count = 0
        self.order.turn = 0

    patch.setattr(QuorumBacklog, "clear", clear)


@plant
def two_are_active(patch: pytest.MonkeyPatch) -> None:
    def resume(self: Queue, consumer: Consumer) -> None:
        if not consumer.is_taking:
            consumer.is_taking = True
            self.rotation._line_up(consumer)
            if self.ready_count:
                self.drain()

    patch.setattr(Queue, "resume", resume)


@plant
def nobody_follows_the_active_consumer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerRotation, "activate_next", lambda self: None)


@plant
def a_message_may_come_back_once_too_often(patch: pytest.MonkeyPatch) -> None:
    limit = QuorumQueue.delivery_limit
    wrong = property(lambda self: None if limit.__get__(self) is None else limit.__get__(self) + 1)
    patch.setattr(QuorumQueue, "delivery_limit", wrong)


@plant
def the_count_of_deliveries_is_not_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(QuorumQueue, "as_delivered", lambda self, message, position: message)


@plant
def originals_are_kept_for_ever(patch: pytest.MonkeyPatch) -> None:
    def forget(self: QuorumQueue, position: int, message: Message) -> None:
        BacklogQueue.forget(self, position, message)
        self.counts.returns.pop(position, None)

    patch.setattr(QuorumQueue, "forget", forget)


@plant
def a_dead_letter_tells_how_often_it_was_delivered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(QuorumQueue, "reject", BacklogQueue.reject)


@plant
def the_journal_is_not_told_what_a_queue_gives_up(patch: pytest.MonkeyPatch) -> None:
    def discard(self: BacklogQueue[Any], position: int, message: Message, reason: str) -> None:
        self.deadlines.pop(position, None)
        if isinstance(self, QuorumQueue):
            self.counts.returns.pop(position, None)
        self._give_up(message, reason)

    patch.setattr(BacklogQueue, "_discard", discard)


@plant
def what_a_lost_channel_held_goes_to_the_tail(patch: pytest.MonkeyPatch) -> None:
    def make(put_back: Callable[..., int]) -> Any:
        return lambda self, position, message, *, to_tail: put_back(
            self, position, message, to_tail=self.returns_to_tail
        )

    replace(patch, QuorumQueue, "_put_back", make)


@plant
def a_full_quorum_queue_drops_what_comes_back_before_consumers_take_it(patch: pytest.MonkeyPatch) -> None:
    def make(requeue: Callable[..., int]) -> Any:
        def wrong(self: QuorumQueue, position: int, message: Message, *, is_lost: bool = False) -> int:
            position = requeue(self, position, message, is_lost=is_lost)
            if self.limit.drops_head:
                self._drop_beyond_limit()
            return position

        return wrong

    replace(patch, QuorumQueue, "requeue", make)


@plant
def what_is_dropped_at_once_dies_in_order(patch: pytest.MonkeyPatch) -> None:
    def make(give_up: Callable[[QuorumQueue, str, tuple[Message, int] | None], None]) -> Any:
        def wrong(self: QuorumQueue, reason: str, first: tuple[Message, int] | None = None) -> None:
            self.drops_in_reverse = False
            give_up(self, reason, first)

        return wrong

    replace(patch, QuorumQueue, "_give_up_due", make)


@plant
def deliveries_come_back_in_the_order_of_their_tags(patch: pytest.MonkeyPatch) -> None:
    def by_tag(parted: Parted, *, is_by_tag: bool = False) -> list[Group]:
        return [(None, deque(sorted(chain.from_iterable(parted.values()), key=itemgetter(0))))]

    patch.setattr(acks, "settled_order", by_tag)
    patch.setattr(returning, "settled_order", by_tag)
    patch.setattr(returning, "lost_order", by_tag)
