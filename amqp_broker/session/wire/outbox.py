"""Bytes of one connection on their way to the socket."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from amqp_broker.broker.lab.output_delay import OutputDelay
    from amqp_broker.session.session import Session

# Number of a batch that is never committed.
FOREVER: Final = 2**62


class Outbox:
    """Frames that the shell writes with its next flush.

    An outbox that gets its first piece puts its session into `dirty`, the shell's list of sessions to flush. While
    `held_until` is the number of a batch of the journal, the shell writes nothing; 0 means that output may leave.
    """

    # Pieces up to this size are joined for one write; the system gathers larger ones.
    JOINED_BYTES_MAX: ClassVar[int] = 16 * 1024 - 1
    # For the compiler.
    __deletable__ = ("session",)
    __slots__ = ("delay", "dirty", "flush_count", "has_large_pieces", "held_until", "pieces", "session")

    def __init__(self, session: Session, dirty: list[Session]) -> None:
        self.session = session
        self.dirty = dirty
        self.pieces: list[bytes] = []
        self.has_large_pieces = False
        self.held_until = 0
        self.flush_count = 0
        # Set by a latency fault.
        self.delay: OutputDelay | None = None

    def append(self, *pieces: bytes) -> None:
        """Add frames, or pieces of one frame."""
        if not self.pieces:
            self.dirty.append(self.session)
        self.pieces += pieces
        if max(map(len, pieces)) > self.JOINED_BYTES_MAX:
            self.has_large_pieces = True

    def request_flush(self) -> None:
        """Have the shell flush the session although nothing was added."""
        self.dirty.append(self.session)

    def hold_forever(self) -> None:
        """Write nothing until `discard`."""
        self.held_until = FOREVER
        self.request_flush()

    def discard(self) -> None:
        """Drop all pieces; output that follows may leave."""
        self.held_until = 0
        self.has_large_pieces = False
        self.pieces.clear()

    def release(self) -> None:
        """Forget the session, which has ended: nothing is written any more."""
        del self.session

    def take(self) -> list[bytes]:
        """Return the pieces to write now, and empty the outbox. Small ones are joined."""
        output, self.pieces = self.pieces, []
        self.flush_count += 1
        if self.has_large_pieces:
            self.has_large_pieces = False
        elif len(output) > 1:
            output = [b"".join(output)]
        return output if self.delay is None else self.delay.pass_on(output)
