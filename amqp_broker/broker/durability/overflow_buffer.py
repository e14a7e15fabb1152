"""The messages of a transient queue that arrive while memory is short.

They follow those that the queue has in memory. The range is dropped at a restart, like the queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from amqp_broker.amqp.message import ENTRY_BYTES
from amqp_broker.broker.durability.journal import Stored
from amqp_broker.broker.durability.paged_buffer import PagedBuffer

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.durability.journal import Journal


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class OverflowBuffer(PagedBuffer):
    """Messages in the journal, from a position on; only the page that was read last is in memory."""

    __slots__ = ()

    def __init__(self, journal: Journal, start: int, deadlines: dict[int, int]) -> None:
        super().__init__(journal, journal.new_ranges(1), keeps_all=False, deadlines=deadlines)
        self.head = self.next = start

    def keeps(self, message: Message) -> bool:
        return False

    def append(self, position: int, message: Message, deadline_ms: int | None) -> None:
        if not self.paged_count:
            self._read_from = position
        self.next = position + 1
        self.paged_count += 1
        self.ready_bytes += message.body_bytes
        self.puts[position] = Stored(message, deadline_ms)
        self.journal.journal_bytes += len(message.content) + ENTRY_BYTES
        self.mark()

    def deliver_through(self, position: int, message: Message, deadline_ms: int | None) -> None:
        self.next = self.head = position + 1

    def pop_head(self) -> tuple[int, Message]:
        if not self.memory:
            self.fill()
        position, message = taken = self.memory.popleft()
        self.head = position + 1
        self._forget_memory(message)
        self.ready_bytes -= message.body_bytes
        # Without delay, so that the deadline of the next message is known.
        self.fill()
        return taken
