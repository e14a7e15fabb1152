"""A client on a real socket that says what a test wants said, and nothing else.

    client = Client(port).open()
    client.send(commands.Queue.Declare(queue="q"))
    assert client.expect(commands.Queue.DeclareOk).queue == "q"

It reads only when it is asked what it received, so a test decides when the broker's writes are stuck.
"""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Any, TypeVar

from pamqp import base, commands, frame
from pamqp.common import FieldTable
from pamqp.heartbeat import Heartbeat

from tests.peer import publish_bytes, show
from tests.present import present

M = TypeVar("M", bound=base.Frame)

TIMEOUT_S = 20.0
READ_BYTES = 1 << 18
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"


class Client:
    """One connection. `receive_bytes` makes the system's buffer for it small, before it fills."""

    def __init__(self, port: int, host: str = "127.0.0.1", *, receive_bytes: int | None = None) -> None:
        self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(TIMEOUT_S)
        self.socket.connect((host, port))
        self.capabilities: FieldTable = {"consumer_cancel_notify": True, "authentication_failure_close": True}
        self._received = bytearray()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Requests of the client

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send(self, *methods: base.Frame, channel: int = 1) -> None:
        self.send_bytes(b"".join(frame.marshal(method, channel) for method in methods))

    def publish(self, routing_key: str, message: bytes = b"", **options: Any) -> None:
        self.send_bytes(publish_bytes(routing_key, message, **options))

    def call(self, method: base.Frame, channel: int = 1) -> Any:
        """Send a method and return the answer to it, which must be the next frame."""
        self.send(method, channel=channel)
        answer, number = self.next()
        assert number == channel
        assert isinstance(answer, base.Frame), show(answer)
        assert answer.name in method.valid_responses, show(answer)
        return answer

    def log_in(self, user: str = "guest", password: str = "guest", *, heartbeat: int = 0) -> Client:
        """The handshake up to tune-ok: connection.open is still to come."""
        self.send_bytes(PROTOCOL_HEADER)
        self.expect(commands.Connection.Start, channel=0)
        start_ok = commands.Connection.StartOk({"capabilities": self.capabilities}, "PLAIN", f"\0{user}\0{password}")
        self.send(start_ok, channel=0)
        self.expect(commands.Connection.Tune, channel=0)
        self.send(commands.Connection.TuneOk(2047, 131072, heartbeat), channel=0)
        return self

    def open(self, user: str = "guest", password: str = "guest", vhost: str = "/", *, heartbeat: int = 0) -> Client:
        """The handshake, and channel 1."""
        self.log_in(user, password, heartbeat=heartbeat)
        self.call(commands.Connection.Open(vhost), channel=0)
        self.call(commands.Channel.Open())
        return self

    def declare(self, queue: str, **options: Any) -> commands.Queue.DeclareOk:
        answer: commands.Queue.DeclareOk = self.call(commands.Queue.Declare(queue=queue, **options))
        return answer

    def consume(self, queue: str, *, no_ack: bool = False) -> None:
        self.call(commands.Basic.Consume(queue=queue, no_ack=no_ack))

    def ready_count(self, queue: str) -> int:
        return present(self.declare(queue, passive=True).message_count)

    def sync(self) -> None:
        """Return when the broker has acted on all that was sent on channel 1."""
        self.call(commands.Basic.Qos())

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Cut the connection so that the broker's system hears RST, not FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    # Replies to the client

    def next(self) -> tuple[Any, int]:
        """The next frame and its channel; heartbeats are passed over. ConnectionError at the end."""
        while True:
            while not self._has_frame():
                data = self.socket.recv(READ_BYTES)
                if not data:
                    raise ConnectionError("the broker closed the connection")
                self._received += data
            size = 8 + int.from_bytes(self._received[3:7], "big")
            _, channel, value = frame.unmarshal(bytes(self._received[:size]))
            del self._received[:size]
            if not isinstance(value, Heartbeat):
                return value, channel

    def _has_frame(self) -> bool:
        received = self._received
        return len(received) >= 8 and len(received) >= 8 + int.from_bytes(received[3:7], "big")

    def expect(self, kind: type[M], channel: int = 1) -> M:
        """The next frame, which must be of this method and on this channel."""
        value, number = self.next()
        assert isinstance(value, kind), show(value)
        assert number == channel, f"{show(value)} on channel {number}, not {channel}"
        return value

    def expect_body(self) -> bytes:
        """The body of the content that follows a method."""
        header, _ = self.next()
        body = b""
        while len(body) < header.body_size:
            body += self.next()[0].value
        return body

    def expect_delivery(self) -> tuple[commands.Basic.Deliver, bytes]:
        return self.expect(commands.Basic.Deliver), self.expect_body()

    def expect_end(self) -> bytes:
        """The broker closes the socket; returns what it said before."""
        said = bytes(self._received)
        try:
            while data := self.socket.recv(READ_BYTES):
                said += data
        except ConnectionResetError:
            pass
        return said
