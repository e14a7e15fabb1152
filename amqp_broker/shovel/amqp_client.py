"""An AMQP client connection with one channel, without a socket or a clock.

Received octets become calls to its `Peer`; octets to send collect in its outbox.

It uses the broker's own codec, so that a message leaves with the octets it arrived with. A client library would decode
and re-encode the headers, and lose the integer type of each value.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, Protocol, TypeVar

from pamqp import base, commands

from amqp_broker.amqp import fields
from amqp_broker.amqp import frames as wire
from amqp_broker.amqp.content import ContentAssembly
from amqp_broker.amqp.errors import AMQPError, Disconnect
from amqp_broker.amqp.frames import FRAME_OVERHEAD, HEARTBEAT_FRAME, METHOD_ID, PROTOCOL_HEADER, method_frame
from amqp_broker.amqp.message import (
    FRAME,
    FRAME_BODY,
    FRAME_END,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    Address,
    MalformedProperties,
    Message,
)
from amqp_broker.amqp.methods import decode_method, encode_method

M = TypeVar("M", bound=base.Frame)

CHANNEL: Final = 1
FRAME_MAX: Final = 131072
# The largest frames may not be smaller (spec 4.2.3, and frame-min-size).
FRAME_MAX_LOWEST: Final = 4096
# Answers that pamqp does not name: the first is to the protocol header.
ANSWERS: Final = {"Connection.Start": ["Connection.Start"], "Connection.StartOk": ["Connection.Tune"]}
# Limit of a message's body; the broker at the other end has its own limits.
BODY_BYTES_MAX: Final = wire.BODY_BYTES_LIMIT
# After this many heartbeat intervals of silence the connection is lost.
QUIET_INTERVALS_MAX: Final = 2

_FRAME_KINDS: Final = frozenset((FRAME_METHOD, FRAME_HEADER, FRAME_BODY, FRAME_HEARTBEAT))
_DELIVER: Final = METHOD_ID.pack(60 << 16 | 60)
_RETURN: Final = METHOD_ID.pack(60 << 16 | 50)

# A generator that yields methods to send and receives the answer to each.
Procedure = Generator[base.Frame, Any, None]


class Lost(Exception):
    """The connection is over; the text says why."""


class Peer(Protocol):
    """The user of a connection."""

    def set_up(self, client: Client) -> Procedure:
        """Return the procedure to run when the channel is open."""
        ...

    def on_ready(self, client: Client) -> None:
        """The procedure of `set_up` has ended."""
        ...

    def on_delivery(self, client: Client, tag: int, message: Message) -> None: ...

    def on_settled(self, client: Client, tag: int, multiple: bool, is_taken: bool) -> None:
        """A confirm: basic.ack, or basic.nack if not `is_taken`."""
        ...

    def on_returned(self, client: Client, address: Address, reason: str) -> None:
        """A mandatory message came back; its confirm follows. `reason` is a code and a text."""
        ...

    def on_blocked(self, client: Client, is_blocked: bool) -> None: ...

    def on_cancel(self, client: Client) -> None:
        """The other end has cancelled the consumer."""
        ...


class Client:
    """One connection. `outbox` holds the octets to write; the shell empties it."""

    def __init__(
        self,
        peer: Peer,
        user: str,
        password: str,
        vhost: str,
        heartbeat_s: int,
        name: str,
        product: str = "amqp-broker shovel",
    ) -> None:
        self.peer = peer
        self.outbox: list[bytes] = [PROTOCOL_HEADER]
        self.frame_max = FRAME_MAX
        self.heartbeat_s = heartbeat_s
        self.publish_count = 0
        self._credentials = f"\0{user}\0{password}"
        self._vhost = vhost
        self._name = name
        self._product = product
        self._pending = b""
        self._assembly: ContentAssembly | None = None
        self._publish_frames: dict[tuple[bytes, bool], bytes] = {}
        self._procedure: Procedure | None = self._open()
        # The method whose answer is awaited.
        self._called = next(self._procedure)
        self._is_ready = False
        self._is_over = False
        self._has_received = True
        self._quiet_intervals = 0

    # Verbs

    def publish(self, address: Address, message: Message, mandatory: bool = False) -> int:
        """Publish a message and return its publish number."""
        key = address.suffix, mandatory
        frame = self._publish_frames.get(key)
        if frame is None:
            if len(self._publish_frames) > 1024:
                self._publish_frames.clear()
            method = call(
                commands.Basic.Publish,
                exchange=address.exchange,
                routing_key=address.routing_key,
                mandatory=mandatory,
            )
            frame = self._publish_frames[key] = method_frame(CHANNEL, encode_method(method))
        self.outbox += (frame, message.content_for(CHANNEL, self.frame_max))
        self.publish_count += 1
        return self.publish_count

    def ack(self, tag: int, multiple: bool) -> None:
        self.outbox.append(wire.ack_frame(CHANNEL, tag, multiple))

    def consume(self, queue: str, no_ack: bool, arguments: fields.Table) -> None:
        """Start a consumer."""
        # With nowait there is no answer that contains a generated tag.
        tag = "shovel"
        self._send(
            call(commands.Basic.Consume, queue=queue, consumer_tag=tag, no_ack=no_ack, nowait=True, arguments=arguments)
        )

    def close(self) -> None:
        """Send connection.close without waiting for the answer."""
        if self._is_over:
            return
        self._is_over = True
        self._send(call(commands.Connection.Close, reply_code=200, reply_text="Goodbye"), channel=0)

    def tick(self, is_listening: bool = True) -> None:
        """Take note of half a heartbeat interval, during which the socket was read if `is_listening`. Raise Lost."""
        self.outbox.append(HEARTBEAT_FRAME)
        self._quiet_intervals = 0 if self._has_received or not is_listening else self._quiet_intervals + 1
        self._has_received = False
        if self._quiet_intervals > 2 * QUIET_INTERVALS_MAX:
            raise Lost(f"no data for {QUIET_INTERVALS_MAX} heartbeat intervals of {self.heartbeat_s} s")

    # Bytes in

    def receive(self, data: bytes) -> None:
        """Process the octets of one read. Raise Lost."""
        self._has_received = True
        data = self._pending + data
        at, end = 0, len(data)
        try:
            while end - at >= FRAME_OVERHEAD:
                kind, number, size = FRAME.unpack_from(data, at)
                if kind not in _FRAME_KINDS:
                    raise Lost("the other end does not speak AMQP 0-9-1")
                if size > FRAME_MAX:
                    raise Lost(f"the other end sent a frame of {size} octets; the limit is {FRAME_MAX}")
                stop = at + FRAME.size + size
                if stop >= end:
                    break
                if data[stop] != FRAME_END:
                    raise Lost("the other end sent a frame without its end octet")
                payload = data[at + FRAME.size : stop]
                at = stop + 1
                self._on_frame(kind, number, payload)
        except (AMQPError, Disconnect, MalformedProperties) as error:
            raise Lost(f"the other end sent invalid AMQP: {error}") from None
        self._pending = data[at:]

    def _on_frame(self, kind: int, number: int, payload: bytes) -> None:
        if kind == FRAME_HEARTBEAT:
            return
        if kind != FRAME_METHOD:
            self._on_content(kind, payload)
        elif payload.startswith((_DELIVER, _RETURN)):
            self._assembly = ContentAssembly(payload)
        else:
            self._on_method(decode_method(payload), number)

    def _on_content(self, kind: int, payload: bytes) -> None:
        assembly = self._assembly
        if assembly is None:
            raise Lost("the other end sent content without a method")
        if assembly.add(kind, payload, BODY_BYTES_MAX):
            self._assembly = None
            deliver: Any = decode_method(assembly.method)
            address = Address(deliver.exchange, deliver.routing_key)
            if deliver.name == "Basic.Return":
                self.peer.on_returned(self, address, f"{deliver.reply_code} {deliver.reply_text}")
                return
            content = assembly.content(CHANNEL, self.frame_max)
            message = Message(address, content, CHANNEL, False)
            self.peer.on_delivery(self, deliver.delivery_tag, message)

    def _on_method(self, method: base.Frame, number: int) -> None:
        if isinstance(method, (commands.Basic.Ack, commands.Basic.Nack)):
            is_taken = isinstance(method, commands.Basic.Ack)
            self.peer.on_settled(self, method.delivery_tag, method.multiple, is_taken)
        elif isinstance(method, (commands.Connection.Blocked, commands.Connection.Unblocked)):
            self.peer.on_blocked(self, isinstance(method, commands.Connection.Blocked))
        elif isinstance(method, commands.Basic.Cancel):
            self.peer.on_cancel(self)
        elif isinstance(method, commands.Connection.Close):
            self._send(commands.Connection.CloseOk(), channel=0)
            self._is_over = True
            raise Lost(f"{method.reply_code} {method.reply_text}")
        elif self._procedure is not None:
            self._go_on(method)
        elif isinstance(method, commands.Channel.Close):
            self._send(commands.Channel.CloseOk())
            raise Lost(f"{method.reply_code} {method.reply_text}")

    # Synchronous calls

    def _go_on(self, answer: base.Frame) -> None:
        assert self._procedure is not None
        called = self._called.name
        expected = ANSWERS.get(called) or self._called.valid_responses
        # The procedure gives up, or goes on without an answer.
        is_refusal = isinstance(answer, commands.Channel.Close) and not called.startswith(("Connection.", "Channel."))
        if answer.name not in expected and not is_refusal:
            raise Lost(f"the other end sent {answer.name} instead of {' or '.join(expected)}")
        try:
            method = self._procedure.send(answer)
        except StopIteration:
            self._procedure = None
            if not self._is_ready:
                self._is_ready = True
                self.peer.on_ready(self)
            return
        self._called = method
        self._send(method, 0 if method.name.startswith("Connection.") else CHANNEL)

    def _open(self) -> Procedure:
        # A placeholder: connection.start answers the protocol header, which is not a method.
        start = yield commands.Connection.Start()
        mechanisms: bytes = start.mechanisms
        if b"PLAIN" not in mechanisms.split():
            raise Lost(f"the other end does not offer PLAIN; it offers {mechanisms.decode('utf-8', 'replace')}")
        capabilities = {
            "authentication_failure_close": True,
            "basic.nack": True,
            "connection.blocked": True,
            "consumer_cancel_notify": True,
            "publisher_confirms": True,
        }
        properties = {"product": self._product, "connection_name": self._name, "capabilities": capabilities}
        tune = yield call(
            commands.Connection.StartOk,
            client_properties=properties,
            mechanism="PLAIN",
            response=self._credentials,
            locale="en_US",
        )
        self.frame_max = min(tune.frame_max or FRAME_MAX, FRAME_MAX)
        if self.frame_max < FRAME_MAX_LOWEST:
            raise Lost(f"the other end takes frames of {self.frame_max} octets only; {FRAME_MAX_LOWEST} are the least")
        tune_ok = call(
            commands.Connection.TuneOk,
            channel_max=tune.channel_max,
            frame_max=self.frame_max,
            heartbeat=self.heartbeat_s,
        )
        self._send(tune_ok, channel=0)
        yield call(commands.Connection.Open, virtual_host=self._vhost)
        yield call(commands.Channel.Open)
        yield from self.peer.set_up(self)

    def _send(self, method: base.Frame, channel: int = CHANNEL) -> None:
        self.outbox.append(method_frame(channel, encode_method(method)))


def ensure_queue(client: Client, name: str, arguments: fields.Table, must_exist: bool) -> Procedure:
    """Declare a durable queue unless it exists (rabbit_shovel_parameters.erl, ensure_queue). Raise Lost if it must."""
    answer = yield call(commands.Queue.Declare, queue=name, passive=True)
    if must_exist:
        check(answer)
    elif isinstance(answer, commands.Channel.Close):
        yield from reopen(client)
        answer = yield call(commands.Queue.Declare, queue=name, durable=True, arguments=arguments)
        check(answer)


def reopen(client: Client) -> Procedure:
    """Reopen the channel after the other end has closed it."""
    client.outbox.append(method_frame(CHANNEL, encode_method(commands.Channel.CloseOk())))
    yield call(commands.Channel.Open)


def check(answer: base.Frame) -> None:
    """Raise Lost if the answer is channel.close."""
    if isinstance(answer, commands.Channel.Close):
        raise Lost(f"{answer.reply_code} {answer.reply_text}")


def call(kind: type[M], **values: Any) -> M:
    """Return a method with these fields, the others 0.

    pamqp's constructors refuse names that RabbitMQ accepts.
    """
    method = kind.__new__(kind)
    for name in kind.attributes():
        setattr(method, name, values.get(name, 0))
    return method
