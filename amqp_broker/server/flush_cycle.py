"""The work between two reads.

`flush` runs after everything that may have changed the broker. It writes the output of each session to its socket once,
schedules the next portions of backlogs, sets the timers to the next deadlines, and has batches committed.
"""

from __future__ import annotations

import contextlib
import logging
import mmap
from typing import TYPE_CHECKING, Final, Protocol

from amqp_broker.amqp.connection_states import ENDED
from amqp_broker.broker.admin import patterns
from amqp_broker.broker.durability.journal import JournalBroken
from amqp_broker.server.ticking import Ticking
from amqp_broker.session.wire.reader import PARTIAL_FRAME_BYTES_MAX

if TYPE_CHECKING:
    import asyncio

    from amqp_broker.broker.broker import Broker
    from amqp_broker.server.clock import Clock
    from amqp_broker.server.committing import Committing
    from amqp_broker.server.transport import Transport
    from amqp_broker.session.session import Session

logger = logging.getLogger("amqp_broker.server")

# Size of a read: large enough to outweigh its overhead, small enough not to delay other clients.
READ_BYTES_MAX: Final = 256 * 1024
# Octets of a socket that are read before others have their turn. uvloop reads a socket up to 32 times in a row.
SHARE_BYTES: Final = READ_BYTES_MAX
# Time that a publisher waits for a consumer's full socket to empty. A third of the system's buffers, some MB, has to be
# read for that, so with less time a consumer of 50 MB/s would count as stuck.
THROTTLE_S_MAX: Final = 0.1


class SessionTransport(Protocol):
    """The transport of a session as the cycle sees it: a socket, or a link in memory."""

    # An alarm or a fault keeps the client from being read.
    is_blocked: bool

    def write(self, pieces: list[bytes]) -> None:
        """Write the pieces of an outbox."""
        ...

    def set_blocked(self, is_blocked: bool) -> None:
        """Keep the client from being read, or end that."""
        ...

    def close(self) -> None:
        """Close the connection after its output."""
        ...

    def abort(self) -> None:
        """Close the connection at once."""
        ...


class FlushCycle:
    """The buffer, the transports and the `flush` that the sessions of one broker share."""

    # Set when clients are served.
    loop: asyncio.AbstractEventLoop

    def __init__(self, broker: Broker, clock: Clock) -> None:
        self.broker = broker
        self.clock = clock
        # Sessions to flush, and the transport of each session.
        self.dirty: list[Session] = []
        self.transports: dict[Session, SessionTransport] = {}
        # Buffer for all reads, of which only the used pages take memory; a session copies the bytes that it keeps.
        self.read_view = memoryview(mmap.mmap(-1, READ_BYTES_MAX + PARTIAL_FRAME_BYTES_MAX))
        self.ticking = Ticking(broker, clock, self.flush)
        # None without a store, and before the start.
        self.committing: Committing | None = None
        # Set when the last client has gone, while the server stops.
        self.all_closed: asyncio.Event | None = None
        self._is_draining = False
        self._is_throttling = True
        self._throttled: list[Transport] = []
        self._throttle_timer: asyncio.TimerHandle | None = None
        # Octets of the socket that was read last, since others have had their turn, and the sockets that wait for it.
        self._reader: Transport | None = None
        self._reader_bytes = 0
        self._resting: list[Transport] = []

    def flush(self) -> None:
        """Write the output of sessions, and do the work that was put off."""
        dirty, transports, broker, ticking = self.dirty, self.transports, self.broker, self.ticking
        broker.end_turn()
        while dirty:
            session = dirty.pop()
            transport = transports.get(session)
            if transport is not None and session.blocking.is_blocked is not transport.is_blocked:
                transport.set_blocked(session.blocking.is_blocked)
            if session.outbox.held_until:
                continue
            output = session.outbox.take()
            if transport is None:
                continue
            if output:
                transport.write(output)
            if session.state is ENDED:
                transport.close()
        if broker.queue_waits:
            for wait in list(broker.queue_waits):
                wait.check()
        while patterns.warnings:
            logger.warning("%s", patterns.warnings.popleft())
        if broker.undrained and not self._is_draining:
            self._is_draining = True
            self.loop.call_soon(self._drain_next_portion)
        if broker.timers.earliest_ms != ticking.due_ms or broker.real_timers.earliest_ms != ticking.real_due_ms:
            ticking.set_timers()
        if self.committing is not None:
            self.committing.check()

    def _drain_next_portion(self) -> None:
        self._is_draining = False
        try:
            # Where the journal is broken, the process is about to end.
            with contextlib.suppress(JournalBroken):
                self.broker.drain_on()
        finally:
            self.flush()
            self.end_throttle()

    def forget(self, session: Session) -> None:
        """Forget a session whose socket is closed."""
        self.transports.pop(session, None)
        if self.all_closed is not None and not self.transports:
            self.all_closed.set()

    # Sockets in turn

    def share(self, transport: Transport, count: int) -> None:
        """Count a large read of a socket. One that has had its share is read again after the others."""
        if transport is not self._reader:
            self._reader, self._reader_bytes = transport, 0
        self._reader_bytes += count
        if self._reader_bytes >= SHARE_BYTES and transport.is_reading:
            self._reader = None
            transport.pause_reading()
            if not self._resting:
                self.loop.call_soon(self._end_rest)
            self._resting.append(transport)

    def _end_rest(self) -> None:
        resting, self._resting = self._resting, []
        for transport in resting:
            transport.resume_reading()

    # Publishers that outrun consumers

    def throttle(self, transport: Transport) -> None:
        """Pause a publisher that outruns the sockets of its consumers, until one of these makes progress.

        While a backlog is delivered in portions this makes one read for two of them, so that the backlog shrinks. If it
        takes longer than THROTTLE_S_MAX, the consumers are stuck, and the publisher goes on without them.
        """
        if self._is_throttling and transport.is_reading:
            transport.pause_reading()
            if not self._throttled:
                self._throttle_timer = self.loop.call_later(THROTTLE_S_MAX, self._give_up_throttle)
            self._throttled.append(transport)

    def end_throttle(self) -> None:
        """Resume throttled publishers: a consumer's socket takes more, or the next portion was delivered."""
        self._is_throttling = True
        if self._throttled:
            if self._throttle_timer is not None:
                self._throttle_timer.cancel()
            self._resume_reading()

    def _give_up_throttle(self) -> None:
        self._is_throttling = False
        self._resume_reading()

    def _resume_reading(self) -> None:
        throttled, self._throttled = self._throttled, []
        for transport in throttled:
            transport.resume_reading()
