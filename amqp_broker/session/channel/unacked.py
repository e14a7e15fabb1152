"""The deliveries of a channel that its client has to settle, by delivery tag."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from itertools import islice, takewhile
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.clients.client_channel import Delivery
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.session.channel.delivery_deadlines import DeliveryDeadlines

# Tags that are looked up one by one, although they may be settled. The dict is slow to walk from the front: it keeps
# the places of those that were removed.
LOOKED_UP_MAX: Final = 1024

# Deliveries by ascending tag, as a channel held them.
Taken: TypeAlias = "Collection[tuple[int, Delivery]]"
# Queue and message of a duplicate.
Duplicate: TypeAlias = "tuple[Queue, Message]"


class Unacked:
    """The tags that a client has to settle.

    `deliveries` are those that a queue waits for, by ascending tag. Settling one of the `duplicates` changes no queue:
    they are copies that a fault rule has delivered, and deliveries that have timed out, whose queue has them again.
    `reserved_count` is the number of deliveries that a fault rule still holds back; these have no tag yet.
    """

    __slots__ = (
        "_settled_until",
        "_timed_out",
        "deadlines",
        "deliveries",
        "duplicates",
        "last_tag",
        "marks",
        "reserved_count",
    )

    def __init__(self) -> None:
        self.deliveries: dict[int, Delivery] = {}
        self.duplicates: dict[int, Duplicate] = {}
        self.last_tag = 0
        self.reserved_count = 0
        # The highest tag up to which no delivery is left.
        self._settled_until = 0
        # Consumers of the deliveries that have timed out, by tag.
        self._timed_out: dict[int, Consumer] = {}
        # Pairs of a time (ms since the epoch) and the last tag at that time, for the consumer timeout.
        self.marks: deque[tuple[int, int]] = deque()
        # Deadlines of the deliveries whose queue or consumer has a timeout of its own.
        self.deadlines: DeliveryDeadlines | None = None

    def __contains__(self, tag: object) -> bool:
        return tag in self.deliveries

    @property
    def count(self) -> int:
        """Number of tags that are not settled."""
        return len(self.deliveries) + len(self.duplicates)

    # Deliveries

    def take_all(self) -> Taken:
        """Take all deliveries."""
        # Not a copy: the garbage collector would walk over a young dict of many deliveries twice.
        taken, self.deliveries = self.deliveries, {}
        return taken.items()

    def take_up_to(self, tag: int) -> Taken:
        """Take the deliveries up to a tag (0: all)."""
        deliveries = self.deliveries
        if deliveries and (tag == 0 or next(reversed(deliveries)) <= tag):
            self._settled_until = max(self._settled_until, tag)
            return self.take_all()
        return [(other, deliveries.pop(other)) for other in self._tags_up_to(tag)]

    def _tags_up_to(self, tag: int) -> list[int]:
        """Return the tags of deliveries up to one; the caller takes them."""
        deliveries = self.deliveries
        first = self._settled_until + 1
        self._settled_until = max(self._settled_until, tag)
        if tag - first <= LOOKED_UP_MAX + 2 * len(deliveries):
            return [other for other in range(first, tag + 1) if other in deliveries]
        return list(takewhile(tag.__ge__, deliveries))

    def put_back(self, taken: Iterable[tuple[int, Delivery]]) -> None:
        """Have the client settle deliveries again, under their tags."""
        in_order = sorted([*self.deliveries.items(), *taken], key=itemgetter(0))
        self.deliveries = dict(in_order)
        if in_order:
            self._settled_until = min(self._settled_until, in_order[0][0] - 1)

    # Duplicates

    def take_duplicates(self, tag: int, multiple: bool) -> dict[int, Duplicate]:
        """Take the duplicate with a tag if there is one, or with `multiple` all up to it (0: all)."""
        duplicates = self.duplicates
        if multiple:
            tags = [other for other in duplicates if tag == 0 or other <= tag]
        else:
            tags = [tag] if tag in duplicates else []
        return {other: duplicates.pop(other) for other in tags}

    def put_back_duplicates(self, taken: dict[int, Duplicate]) -> None:
        """Have the client settle duplicates again, under their tags."""
        self.duplicates = dict(sorted([*self.duplicates.items(), *taken.items()]))

    def time_out(self, tag: int, consumer: Consumer, message: Message) -> None:
        """Note that a delivery, which was taken, has timed out: its consumer gets nothing until it is settled."""
        self.duplicates[tag] = consumer.queue, message
        self._timed_out[tag] = consumer
        if consumer.timed_out_tags is None:
            consumer.timed_out_tags = set()
        consumer.timed_out_tags.add(tag)

    def settle_timed_out(self, tags: Iterable[int]) -> list[Consumer]:
        """Forget tags of deliveries that had timed out; return the consumers that have no other."""
        freed: list[Consumer] = []
        for tag in tags if self._timed_out else ():
            consumer = self._timed_out.pop(tag, None)
            if consumer is not None and consumer.timed_out_tags is not None:
                consumer.timed_out_tags.remove(tag)
                if not consumer.timed_out_tags:
                    freed.append(consumer)
        return freed

    # Age

    def oldest(self) -> tuple[int, Queue] | None:
        """Return tag and queue of the oldest that the client has to settle; None if there is nothing."""
        tags = [*islice(self.deliveries, 1), *islice(self.duplicates, 1)]
        if not tags:
            return None
        tag = min(tags)
        return tag, (self.deliveries.get(tag) or self.duplicates[tag])[0]

    def mark(self, at_ms: int, uncommitted: Iterable[int]) -> None:
        """Note that all tags so far were given out up to this time. A rollback may bring back `uncommitted` ones."""
        marks = self.marks
        held = self.oldest()
        oldest = min([*([held[0]] if held else []), *uncommitted], default=self.last_tag + 1)
        while marks and marks[0][1] < oldest:
            marks.popleft()
        if oldest <= self.last_tag and (not marks or marks[-1][1] < self.last_tag):
            marks.append((at_ms, self.last_tag))

    def marked_at(self, tag: int) -> int | None:
        """Return the time of the first mark that has a tag (ms since the epoch); None before there is one."""
        return next((time for time, last_tag in self.marks if last_tag >= tag), None)

    def last_marked_until(self, time_ms: int) -> int:
        """Return the last tag with a mark of this time or an earlier one; 0 if there is none."""
        return max((tag for marked_at, tag in self.marks if marked_at <= time_ms), default=0)

    # End

    def end(self) -> Taken:
        """Take all deliveries and forget the rest: the channel is lost."""
        if self.deadlines is not None:
            self.deadlines.stop()
            # They refer to the channel, which is to be freed at once.
            self.deadlines = None
        self.duplicates.clear()
        self._timed_out.clear()
        return self.take_all()
