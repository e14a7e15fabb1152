"""The part of a queue that orders its ready messages."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Self

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.durability.journal import Journal
    from amqp_broker.broker.durability.paged_buffer import PagedBuffer

# Returned messages among which the oldest is looked for. Of more, the lowest position since then counts.
RETURNED_MAX: Final = 1_000


@mypyc_attr(allow_interpreted_subclasses=True)
class Backlog:
    """The ready messages of a queue in the order of delivery; `len` counts them.

    Each message has a position, which it keeps while it is delivered and if it is returned. Messages of a durable queue
    are in ranges of the journal, too.
    """

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def arrival_count(self) -> int:
        """The number of messages that have arrived so far; the next one to arrive has this number."""

    @abstractmethod
    def oldest_arrival(self) -> int | None:
        """Return the number of the ready message that arrived first; None if nothing is ready.

        While more than RETURNED_MAX messages are returned, it may be that of one that has left since.
        """

    @property
    @abstractmethod
    def range_count(self) -> int:
        """Number of ranges of the journal that the messages of a durable queue take."""

    @property
    @abstractmethod
    def buffers(self) -> list[PagedBuffer]:
        """The buffers whose messages are in the journal."""

    @abstractmethod
    def keep(self, journal: Journal, range_id: int) -> None:
        """Keep messages in the journal from now on, in the ranges from `range_id` on; take over what they have."""

    @abstractmethod
    def items(self) -> Iterator[tuple[int, Message, bool]]:
        """Yield positions, messages and whether each was delivered before, in order of delivery."""

    @abstractmethod
    def frozen(self, journal: Journal) -> Self:
        """Return a copy whose `items` stay, for which `journal` must be frozen, too. It costs no walk in Python."""

    @abstractmethod
    def count_bytes(self) -> int:
        """Return the octets of all messages, as the queue counts them."""

    @abstractmethod
    def append(self, message: Message, deadline_ms: int | None) -> int:
        """Add a new message and return its position."""

    @abstractmethod
    def deliver_through(self, message: Message, deadline_ms: int | None) -> int:
        """Give a new message its position, and take it at once; nothing is ready."""

    @abstractmethod
    def head_position(self) -> int:
        """Return the position of the message that is delivered next."""

    def is_next_to_expire(self, position: int) -> bool:
        """Return whether this ready message may expire. Most queues look only at the one at the head."""
        return self.head_position() == position

    def expiring_next(self) -> Iterator[int]:
        """Yield the positions of the ready messages that may expire, each of which holds back those behind it."""
        if self:
            yield self.head_position()

    @abstractmethod
    def pop_head(self) -> tuple[Message, int, bool]:
        """Take the next message; return it, its position, and whether it was delivered before."""

    @abstractmethod
    def put_back(self, position: int, message: Message) -> int:
        """Return a taken message to its place, which may have moved; return its position."""

    @abstractmethod
    def return_to_head(self, position: int, message: Message) -> None:
        """Return the message that was taken last to the head."""

    @abstractmethod
    def reach(self, position: int) -> bool:
        """Bring the message at a position nearer, in portions. Return True when `take_at` finds it, or never will.

        The order of delivery stays, and no message counts as delivered.
        """

    @abstractmethod
    def take_at(self, position: int) -> tuple[Message, bool] | None:
        """Take a ready message out of its place, with whether it was delivered before; None if it is not there."""

    @abstractmethod
    def put_at(self, position: int, message: Message, redelivered: bool) -> None:
        """Return what `take_at` has taken to its place, as it was."""

    @abstractmethod
    def forget(self, position: int, message: Message) -> None:
        """Remove a taken message from the journal."""

    @abstractmethod
    def clear(self) -> None:
        """Remove all ready messages; taken ones stay."""
