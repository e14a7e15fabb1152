"""One socket and its session: reads go to the session, its outbox goes to the socket."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from amqp_broker.session.session import Session

if TYPE_CHECKING:
    from amqp_broker.broker.scheduling.timers import Timer
    from amqp_broker.server.flush_cycle import FlushCycle

# Bytes in a socket's buffer at which deliveries to its consumers stop, and at which they start again.
WRITE_BUFFER_BYTES_HIGH: Final = 256 * 1024
WRITE_BUFFER_BYTES_LOW: Final = 64 * 1024
# Bytes of unread replies beyond which a client is not read.
UNREAD_REPLIES_BYTES_MAX: Final = 4 * 1024 * 1024
# Time that a client has to read the rest of the output after the end of its connection.
LINGER_MS: Final = 15_000
# Size of a read after which the next one goes right behind its incomplete frame.
READ_BYTES_LARGE: Final = 16 * 1024
# Versions of Python whose asyncio does not report a full socket after `writelines` (CVE-2024-12254).
IS_FULL_IN_SILENCE: Final = (3, 12) <= sys.version_info < (3, 12, 9) or (3, 13) <= sys.version_info < (3, 13, 2)
# Delay of a reset by a fault, so that earlier output leaves.
RESET_DELAY_S: Final = 0.01


def stream_of(transport: asyncio.BaseTransport) -> asyncio.Transport:
    """Return a transport as one that reads and writes; uvloop's transports are asyncio's by shape only."""
    return transport  # type: ignore[return-value]


@mypyc_attr(allow_interpreted_subclasses=True)
class Transport:
    """The protocol object of one AMQP connection. Its subclass is an asyncio.BufferedProtocol."""

    def __init__(self, cycle: FlushCycle) -> None:
        self.cycle = cycle
        self.socket: asyncio.Transport
        self.session: Session
        self.is_reading = True
        # An alarm or a fault keeps the socket from being read.
        self.is_blocked = False
        # Size of the last read, and the incomplete frame that the next read continues.
        self.read_bytes = 0
        self.rest = b""
        self.linger: Timer | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.socket = stream_of(transport)
        self.socket.set_write_buffer_limits(WRITE_BUFFER_BYTES_HIGH, WRITE_BUFFER_BYTES_LOW)
        peer, name = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        peer, name = peer or ("unknown", 0), name or ("unknown", 0)
        cycle = self.cycle
        self.session = Session(cycle.broker, cycle.dirty, peer[0], peer[1], name[0], name[1], cycle.clock.now())
        cycle.transports[self.session] = self
        if cycle.broker.faults.on_connect:
            self.session.faults.on_connect()
        cycle.flush()

    def get_buffer(self, size_hint: int) -> memoryview:
        """Return the shared buffer for the next read, behind the incomplete frame of this session.

        A large frame is thus assembled by reading instead of copying. Where a client sends it in tiny pieces, copying
        it for each would be slow, so the session collects them.
        """
        # A read may be empty, and other transports use the buffer before the next.
        if not self.rest and self.read_bytes >= READ_BYTES_LARGE:
            self.rest = self.session.reader.take_partial_frame()
        view, rest = self.cycle.read_view, self.rest
        if not rest:
            return view
        view[: len(rest)] = rest
        return view[len(rest) :]

    def buffer_updated(self, count: int) -> None:
        cycle = self.cycle
        self.read_bytes = count
        data = bytes(cycle.read_view[: len(self.rest) + count])
        self.rest = b""
        self.session.receive(data, cycle.clock.now())
        cycle.flush()
        broker, committing = cycle.broker, cycle.committing
        is_journaled = broker.journal.journal_bytes != self.session.gate.journal_bytes_before
        if is_journaled and committing is not None and committing.pause(self):
            return
        if broker.is_congested:
            broker.is_congested = False
            cycle.throttle(self)
        elif count >= READ_BYTES_LARGE:
            cycle.share(self, count)

    def eof_received(self) -> bool:
        # AMQP clients do not half-close: the client is gone, and its unacked messages are requeued at once.
        self.session.connection_lost(self.cycle.clock.now())
        self.cycle.flush()
        return False

    def close(self) -> None:
        """Close the socket when the client has read the output, or when its time to do so is over."""
        if self.session.faults.resets_socket:
            self._reset_soon()
            return
        if self.linger is None and self.socket.get_write_buffer_size():
            deadline = self.cycle.clock.real_now() + LINGER_MS
            self.linger = self.cycle.broker.real_timers.at(deadline, lambda now: self.socket.abort())
        self.socket.close()

    def abort(self) -> None:
        """Close the socket at once."""
        self.socket.abort()

    def _reset_soon(self) -> None:
        """Close with a RST instead of a FIN, after the output."""
        if self.socket.get_write_buffer_size():
            asyncio.get_running_loop().call_later(RESET_DELAY_S, self._reset)
        else:
            self._reset()

    def _reset(self) -> None:
        if (connected := self.socket.get_extra_info("socket")) is not None and not self.socket.is_closing():
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.linger is not None:
            self.linger.cancel()
        cycle = self.cycle
        cycle.forget(self.session)
        self.session.connection_lost(cycle.clock.now())
        self.session.outbox.take()
        cycle.flush()
        self.session.release()

    def pause_writing(self) -> None:
        self.session.pause()

    def resume_writing(self) -> None:
        self.resume_reading()
        self.session.resume(self.cycle.clock.now())
        self.cycle.flush()
        self.cycle.end_throttle()

    def pause_reading(self) -> None:
        """Stop reading the socket."""
        if self.is_reading and not self.socket.is_closing():
            self.is_reading = False
            self.socket.pause_reading()

    def resume_reading(self) -> None:
        """Read the socket again, unless it is blocked."""
        if not self.is_reading and not self.is_blocked and not self.socket.is_closing():
            self.is_reading = True
            self.socket.resume_reading()

    def set_blocked(self, is_blocked: bool) -> None:
        """Keep the socket from being read, or end that."""
        self.is_blocked = is_blocked
        if is_blocked:
            self.pause_reading()
        else:
            self.resume_reading()

    def write(self, pieces: list[bytes]) -> None:
        """Write the pieces of an outbox."""
        socket, session = self.socket, self.session
        if socket.is_closing():
            return
        session.sent_bytes += sum(map(len, pieces))
        if len(pieces) == 1 or IS_FULL_IN_SILENCE:
            # Joined, they would take twice the memory.
            for piece in pieces:
                socket.write(piece)
        else:
            socket.writelines(pieces)
        session.sent_count += 1
        if session.is_backpressured and self.is_reading:
            self._check_unread_replies()

    def _check_unread_replies(self) -> None:
        if self.socket.get_write_buffer_size() > UNREAD_REPLIES_BYTES_MAX:
            self.is_reading = False
            self.socket.pause_reading()
