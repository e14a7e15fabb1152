"""A client connection that sends anything a scenario wants, right or wrong, and records its input."""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import Any

from pamqp import commands

from amqp_broker.conformance import wire
from amqp_broker.conformance.received import END, Received, Stopped
from amqp_broker.conformance.scenario_channel import Channel
from amqp_broker.conformance.transcript import Transcript
from amqp_broker.conformance.wire import Method

# Longer than RabbitMQ's silence of 3 s after a refused login or a broken frame.
SILENCE_S = 20.0

CAPABILITIES = {
    "publisher_confirms": True,
    "exchange_exchange_bindings": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
}


class Connection:
    """A socket to a broker. Its channel 0 is `control`; `label` names it in the transcript."""

    def __init__(
        self,
        address: tuple[str, int],
        label: str,
        transcript: Transcript,
        declares_durable: bool = False,
        silence_s: float = SILENCE_S,
    ) -> None:
        self.label = label
        # Declare durable queues where the scenario does not care: some versions refuse others.
        self.declares_durable = declares_durable
        self.transcript = transcript
        self.frame_max = 131072
        self.is_ended = False
        self.channels: dict[int, Channel] = {}
        self.control = Channel(self, 0)
        self._end_is_recorded = False
        self._buffer = bytearray()
        self._socket = socket.create_connection(address, timeout=silence_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

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
        response: str | bytes = "\0guest\0guest",
        mechanism: str = "PLAIN",
        capabilities: dict[str, bool] | None = None,
    ) -> Received:
        """Log in; the answer is tune, a close or the end."""
        return self.call(
            commands.Connection.StartOk,
            client_properties={"capabilities": CAPABILITIES if capabilities is None else capabilities},
            mechanism=mechanism,
            response=response,
            locale="en_US",
        )

    def tune_ok(self, channel_max: int = 2047, frame_max: int = 131072, heartbeat: int = 0) -> None:
        self.frame_max = frame_max or self.frame_max
        self.send(commands.Connection.TuneOk, channel_max=channel_max, frame_max=frame_max, heartbeat=heartbeat)

    def open(self, vhost: str = "/") -> Received:
        return self.call(commands.Connection.Open, virtual_host=vhost)

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

    def write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # the broker has closed the socket: a read will report it
            self._socket.sendall(data)

    def read_some(self) -> None:
        """Read once, and add complete frames to the inboxes."""
        try:
            data = self._socket.recv(1 << 18)
        except TimeoutError:
            raise Stopped(f"the broker has been silent on connection {self.label}") from None
        except OSError:  # reset: the broker closed the socket before it had read all octets
            data = b""
        self.is_ended = not data
        self._buffer += data
        if self._buffer.startswith(b"AMQP") and len(self._buffer) >= 8:
            self.control.inbox.append(Received(note=f"protocol header {bytes(self._buffer[:8])!r}"))
            del self._buffer[:8]
        while len(self._buffer) >= (size := self._frame_size()):
            kind, number = struct.unpack_from(">BH", self._buffer)
            assert self._buffer[size - 1 : size] == wire.FRAME_END, "the broker's frame has no end"
            self.channels[number].take_frame(kind, bytes(self._buffer[7 : size - 1]))
            del self._buffer[:size]

    def _frame_size(self) -> int:
        return 8 + struct.unpack_from(">I", self._buffer, 3)[0] if len(self._buffer) >= 8 else 8
