"""A transient queue's messages beyond what may stay in memory: a window whose range nobody will find after a restart.

What was in memory when it began stays there, before all that is here. Persistent or not, a message of a queue that
does not survive the broker need not either, so here it only comes back when its turn comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqp_broker.broker.journal import Stored
from amqp_broker.broker.window import ENTRY_BYTES, Window

if TYPE_CHECKING:
    from amqp_broker.broker.queue import Queue
    from amqp_broker.message import Message


class Overflow(Window):
    """Messages from a position on; all of them are in the journal, but for the portion that was read last."""

    __slots__ = ()

    def __init__(self, queue: Queue, range_id: int, start: int) -> None:
        super().__init__(queue, queue.vhost.broker.journal, range_id, keeps_all=False)
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
        self.journal.told += len(message.content) + ENTRY_BYTES
        self.mark()

    def hand_on(self, position: int, message: Message, deadline_ms: int | None) -> None:
        self.next = self.head = position + 1

    def popleft(self) -> tuple[int, Message]:
        if not self.memory:
            self.fill()
        position, message = taken = self.memory.popleft()
        self.head = position + 1
        self._forget_memory(message)
        self.ready_bytes -= message.body_bytes
        # At once, so that its queue knows when the next one expires.
        self.fill()
        return taken
