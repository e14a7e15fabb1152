"""Giving up messages, in portions where they are many."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from amqp_broker.broker.queues.dead_letter_reasons import MAXLEN
from amqp_broker.broker.queues.leaving_reasons import DUE, PURGED, QUEUE_DELETED
from amqp_broker.broker.queues.queue import Queue, QueueDeclaration
from amqp_broker.broker.scheduling.portions import (
    DEAD_LETTER_WORK,
    FLOOD_BYTES,
    GIVE_UP_WORK,
    LETTER_BYTES,
    TARGET_WORK,
    WORK_MAX,
)

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.queues.refused_publishers import Publisher
    from amqp_broker.broker.vhost import VHost


# Octets of a place in a queue.
SLOT_BYTES: Final = 32
# Messages that die together: dead letters are in memory while they wait. They are about the work of one turn.
DYING_MAX: Final = WORK_MAX // (GIVE_UP_WORK + DEAD_LETTER_WORK + TARGET_WORK)


class GivingUpQueue(Queue):
    """A queue that gives up messages that have expired, or that are beyond its limit.

    A turn of the loop gives up as many as it has time for (`WORK_MAX`). The others stay in the queue, and in its
    journal, until their turn comes: a message and its dead letter are in one batch of the journal. Meanwhile the queue
    serves nothing, so no client gets a message that is to be given up.
    """

    # Set where all messages beyond a limit are taken before the first is given up, the last one first.
    drops_in_reverse = False

    def __init__(self, vhost: VHost, declaration: QueueDeclaration) -> None:
        super().__init__(vhost, declaration)
        # The reason for which messages are to be given up in the next turn; "" for none.
        self.giving_up = ""
        # Dead letters that have come meanwhile, beyond those that were given up.
        self._dead_letter_count = self._dead_letter_bytes = 0
        # Set if a new limit is to drop messages although the queue refuses publishes from then on.
        self.drops_once = False
        # Those that were taken to be given up in reverse.
        self._dropped: list[tuple[Message, int]] = []
        # Those that were to be given up in a turn that had no more time. The journal has them.
        self._given_up: deque[tuple[int, Message, str]] = deque()

    def offer_dead_letter(self, message: Message, publisher: Publisher | None, targets: int) -> bool:
        """Accept a dead letter while this queue is giving up messages; `targets` is the number of its targets.

        Where too many have come, give it up instead of the first, because the next ones would fill the memory.
        """
        is_due = self.giving_up == MAXLEN or self.settings.message_ttl_ms == 0
        if is_due and self.vhost.dead_letter_bytes > FLOOD_BYTES:
            self.statistics.given_up[self.giving_up] += 1
            self._give_up(message, self.giving_up, is_refused=True)
            return True
        octets = SLOT_BYTES + (LETTER_BYTES + len(message.content)) // targets
        self._dead_letter_count += 1
        self._dead_letter_bytes += octets
        self.vhost.dead_letter_bytes += octets
        return self.offer(message, publisher)

    def _forget_dead_letters(self, count: int) -> None:
        """Count that as many messages have left as have come last, or more."""
        if self._dead_letter_count:
            octets = self._dead_letter_bytes * min(count, self._dead_letter_count) // self._dead_letter_count
            self._dead_letter_count = max(0, self._dead_letter_count - count)
            self._dead_letter_bytes -= octets
            self.vhost.dead_letter_bytes -= octets

    @abstractmethod
    def _is_due(self, reason: str) -> bool:
        """Return whether the message at the head is to be given up for this reason."""

    @abstractmethod
    def _take_to_give_up(self) -> tuple[Message, int]:
        """Take the message at the head, to give it up unless it is damaged; return it and its position."""

    @abstractmethod
    def _discard(self, position: int, message: Message, reason: str) -> None:
        """Give up a message that was taken."""

    @abstractmethod
    def _look_again(self) -> None:
        """Give up what became due while the queue was held."""

    def _dying(self, reason: str) -> Iterator[tuple[Message, int]]:
        """Take the messages that are to be given up for this reason, one by one."""
        dropped = self._dropped
        while self._is_due(reason) or (dropped and reason == MAXLEN):
            yield dropped.pop() if dropped and reason == MAXLEN else self._take_to_give_up()

    def _give_up_due(self, reason: str, first: tuple[Message, int] | None = None) -> None:
        """Give up what is due, and before that what was taken as the first, as far as this turn has time.

        Dead letters of a portion are routed at its end. RabbitMQ routes them when all have left the queue.
        """
        broker, dying = self.vhost.broker, self._dying(reason)
        if first is not None:
            dying = chain((first,), dying)
        if reason == MAXLEN and self.drops_in_reverse:
            while broker.work < WORK_MAX and self._is_due(MAXLEN):
                self._dropped.append(self._take_to_give_up())
                broker.work += GIVE_UP_WORK
        while broker.work < WORK_MAX and not self._waits():
            if self.settings.dead_letter_exchange is None:
                count = self._discard_all(list(islice(dying, DYING_MAX)), reason)
            else:
                with broker.dead_letters_held(serves_freed=False):
                    count = self._discard_all(self._while_time(dying), reason)
            self._forget_dead_letters(count)
            if not count:
                return
        if not self.giving_up and (self._is_due(reason) or self._dropped):
            self.giving_up = reason
            self.hold()
            self._pause_drain()

    def _waits(self) -> bool:
        return self._dead_letter_count > 0 and self.vhost.broker.dead_lettering.is_flooded(self.vhost)

    def _give_up_two(self) -> None:
        """Give up two messages for one that comes, so that no publisher brings more than the queue gives up."""
        self._discard_all(list(islice(self._dying(self.giving_up), 2)), self.giving_up)

    def _while_time(self, dying: Iterator[tuple[Message, int]]) -> Iterator[tuple[Message, int]]:
        """Take those that a turn has time for; each may have many targets."""
        for one in islice(dying, DYING_MAX):
            yield one
            if self.vhost.broker.work >= WORK_MAX:
                return

    def _discard_all(self, taken: Iterable[tuple[Message, int]], reason: str) -> int:
        """Give up messages, and return their number."""
        count = 0
        for message, position in taken:
            count += 1
            self.vhost.broker.work += GIVE_UP_WORK
            if not message.is_damaged:
                self._discard(position, message, reason)
        return count

    def _discard_in_time(self, position: int, message: Message, reason: str) -> None:
        """Give up a message that has come back, in a later turn if this one has no more time."""
        if not self._given_up and self.vhost.broker.work < WORK_MAX:
            self._discard(position, message, reason)
            return
        self._given_up.append((position, message, reason))
        if len(self._given_up) == 1:
            self.vhost.broker.undrained.append(self._discard_given_up)

    def _discard_given_up(self) -> None:
        broker = self.vhost.broker
        with broker.dead_letters_held(serves_freed=False):
            while self._given_up and broker.work < WORK_MAX:
                broker.work += GIVE_UP_WORK
                self._discard(*self._given_up.popleft())
        if self._given_up:
            broker.undrained.append(self._discard_given_up)

    def _drain_next_portion(self) -> None:
        self.is_undrained = False
        if self.giving_up and not self.is_deleted:
            reason, self.giving_up = self.giving_up, ""
            self.holds -= 1
            self._give_up_due(reason)
            self._look_again()
            self._update_extras()
            if not self.giving_up:
                self._forget_dead_letters(self._dead_letter_count)
        if not self.holds:
            super()._drain_next_portion()

    def end_hold(self) -> None:
        super().end_hold()
        if not self.is_deleted:
            self._look_again()

    # The trace

    def _refuse(self, message: Message) -> None:
        if self.settings.overflow == "reject-publish-dlx":
            self._give_up(message, MAXLEN, is_refused=True)
        elif self.vhost.trace is not None:
            self.vhost.trace.given_up(self, message, MAXLEN, is_refused=True)

    def _report_purged(self, messages: Iterable[Message]) -> None:
        trace = self.vhost.trace
        if trace is not None:
            for message in messages:
                trace.given_up(self, message, QUEUE_DELETED if self.is_deleted else PURGED)

    def _report_delay(self, message: Message, *, has_ended: bool) -> None:
        trace = self.vhost.trace
        if trace is not None and has_ended:
            trace.requeued(self, message, DUE)
        elif trace is not None:
            trace.delayed(self, message)

    def release(self) -> None:
        super().release()
        self._forget_dead_letters(self._dead_letter_count)
        self._dropped.clear()
