"""The client of the attacks: it sends methods as they are, and costs little itself."""

from __future__ import annotations

import contextlib
import socket
from typing import Final

from pamqp import base, commands, frame

from compat.brokers import BrokerProcess

CHANNEL: Final = 1
# RabbitMQ may take longer.
PATIENCE_S: Final = 60.0


def marshalled(*methods: base.Frame) -> bytes:
    return b"".join(frame.marshal(method, CHANNEL) for method in methods)


class RawClient:
    """A connection with one channel, which costs little itself."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        # Connections that stay open with this one.
        self.companions: list[RawClient] = []
        self.socket = socket.create_connection((broker.host, broker.port))
        self.socket.settimeout(PATIENCE_S)
        self._read = b""
        self.socket.sendall(b"AMQP\0\0\x09\1")
        self.wait_for(commands.Connection.Start)
        login = f"\0{broker.user}\0{broker.password}"
        self.call(commands.Connection.StartOk({}, "PLAIN", login), commands.Connection.Tune, 0)
        self.socket.sendall(frame.marshal(commands.Connection.TuneOk(2047, 131_072, 0), 0))
        self.call(commands.Connection.Open("/"), commands.Connection.OpenOk, 0)
        self.call(commands.Channel.Open(), commands.Channel.OpenOk)

    def call(self, method: base.Frame, answer: type[base.Frame], channel: int = CHANNEL) -> None:
        """Send a method and wait for its answer."""
        self.socket.sendall(frame.marshal(method, channel))
        self.wait_for(answer)

    def wait_for(self, kind: type[base.Frame], count: int = 1) -> bytes:
        """Read until this number of methods of this kind have come; return the last one. Raise TimeoutError."""
        while True:
            at = 0
            while len(self._read) - at >= 8 and len(self._read) - at >= 8 + (
                size := int.from_bytes(self._read[at + 3 : at + 7], "big")
            ):
                is_one = self._read[at] == 1 and self._read[at + 7 : at + 11] == kind.index.to_bytes(4, "big")
                at += 8 + size
                count -= is_one
                if not count:
                    last = self._read[at - size - 1 : at - 1]
                    self._read = self._read[at:]
                    return last
            data = self.socket.recv(1 << 20)
            if not data:
                raise ConnectionError("the broker has closed the connection")
            self._read = self._read[at:] + data

    def do(self, *methods: base.Frame) -> None:
        """Send methods that have no answers, and wait until they are done."""
        # In one write: a second one would wait for the system's acknowledgement of the first.
        self.socket.sendall(marshalled(*methods, commands.Basic.Qos()))
        self.wait_for(commands.Basic.QosOk)

    def count(self, queue: str) -> int:
        """Return the number of ready messages of a queue."""
        self.socket.sendall(marshalled(commands.Queue.Declare(queue=queue, passive=True)))
        answer = self.wait_for(commands.Queue.DeclareOk)
        return int.from_bytes(answer[-8:-4], "big")

    def drop_all(self) -> None:
        """Read on without looking, until the connection ends."""
        with contextlib.suppress(OSError):
            while self.socket.recv(1 << 20):
                pass
