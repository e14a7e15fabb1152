"""A synchronous AMQP connection: pika's methods on a plain socket.

pika's connections have their own event loop, and its channels reject unacked deliveries on close, which ends the
connection if the deliveries are a stream's. Here each caller reads the socket until its answer arrives. A lost
connection is not reopened: its user knows how to resume (`reconnecting.py`).
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Final, Self

import pika.frame
from pika import spec

from pyspark_amqp.address import Address, Host
from pyspark_amqp.delivery_run import Run
from pyspark_amqp.errors import BrokerError, ConnectionLost, LoginRefused, OptionError, UnknownHost
from pyspark_amqp.frame_parser import HEARTBEAT_FRAME, Frames

READ_BYTES: Final = 256 * 1024
FRAME_BYTES_MAX: Final = 131_072
REPLY_TIMEOUT_S: Final = 30.0
CLOSE_TIMEOUT_S: Final = 2.0
PROPERTIES: Final = {
    "product": "pyspark_amqp",
    "platform": "Apache Spark",
    "capabilities": {
        "authentication_failure_close": True,
        "basic.nack": True,
        "connection.blocked": True,
        "consumer_cancel_notify": True,
        "publisher_confirms": True,
    },
}
CHANNEL_MAX: Final = 2047
# The broker is stopping, or has an error that may pass, such as a vhost that is still starting.
CONNECTION_FORCED, INTERNAL_ERROR = 320, 541
ACCESS_REFUSED: Final = 403
# Hosts that this process has reached. If the name of one is unknown later, the host may be starting again.
_reached: Final[set[str]] = set()
# Addresses to which this process has logged in.
_admitted: Final[set[Address]] = set()
# Parts of RabbitMQ's texts for a queue that exists, but whose node or process is down.
DOWN: Final = ("down or inaccessible", "stopped by supervisor")


class Connection:
    """A connection that is open from construction to `close`, with one channel at a time.

    The first of the address's hosts that answers is used. Raise OptionError for a refused login or a host without AMQP,
    ConnectionLost if no host can be reached, UnknownHost if none has a known name, LoginRefused for a password of a
    file or a variable, and ConnectionLost or BrokerError later.
    """

    def __init__(self, address: Address, heartbeat_s: int = 0) -> None:
        self.address = address
        self.host = address.hosts[0]
        self.is_blocked = False
        self.frame_bytes_max = FRAME_BYTES_MAX
        self.frames = Frames()
        # By time.monotonic().
        self.heard_at = time.monotonic()
        self._pending: list[Run] = []
        self._open(heartbeat_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Open

    def _open(self, heartbeat_s: int) -> None:
        failures: list[ConnectionLost] = []
        for host in self.address.hosts:
            self.host = host
            self.frames = Frames()
            try:
                self._socket = self._connect(host)
            except ConnectionLost as lost:
                failures.append(lost)
                continue
            _reached.add(host.name)
            self._selector = selectors.DefaultSelector()
            self._selector.register(self._socket, selectors.EVENT_READ)
            try:
                return self._log_in(heartbeat_s)
            except ConnectionLost as lost:
                failures.append(lost)
                self.drop()
            except BaseException:
                self.drop()
                raise
        kinds = {type(failure) for failure in failures}
        kind = LoginRefused if LoginRefused in kinds else UnknownHost if kinds == {UnknownHost} else ConnectionLost
        raise kind("; ".join(map(str, failures)))

    def _connect(self, host: Host) -> socket.socket:
        address = self.address
        try:
            plain = socket.create_connection(host, timeout=address.connect_timeout_s)
        except UnicodeError as error:
            raise OptionError(address.option, f"'{host.name}' is no name of a host: {error}") from None
        except OSError as error:
            if isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME and host.name not in _reached:
                raise UnknownHost(f"cannot connect to {host}: {error}") from None
            raise ConnectionLost(f"cannot connect to {host}: {error}") from None
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.settimeout(REPLY_TIMEOUT_S)
            if address.tls is None:
                return plain
            name = address.tls.server_name or host.name
            return address.tls.context().wrap_socket(plain, server_hostname=name)
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError) as error:
            raise ConnectionLost(f"cannot connect to {host}: {error}") from None
        except ssl.SSLError as error:
            raise OptionError(address.option, f"no TLS with {host}: {error}") from None
        except OSError as error:
            raise ConnectionLost(f"cannot connect to {host}: {error}") from None

    def _log_in(self, heartbeat_s: int) -> None:
        address = self.address
        self.send_octets(pika.frame.ProtocolHeader().marshal())
        try:
            self._expect((spec.Connection.Start,), address.connect_timeout_s)
        except ConnectionLost:
            raise
        except BrokerError as error:
            raise OptionError(address.option, f"{self.host} does not speak AMQP 0-9-1: {error}") from None
        login = f"\0{address.username}\0{address.current_password()}" if address.mechanism == "plain" else ""
        self._send(0, spec.Connection.StartOk(PROPERTIES, address.mechanism.upper(), login, "en_US"))
        try:
            tune = self._expect((spec.Connection.Tune,))
        except ConnectionLost:
            raise
        except BrokerError as error:
            if address.password_source is not None and error.code == ACCESS_REFUSED:
                # The file or the variable may be late, or early.
                raise (ConnectionLost if address in _admitted else LoginRefused)(str(error), error.code) from None
            named = "tls.certFile" if address.mechanism == "external" else "username"
            raise OptionError(named if address.option == "host" else address.option, str(error)) from None
        _admitted.add(address)
        self.channel_max = min(tune.channel_max or CHANNEL_MAX, CHANNEL_MAX)
        self.frame_bytes_max = min(tune.frame_max or FRAME_BYTES_MAX, FRAME_BYTES_MAX)
        self._send(0, spec.Connection.TuneOk(self.channel_max, self.frame_bytes_max, heartbeat_s))
        self._send(0, spec.Connection.Open(address.virtual_host))
        try:
            self._expect((spec.Connection.OpenOk,))
        except ConnectionLost:
            raise
        except BrokerError as error:
            name = "virtualHost" if address.option == "host" else address.option
            raise OptionError(name, str(error)) from None
        self.frames.channel = 0

    def open_channel(self) -> None:
        """Open a new channel for the methods below; drop pending input of the previous one."""
        self._pending.clear()
        # Another number than the last one's, whose deliveries may still arrive.
        self.frames.channel = self.frames.channel % self.channel_max + 1
        self.call(spec.Channel.Open(), spec.Channel.OpenOk)

    def close_channel(self) -> None:
        """Close the channel; the broker requeues its deliveries. Nothing is rejected, as streams do not allow it."""
        self.call(spec.Channel.Close(200, "", 0, 0), spec.Channel.CloseOk)

    # Send and receive

    def call(self, method: Any, reply: type[Any]) -> Any:
        """Send a method on the channel and return its reply. Raise BrokerError with the broker's text."""
        self._send(self.frames.channel, method)
        return self._expect((reply,))

    def check_queue(self, queue: str) -> Any:
        """Return queue.declare-ok of an existing queue. Raise OptionError."""
        try:
            return self.call(spec.Queue.Declare(queue=queue, passive=True), spec.Queue.DeclareOk)
        except ConnectionLost:
            raise
        except BrokerError as error:
            raise OptionError("queue", str(error)) from None

    def check_no_stream(self, queue: str) -> Any:
        """Return queue.declare-ok of an existing queue that is not a stream. Raise OptionError.

        Only streams accept a consumer with an offset; other queues refuse it and deliver nothing.
        """
        self.open_channel()
        declare_ok = self.check_queue(queue)
        try:
            self.consume(queue, 1, {"x-stream-offset": "next"})
        except ConnectionLost:
            raise
        except BrokerError:
            self.open_channel()
            return declare_ok
        raise OptionError("queueType", f"queue '{queue}' is a stream: use queueType=stream")

    def consume(self, queue: str, prefetch: int, arguments: dict[str, Any] | None = None) -> str:
        """Start a consumer with acks and return its tag."""
        self.call(spec.Basic.Qos(0, prefetch, False), spec.Basic.QosOk)
        reply = self.call(spec.Basic.Consume(queue=queue, arguments=arguments), spec.Basic.ConsumeOk)
        return str(reply.consumer_tag)

    def cancel(self, consumer_tag: str) -> None:
        """Cancel the consumer; deliveries in flight still arrive and may be acked."""
        self.call(spec.Basic.Cancel(consumer_tag), spec.Basic.CancelOk)

    def ack(self, tag: int) -> None:
        """Ack all deliveries up to this one."""
        self._send(self.frames.channel, spec.Basic.Ack(tag, True))

    def requeue(self, tags: Iterable[int]) -> None:
        """Give these deliveries back to their queue."""
        channel = self.frames.channel
        nacks = (pika.frame.Method(channel, spec.Basic.Nack(tag, False, True)).marshal() for tag in tags)
        self.send_octets(b"".join(nacks))

    def _send(self, channel: int, method: Any) -> None:
        self.send_octets(pika.frame.Method(channel, method).marshal())

    def send_octets(self, octets: bytes) -> None:
        """Send octets. Raise ConnectionLost if the broker is gone, or does not read for 30 seconds."""
        try:
            self._socket.sendall(octets)
        except OSError as error:
            raise ConnectionLost(self._lost(error)) from None

    def send_heartbeat(self) -> None:
        self.send_octets(HEARTBEAT_FRAME)

    def poll(self, timeout_s: float) -> list[Run]:
        """Return the next available deliveries; an empty list if the time expires. Raise BrokerError."""
        if self._pending:
            pending, self._pending = self._pending, []
            return pending
        deadline = time.monotonic() + timeout_s
        while True:
            runs = self._read(deadline - time.monotonic())
            if runs is None:
                return []
            for channel, method in self._take_methods():
                self.heed(channel, method)
            if runs:
                return runs

    def _take_methods(self) -> Sequence[tuple[int, Any]]:
        methods, self.frames.methods = self.frames.methods, []
        return methods

    def read_methods(self, timeout_s: float) -> Sequence[tuple[int, Any]]:
        """Return methods that have arrived or arrive in time; for publishers, which get no deliveries."""
        if self._read(timeout_s) is None:
            return ()
        return self._take_methods()

    def _read(self, timeout_s: float) -> list[Run] | None:
        """Read the socket once; return None if the time expires. Raise ConnectionLost."""
        try:
            if not self._has_octets(max(timeout_s, 0.0)):
                return None
            octets = self._socket.recv(READ_BYTES)
        except OSError as error:
            raise ConnectionLost(self._lost(error)) from None
        if not octets:
            raise ConnectionLost(self._lost("the broker closed the socket"))
        self.heard_at = time.monotonic()
        return self.frames.feed(octets)

    def fileno(self) -> int:
        """Return the socket's number, for a selector over several connections."""
        return self._socket.fileno()

    def _has_octets(self, timeout_s: float) -> bool:
        """Return whether the socket is readable, now or within the time."""
        pending = getattr(self._socket, "pending", None)
        if pending is not None and pending():
            return True
        return bool(self._selector.select(timeout_s))

    def _expect(self, replies: tuple[type[Any], ...], timeout_s: float = REPLY_TIMEOUT_S) -> Any:
        deadline = time.monotonic() + timeout_s
        while True:
            runs = self._read(deadline - time.monotonic())
            if runs is None:
                raise ConnectionLost(self._lost(f"no {replies[0].NAME} within {timeout_s:.0f} s"))
            self._pending += runs
            reply = None
            for channel, method in self._take_methods():
                if isinstance(method, replies):
                    reply = method
                else:
                    self.heed(channel, method)
            if reply is not None:
                return reply

    def heed(self, channel: int, method: Any) -> None:
        """Handle an unsolicited method. Raise BrokerError if it ends the connection, channel or consumer."""
        if isinstance(method, spec.Connection.Close):
            with contextlib.suppress(ConnectionLost):
                self._send(0, spec.Connection.CloseOk())
            raise _refusal(method)
        if isinstance(method, spec.Channel.Close):
            self._send(channel, spec.Channel.CloseOk())
            raise _refusal(method)
        if isinstance(method, spec.Basic.Cancel) and channel == self.frames.channel:
            # If the queue was deleted, the next attempt says so.
            raise ConnectionLost("the broker cancelled the consumer: its queue was deleted or its node is down")
        if isinstance(method, spec.Connection.Blocked):
            self.is_blocked = True
        elif isinstance(method, spec.Connection.Unblocked):
            self.is_blocked = False

    def _lost(self, error: object) -> str:
        return f"the connection to {self.host} was lost: {error}"

    # Close

    def close(self) -> None:
        """Close the connection; the broker requeues unacked deliveries."""
        with contextlib.suppress(BrokerError):
            self._send(0, spec.Connection.Close(200, "", 0, 0))
            self._expect((spec.Connection.CloseOk,), CLOSE_TIMEOUT_S)
        self.drop()

    def drop(self) -> None:
        """Close the socket without notice."""
        self._selector.close()
        with contextlib.suppress(OSError):
            self._socket.close()


def _refusal(method: Any) -> BrokerError:
    """Return the error of a close; ConnectionLost if a later attempt may succeed."""
    text, code = method.reply_text, method.reply_code
    passes = code in (CONNECTION_FORCED, INTERNAL_ERROR) or any(part in text for part in DOWN)
    return (ConnectionLost if passes else BrokerError)(text, code)
