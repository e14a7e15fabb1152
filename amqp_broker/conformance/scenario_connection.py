"""A client connection that sends anything a scenario wants, right or wrong, and records its input."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from typing import Any

from pamqp import commands

from amqp_broker.conformance import wire
from amqp_broker.conformance.received import END, Received, Silent, Stopped, Unreachable
from amqp_broker.conformance.scenario_channel import Channel
from amqp_broker.conformance.terms import SILENCE_S, Terms
from amqp_broker.conformance.transcript import Transcript
from amqp_broker.conformance.wire import Method

# Limits that scenarios negotiate, where the broker offers as much.
CHANNEL_MAX, FRAME_MAX = 2047, 131072
SILENT = "the broker has been silent"
CAPABILITIES = {
    "publisher_confirms": True,
    "exchange_exchange_bindings": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
}


class Connection:
    """A socket to a broker. Its channel 0 is `control`; `label` names it in the transcript.

    Raise Unreachable if the broker cannot be reached.
    """

    def __init__(
        self,
        address: tuple[str, int],
        label: str,
        transcript: Transcript,
        declares_durable: bool = False,
        silence_s: float = SILENCE_S,
        terms: Terms | None = None,
    ) -> None:
        self.label = label
        self.terms = terms or Terms()
        # Declare durable queues where the scenario does not care: some versions refuse others.
        self.declares_durable = declares_durable
        self.transcript = transcript
        self.frame_max = FRAME_MAX
        # The limits of connection.tune.
        self.offer: dict[str, int] = {}
        # Names of queues and exchanges that the broker has declared.
        self.declared: set[str] = set()
        self.is_ended = False
        self.channels: dict[int, Channel] = {}
        self.control = Channel(self, 0)
        self._end_is_recorded = False
        self._buffer = bytearray()
        self._corked: bytearray | None = None
        self._has_read = False
        self._socket = self._connect(address, silence_s)

    def _connect(self, address: tuple[str, int], silence_s: float) -> socket.socket:
        try:
            plain = socket.create_connection(address, timeout=silence_s)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.terms.tls is None:
                return plain
            context, name = self.terms.tls
            return context.wrap_socket(plain, server_hostname=name)
        except OSError as error:
            raise Unreachable(f"the broker cannot be reached: {error}") from None

    # --- Channels

    def channel(self, number: int = 0) -> Channel:
        """Open a channel, by default with the lowest unused number; not recorded."""
        channel = self.use_channel(number or 1 + max(self.channels))
        with self.transcript.muted():
            channel.call(commands.Channel.Open)
        if not channel.is_open:
            raise Stopped(f"channel {channel.number} cannot be opened")
        return channel

    def use_channel(self, number: int) -> Channel:
        """Return a channel number without opening it."""
        return Channel(self, number)

    def call(self, method: Method, **fields: Any) -> Received:
        return self.control.call(method, **fields)

    def send(self, method: Method, **fields: Any) -> None:
        self.control.send(method, **fields)

    def expect(self, *methods: Method) -> Received:
        return self.control.expect(*methods)

    # --- Open

    def send_header(self, header: bytes = b"AMQP\x00\x00\x09\x01") -> Received:
        """Send a protocol header; the answer is connection.start, or a header and the end."""
        self.send_bytes(header, f"protocol header {header!r}")
        return self.expect()

    def start_ok(
        self,
        response: str | bytes | None = None,
        mechanism: str = "PLAIN",
        capabilities: dict[str, bool] | None = None,
    ) -> Received:
        """Log in; the answer is tune, a close or the end. The user of a response is guest."""
        if response is None:
            response = f"\0{self.terms.user}\0{self.terms.password}"
        elif isinstance(response, str):
            response = self.terms.own(response)
        return self.call(
            commands.Connection.StartOk,
            client_properties={"capabilities": CAPABILITIES if capabilities is None else capabilities},
            mechanism=mechanism,
            response=response,
            locale="en_US",
        )

    def tune_ok(self, channel_max: int | None = None, frame_max: int | None = None, heartbeat: int = 0) -> None:
        """Choose limits, by default those of all scenarios or the smaller ones that the broker offers."""
        if channel_max is None:
            channel_max = min(CHANNEL_MAX, self.offer.get("channel_max") or CHANNEL_MAX)
        if frame_max is None:
            frame_max = min(FRAME_MAX, self.offer.get("frame_max") or FRAME_MAX)
        self.frame_max = frame_max or self.frame_max
        self.send(commands.Connection.TuneOk, channel_max=channel_max, frame_max=frame_max, heartbeat=heartbeat)

    def open(self, vhost: str | None = None) -> Received:
        return self.call(commands.Connection.Open, virtual_host=self.terms.vhost if vhost is None else vhost)

    # --- Close

    def close(self) -> None:
        """Close the connection correctly: after close-ok the client closes the socket."""
        self.call(commands.Connection.Close, reply_code=200, reply_text="bye")
        self.hang_up()

    def flush(self) -> None:
        """Record the remaining input once the channels' requests are processed."""
        for channel in [*self.channels.values()]:
            if channel.is_open and channel is not self.control:
                channel.sync()
            channel.flush()

    def finish(self) -> None:
        """Close the connection correctly if it is still open."""
        if self.control.is_open:
            self.control.ask(commands.Connection.Close, reply_code=200, reply_text="bye")
        self.hang_up()

    def hang_up(self) -> None:
        """Close the socket."""
        self._socket.close()
        self.is_ended = self._end_is_recorded = True
        for channel in self.channels.values():
            channel.is_open = False

    def interrupt(self) -> None:
        """End the socket; another thread may wait for it."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def abort(self) -> None:
        """Reset the socket, as a network does when the client's machine dies."""
        self.transcript.record(f"{self.label}> (resets the socket)")
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.hang_up()

    def expect_end(self) -> None:
        """Wait until the broker closes the socket."""
        while self.expect() is not END:
            pass

    def record_end(self) -> None:
        if not self._end_is_recorded:
            self.transcript.record(f"{self.label}< {END.note}")
            self.hang_up()

    # --- Octets

    def send_bytes(self, data: bytes, note: str) -> None:
        """Send any octets; the transcript shows `note`."""
        self.transcript.record(f"{self.label}> ({note})")
        self.write(data)

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Send what is written meanwhile with one call, so that the broker most often reads it at once."""
        self._corked = bytearray()
        yield
        corked, self._corked = self._corked, None
        self.write(bytes(corked))

    def write(self, data: bytes) -> None:
        if self._corked is not None:
            self._corked += data
            return
        with contextlib.suppress(OSError):  # the broker has closed the socket: a read will report it
            self._socket.sendall(data)

    def read_some(self) -> None:
        """Read once, and add complete frames to the inboxes."""
        try:
            data = self._socket.recv(1 << 18)
        except TimeoutError:
            raise Silent(f"{SILENT} on connection {self.label}") from None
        except OSError:  # reset: the broker closed the socket before it had read all octets
            data = b""
        self.is_ended = not data
        self._buffer += data
        if not self._has_read and self._buffer:
            self._has_read = True
            if self._buffer[0] not in wire.FRAME_KINDS and self._buffer[:1] != b"A":
                raise Stopped(f"the server does not speak AMQP: it has sent {bytes(self._buffer[:16])!r}")
        if self._buffer.startswith(b"AMQP") and len(self._buffer) >= 8:
            self.control.inbox.append(Received(note=f"protocol header {bytes(self._buffer[:8])!r}"))
            del self._buffer[:8]
        while len(self._buffer) >= (size := self._frame_size()):
            try:
                self._take_frame(bytes(self._buffer[:size]))
            except (AssertionError, LookupError, ValueError, struct.error) as error:
                raise Stopped(f"the broker has sent a frame that cannot be read: {error}") from None
            del self._buffer[:size]

    def _take_frame(self, frame: bytes) -> None:
        kind, number = struct.unpack_from(">BH", frame)
        assert frame[-1:] == wire.FRAME_END, "the broker's frame has no end"
        assert number in self.channels, f"channel {number} is not open"
        self.channels[number].take_frame(kind, frame[7:-1])

    def _frame_size(self) -> int:
        return 8 + struct.unpack_from(">I", self._buffer, 3)[0] if len(self._buffer) >= 8 else 8
