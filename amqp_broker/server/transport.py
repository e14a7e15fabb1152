"""One socket and its session: reads go in, the outbox goes out, and a full socket holds up only itself."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import TYPE_CHECKING, Final

from amqp_broker.session.faults import refuse
from amqp_broker.session.session import Session

if TYPE_CHECKING:
    from amqp_broker.broker.timers import Timer
    from amqp_broker.server.server import Server

# A consumer whose socket holds this much gets no more until it has read most of it.
WRITE_BUFFER_BYTES_HIGH: Final = 256 * 1024
WRITE_BUFFER_BYTES_LOW: Final = 64 * 1024
# A peer that asks and asks and never reads the answers is not read any more beyond this.
UNREAD_REPLIES_BYTES_MAX: Final = 4 * 1024 * 1024
# How long a peer whose connection is over may take to read the rest of what was written to it.
LINGER_MS: Final = 15_000
# After such a read the next one goes right behind what is left of it.
READ_BYTES_LARGE: Final = 16 * 1024
# Pieces are joined into one write, unless they are so large that the system may better gather them itself.
GATHER_BYTES_MIN: Final = 16 * 1024
# What a connection that a fault resets has said before has left by then.
RESET_DELAY_S: Final = 0.01


class Transport(asyncio.BufferedProtocol):
    """The protocol object of one AMQP connection."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.socket: asyncio.Transport
        self.session: Session
        self.is_reading = True
        # Whether an alarm keeps it from being read.
        self.is_held = False
        # How much the last read brought, and what the session had left over that the next one goes behind.
        self.read_bytes = 0
        self.rest = b""
        self.linger: Timer | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "pause_reading")
        self.socket = transport  # type: ignore[assignment] # uvloop's transports are asyncio's by shape
        transport.set_write_buffer_limits(WRITE_BUFFER_BYTES_HIGH, WRITE_BUFFER_BYTES_LOW)  # type: ignore[attr-defined]
        peer, name = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        peer, name = peer or ("unknown", 0), name or ("unknown", 0)
        server = self.server
        self.session = Session(server.broker, server.dirty, peer[0], peer[1], name[0], name[1], server.clock.now())
        server.transports[self.session] = self
        if server.broker.faults.on_connect:
            refuse(self.session)
        server.flush()

    def get_buffer(self, size_hint: int) -> memoryview:
        """Where the next read goes: into the server's one buffer, right behind what this session has left over.

        So a large frame is put together by reading, not by copying what has been read. A peer that sends it in tiny
        pieces must not make us copy it for each of them, though: its session collects them.
        """
        # A read may bring nothing; others use the buffer then, before the next one.
        if not self.rest and self.read_bytes >= READ_BYTES_LARGE:
            self.rest = self.session.take_rest()
        view, rest = self.server.read_view, self.rest
        view[: len(rest)] = rest
        return view[len(rest) :]

    def buffer_updated(self, count: int) -> None:
        server = self.server
        self.read_bytes = count
        data = bytes(server.read_view[: len(self.rest) + count])
        self.rest = b""
        self.session.receive(data, server.clock.now())
        server.flush()
        broker = server.broker
        has_told = broker.journal.told != self.session.told_before
        if has_told and server.await_commit(self):
            return
        if broker.is_congested:
            broker.is_congested = False
            server.throttle(self)

    def eof_received(self) -> bool:
        # Nobody half-closes in AMQP: the client is gone, and what is unacked goes to others at once.
        self.session.connection_lost(self.server.clock.now())
        self.server.flush()
        return False

    def close(self) -> None:
        """Close the socket when the peer has read what was written, but do not wait for ever."""
        if self.session.is_reset:
            self._reset_soon()
            return
        if self.linger is None and self.socket.get_write_buffer_size():
            deadline = self.server.clock.real_now() + LINGER_MS
            self.linger = self.server.broker.real_timers.at(deadline, lambda now: self.socket.abort())
        self.socket.close()

    def _reset_soon(self) -> None:
        """Have the system send a RST instead of a FIN, when it has what was written."""
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
        server = self.server
        server.forget(self.session)
        self.session.connection_lost(server.clock.now())
        self.session.take_output()
        server.flush()

    def pause_writing(self) -> None:
        self.session.pause()

    def resume_writing(self) -> None:
        self.read_on()
        self.session.resume(self.server.clock.now())
        self.server.flush()
        self.server.end_throttle()

    def stop_reading(self) -> None:
        if self.is_reading and not self.socket.is_closing():
            self.is_reading = False
            self.socket.pause_reading()

    def read_on(self) -> None:
        if not self.is_reading and not self.is_held and not self.socket.is_closing():
            self.is_reading = True
            self.socket.resume_reading()

    def hold(self, is_held: bool) -> None:
        """Do not read the socket until that is over, whatever else would let it be read."""
        self.is_held = is_held
        if is_held:
            self.stop_reading()
        else:
            self.read_on()

    def write(self, pieces: list[bytes]) -> None:
        """Write the pieces of an outbox."""
        socket, session = self.socket, self.session
        if socket.is_closing():
            return
        if len(pieces) > 1 and max(map(len, pieces)) < GATHER_BYTES_MIN:
            data = b"".join(pieces)
            session.sent_bytes += len(data)
            socket.write(data)
        else:
            session.sent_bytes += sum(map(len, pieces))
            socket.writelines(pieces)
        session.sent_count += 1
        if session.is_paused and self.is_reading:
            self._check_unread_replies()

    def _check_unread_replies(self) -> None:
        if self.socket.get_write_buffer_size() > UNREAD_REPLIES_BYTES_MAX:
            self.is_reading = False
            self.socket.pause_reading()
