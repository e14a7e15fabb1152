"""Publishing of rows with confirms. Few rows are unconfirmed at a time; a new connection publishes them again."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from struct import Struct
from typing import Any, Final, NamedTuple

from pika import spec

from pyspark_amqp.amqp_connection import Connection
from pyspark_amqp.content_header import encode, short_string
from pyspark_amqp.errors import BrokerError, ConnectionLost
from pyspark_amqp.format_options import SinkOptions
from pyspark_amqp.frame_parser import BODY, FRAME, FRAME_END_OCTET, HEADER, METHOD
from pyspark_amqp.reconnecting import Attempts, persist

# Octets per write.
WRITE_BYTES: Final = 64 * 1024
# Class 60, method 40, and the unused ticket.
PUBLISH: Final = Struct(">HHH").pack(60, 40, 0)
# Octets of a frame beside its payload.
FRAME_OVERHEAD: Final = 8


class Outgoing(NamedTuple):
    """A message as it is published: the frame of the method, and the payloads of header and body."""

    method: bytes
    header: bytes
    body: bytes


class Confirms:
    """Confirmed messages of 1, 2, 3, …: all up to `low`, and those in `beyond`."""

    def __init__(self) -> None:
        self.published = 0
        self.low = 0
        self.beyond: set[int] = set()

    @property
    def open_count(self) -> int:
        return self.published - self.low - len(self.beyond)

    def confirm(self, tag: int, multiple: bool) -> None:
        """Confirm this message, or all up to it with `multiple`; 0 means all messages."""
        if multiple:
            self.low = max(self.low, tag or self.published)
            self.beyond = {other for other in self.beyond if other > self.low}
        elif tag > self.low:
            self.beyond.add(tag)
        while self.low + 1 in self.beyond:
            self.low += 1
            self.beyond.remove(self.low)

    def open_tags(self) -> list[int]:
        """Return the numbers of the unconfirmed messages."""
        return [tag for tag in range(self.low + 1, self.published + 1) if tag not in self.beyond]


class Publisher:
    """The connection and channel of a task; `publish` each row, then `finish`.

    If the connection is lost, everything unconfirmed is published again on a new one. Raise BrokerError for a nack, an
    unroutable message, a late confirm and any error from the broker, and ConnectionLost if it is away, or blocks
    publishers, for too long.
    """

    def __init__(self, options: SinkOptions) -> None:
        self.options = options
        self.confirms = Confirms()
        # Messages from confirms.low + 1 on.
        self._open: deque[Outgoing] = deque()
        self._parts: list[bytes] = []
        self._size = 0
        # Frames of basic.publish by exchange and routing key.
        self._methods: dict[tuple[str, str], bytes] = {}
        self._attempts = Attempts(options.address)
        self._connection = persist(options.address, self._connect)

    def _connect(self) -> Connection:
        connection = Connection(self.options.address)
        try:
            connection.open_channel()
            connection.call(spec.Confirm.Select(), spec.Confirm.SelectOk)
        except BaseException:
            connection.drop()
            raise
        self._body_max = connection.frame_bytes_max - FRAME_OVERHEAD
        return connection

    def publish(self, values: dict[str, Any]) -> None:
        """Publish a row by columns; wait while too many are unconfirmed. Raise ValueError for values outside AMQP."""
        body = values.get("body", values.get("value"))
        if body is None:
            if not self.options.takes_null_body:
                raise ValueError("the body of a row is NULL; with nullBody=empty it is published as an empty one")
            body = b""
        if isinstance(body, str):
            body = body.encode()
        options = self.options
        exchange = (values.get("exchange") or "") if options.exchange is None else options.exchange
        key = values["routing_key"] if options.routing_key is None else options.routing_key
        if key is None:
            raise ValueError("the routing_key of a row is NULL")
        address = (exchange, key)
        if values.get("delivery_mode") is None:
            values["delivery_mode"] = self.options.delivery_mode
        outgoing = Outgoing(self._methods.get(address) or self._method(address), encode(values, len(body)), body)
        self._open.append(outgoing)
        self._send(outgoing)
        if self._size >= WRITE_BYTES:
            self._flush()
        if self.confirms.open_count >= self.options.in_flight_max:
            self._flush()
            self._wait_for(self.options.in_flight_max // 2)

    def _send(self, outgoing: Outgoing) -> None:
        method, header, body = outgoing
        self._parts += (method, FRAME.pack(HEADER, 1, len(header)), header, FRAME_END_OCTET)
        for start in range(0, len(body), self._body_max):
            part = body[start : start + self._body_max]
            self._parts += (FRAME.pack(BODY, 1, len(part)), part, FRAME_END_OCTET)
        self._size += len(header) + len(body)
        self.confirms.published += 1

    def _resume(self, lost: ConnectionLost) -> None:
        """Publish everything unconfirmed on a new connection. Raise ConnectionLost if there is none in time."""
        while True:
            self._attempts.failed(lost)
            self._connection.drop()
            try:
                self._connection = self._connect()
                unconfirmed = [self._open[tag - 1 - self.confirms.low] for tag in self.confirms.open_tags()]
                self.confirms = Confirms()
                self._open = deque(unconfirmed)
                self._parts, self._size = [], 0
                for outgoing in unconfirmed:
                    self._send(outgoing)
                self._connection.send_octets(self._taken())
                return
            except ConnectionLost as again:
                lost = again

    def _method(self, address: tuple[str, str]) -> bytes:
        exchange, key = address
        payload = PUBLISH + short_string(exchange, "exchange") + short_string(key, "routing_key")
        payload += bytes((int(self.options.mandatory),))
        frame = FRAME.pack(METHOD, 1, len(payload)) + payload + FRAME_END_OCTET
        # Each row may have another routing key.
        if len(self._methods) >= 10_000:
            self._methods.clear()
        self._methods[address] = frame
        return frame

    def _taken(self) -> bytes:
        octets = b"".join(self._parts)
        self._parts, self._size = [], 0
        return octets

    def _flush(self) -> None:
        if self._parts:
            octets = self._taken()
            try:
                self._connection.send_octets(octets)
            except ConnectionLost as lost:
                self._resume(lost)
        self._hear(0.0)

    def _hear(self, timeout_s: float) -> None:
        """Process the broker's methods that arrive within the time."""
        try:
            self._heed(self._connection.read_methods(timeout_s))
        except ConnectionLost as lost:
            self._resume(lost)

    def _heed(self, methods: Sequence[tuple[int, Any]]) -> None:
        for channel, method in methods:
            if isinstance(method, spec.Basic.Ack):
                self._confirm(method.delivery_tag, method.multiple)
            elif isinstance(method, spec.Basic.Nack):
                raise BrokerError(
                    f"the broker nacked message {method.delivery_tag} of this task"
                    f"{' and all before it' if method.multiple else ''}: a queue refused it"
                )
            elif isinstance(method, spec.Basic.Return):
                raise BrokerError(
                    f"option 'mandatory': message to exchange '{method.exchange}' with routing key"
                    f" '{method.routing_key}' came back: {method.reply_text}",
                    method.reply_code,
                )
            else:
                self._connection.heed(channel, method)

    def _confirm(self, tag: int, multiple: bool) -> None:
        low = self.confirms.low
        self.confirms.confirm(tag, multiple)
        for _ in range(self.confirms.low - low):
            self._open.popleft()
        self._attempts.succeeded()

    def _wait_for(self, open_count_max: int) -> None:
        timeout_s = self.options.confirm_timeout_ms / 1000
        before = self.confirms.open_count
        deadline = time.monotonic() + timeout_s
        while self.confirms.open_count > open_count_max:
            connection = self._connection
            self._hear(max(deadline - time.monotonic(), 0.0))
            if self.confirms.open_count < before or self._connection is not connection:
                before = self.confirms.open_count
                deadline = time.monotonic() + timeout_s
            elif time.monotonic() >= deadline:
                late = f"the broker confirmed none of {before} messages within {self.options.confirm_timeout_ms} ms"
                if not self._connection.is_blocked:
                    raise BrokerError(f"option 'confirmTimeoutMs': {late}")
                # An alarm passes, as a restart does.
                self._attempts.failed(ConnectionLost(f"{late}: it has blocked publishers (an alarm)"))
                deadline = time.monotonic() + timeout_s

    def finish(self) -> None:
        """Wait until every row is confirmed."""
        self._flush()
        self._wait_for(0)

    def close(self) -> None:
        self._connection.close()
