"""Ready messages in the order of arrival."""

from __future__ import annotations

import copy
import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Self

from mypy_extensions import mypyc_attr

from amqp_broker.amqp.message import ENTRY_BYTES
from amqp_broker.broker.durability.overflow_buffer import OverflowBuffer
from amqp_broker.broker.durability.paged_buffer import PAGE_BYTES, PagedBuffer
from amqp_broker.broker.queues.backlog import Backlog

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.durability.journal import Journal

# Below one new item for this many old ones, a heap takes items faster one by one than all at once.
FEW: Final = 16
# Messages that change from `ready` to `returned` in one portion.
PORTION: Final = 10_000


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class ArrivalBacklog(Backlog):
    """The backlog of a classic queue. Positions count arrivals from 0.

    `ready` has messages that were never delivered, the first at position `head`. `returned` has returned ones, all from
    positions before `head`, so serving them first restores the order of arrival. Those at positions in `fresh` were
    never delivered: they only stood before one that was taken out of its place. `paged` has the messages of a durable
    queue, and then `ready` is empty; in a transient queue it has what arrived while memory was short, behind `ready`.
    """

    __slots__ = ("_deadlines", "_is_kept", "fresh", "head", "paged", "ready", "returned")

    def __init__(self, deadlines: dict[int, int]) -> None:
        self._deadlines = deadlines
        self._is_kept = False
        self.ready: deque[Message] = deque()
        self.head = 0
        self.returned: list[tuple[int, Message]] = []
        self.fresh: set[int] = set()
        self.paged: PagedBuffer | None = None

    def __len__(self) -> int:
        paged = self.paged
        return len(self.returned) + len(self.ready) + (0 if paged is None else len(paged))

    @property
    def arrival_count(self) -> int:
        return self.head + len(self.ready) if self.paged is None else self.paged.next

    def oldest_arrival(self) -> int | None:
        return self.head_position() if len(self) else None

    @property
    def range_count(self) -> int:
        return 1

    @property
    def buffers(self) -> list[PagedBuffer]:
        return [] if self.paged is None else [self.paged]

    def keep(self, journal: Journal, range_id: int) -> None:
        self._is_kept = True
        self.paged = PagedBuffer(journal, range_id, keeps_all=False, deadlines=self._deadlines)

    def page(self, journal: Journal) -> bool:
        """Put messages that arrive from now on into the journal only, and return True.

        Return False if they go there already, or if the messages in memory are too few to matter.
        """
        ready = self.ready
        if self.paged is not None or not ready or len(ready) * (len(ready[0].content) + ENTRY_BYTES) < PAGE_BYTES:
            return False
        self.paged = OverflowBuffer(journal, self.head + len(ready), self._deadlines)
        return True

    def end_paging(self) -> bool:
        """Keep all messages in memory again; return False while the journal still has some."""
        paged = self.paged
        if paged is None:
            return True
        if len(paged):
            return False
        if not self.ready:
            self.head = paged.next
        paged.drop()
        self.paged = None
        return True

    def items(self) -> Iterator[tuple[int, Message, bool]]:
        if self.returned:
            # The head costs no sorting.
            first, message = self.returned[0]
            yield first, message, first not in self.fresh
            for position, message in sorted(self.returned)[1:]:
                yield position, message, position not in self.fresh
        for position, message in enumerate(self.ready, self.head):
            yield position, message, False
        if self.paged is not None:
            for position, message in self.paged.items():
                yield position, message, position < self.paged.redelivered_before

    def frozen(self, journal: Journal) -> Self:
        frozen = copy.copy(self)
        frozen.ready, frozen.returned = self.ready.copy(), self.returned.copy()
        frozen.fresh = self.fresh.copy()
        frozen.paged = None if self.paged is None else self.paged.frozen(journal)
        return frozen

    def count_bytes(self) -> int:
        return (
            sum(message.body_bytes for message in self.ready)
            + sum(message.body_bytes for _, message in self.returned)
            + (self.paged.ready_bytes if self.paged is not None else 0)
        )

    def append(self, message: Message, deadline_ms: int | None) -> int:
        if self.paged is not None:
            position = self.paged.next
            self.paged.append(position, message, deadline_ms)
            return position
        self.ready.append(message)
        position = self.head + len(self.ready) - 1
        if deadline_ms is not None:
            self._deadlines[position] = deadline_ms
        return position

    def deliver_through(self, message: Message, deadline_ms: int | None) -> int:
        paged = self.paged
        if paged is None:
            position = self.head
            self.head = position + 1
            return position
        position = paged.next
        paged.deliver_through(position, message, deadline_ms)
        return position

    def head_position(self) -> int:
        if self.returned:
            return self.returned[0][0]
        return self.head if self.ready or self.paged is None else self.paged.head_position()

    def pop_head(self) -> tuple[Message, int, bool]:
        if self.returned:
            position, message = heapq.heappop(self.returned)
            if position in self.fresh:
                self.fresh.remove(position)
                return message, position, False
            return message, position, True
        if self.paged is not None and not self.ready:
            position, message = self.paged.pop_head()
            return message, position, position < self.paged.redelivered_before
        position = self.head
        self.head = position + 1
        message = self.ready.popleft()
        if self.paged is not None and not self.ready:
            self.paged.fill()
        return message, position, False

    def put_back(self, position: int, message: Message) -> int:
        heapq.heappush(self.returned, (position, message))
        return position

    def put_back_all(self, delivered: Sequence[tuple[int, Message]]) -> None:
        """Return many taken messages to their places."""
        if len(delivered) * FEW < len(self.returned):
            for item in delivered:
                heapq.heappush(self.returned, item)
        else:
            self.returned += delivered
            heapq.heapify(self.returned)

    def return_to_head(self, position: int, message: Message) -> None:
        # It counts as delivered from now on, as all returned messages do.
        self.put_back(position, message)

    def reach(self, position: int) -> bool:
        paged = self.paged
        end = self.head + len(self.ready)
        if position < self.head or position >= end:
            return position < self.head or paged is None or paged.reach(position)
        for _ in range(min(position + 1 - self.head, PORTION)):
            # All that is returned is from before.
            self.returned.append((self.head, self.ready.popleft()))
            self.fresh.add(self.head)
            self.head += 1
        if paged is not None and not self.ready:
            paged.fill()
        return position < self.head

    def take_at(self, position: int) -> tuple[Message, bool] | None:
        for index, (at, message) in enumerate(self.returned):
            if at == position:
                del self.returned[index]
                heapq.heapify(self.returned)
                is_fresh = position in self.fresh
                self.fresh.discard(position)
                return message, not is_fresh
        paged = self.paged
        found = None if paged is None else paged.take_at(position)
        return None if paged is None or found is None else (found, position < paged.redelivered_before)

    def put_at(self, position: int, message: Message, redelivered: bool) -> None:
        paged = self.paged
        if paged is not None and position >= paged.head:
            paged.put_at(position, message)
            return
        heapq.heappush(self.returned, (position, message))
        if not redelivered:
            self.fresh.add(position)

    def forget(self, position: int, message: Message) -> None:
        if self._is_kept and self.paged is not None:
            self.paged.remove(position, message)

    def clear(self) -> None:
        for position, message in self.returned:
            self.forget(position, message)
            self._deadlines.pop(position, None)
        self.returned.clear()
        self.fresh.clear()
        if self.paged is not None:
            self.paged.clear()
        if self._deadlines:
            for position in range(self.head, self.head + len(self.ready)):
                self._deadlines.pop(position, None)
        self.head += len(self.ready)
        self.ready.clear()
