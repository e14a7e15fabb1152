"""A broker and its clients without sockets, loop or clock: a peer's bytes go straight into a session.

    lab = Lab()
    peer = lab.connect()
    peer.send(commands.Queue.Declare(queue="q"))
    assert peer.expect(commands.Queue.DeclareOk).queue == "q"

pamqp encodes and decodes the client's side, so that the broker's codec is never tested against itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple, TypeVar

from pamqp import base, body, commands, frame, header
from pamqp.heartbeat import Heartbeat

from amqp_broker.amqp.connection_states import ENDED
from amqp_broker.broker.broker import Broker
from amqp_broker.session.session import Session
from amqp_broker.settings.settings import Settings
from tests.present import present

M = TypeVar("M", bound=base.Frame)

NOW = 1_700_000_000_000
CAPABILITIES = {"consumer_cancel_notify": True, "connection.blocked": True, "authentication_failure_close": True}


class Content(NamedTuple):
    """A received message's properties and body."""

    properties: commands.Basic.Properties
    body: bytes


def shown(value: object) -> str:
    """The id of a parameter of a test: methods as `Basic.Ack(1)`, without the fields that say nothing."""
    if isinstance(value, list):
        return " ".join(map(shown, value))
    if not isinstance(value, base.Frame):
        return str(value)
    fields = [f"{name}={field!s}" for name, field in value if field not in ("", 0, None, {})]
    return f"{value.name}({', '.join(fields)})"


class Lab:
    """A broker, its time, and the clients that were connected to it."""

    def __init__(self, **settings: Any) -> None:
        numbers = count(1)
        self.now = NOW
        self.dirty: list[Session] = []
        self.broker = Broker(Settings(**settings), lambda size: next(numbers).to_bytes(size, "big"))
        self.broker.add_defaults()
        self.ports = count(40_000)

    @property
    def vhost(self) -> Any:
        return self.broker.vhosts["/"]

    def peer(self, peer_host: str = "127.0.0.1") -> Peer:
        """A client whose socket is connected and that has not said anything."""
        return Peer(self, peer_host)

    def connect(self, **options: Any) -> Peer:
        """A client with an open connection and channel 1 open."""
        peer = self.peer()
        peer.open(**options)
        peer.open_channel(1)
        return peer

    def advance(self, duration_ms: int) -> None:
        """Let time pass; what is due in between runs at its own time."""
        end = self.now + duration_ms
        timers = self.broker.timers
        while (deadline := timers.next_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self.broker.tick(self.now)
            self.broker.end_turn()
        self.now = end

    def advance_clock(self, duration_ms: int) -> None:
        """Advance the broker's clock, as the server does for a tester."""
        broker = self.broker
        for connection in broker.connections:
            connection.before_advance(self.now)
        broker.advancing_to_ms = self.now + duration_ms
        self.advance(duration_ms)
        broker.now = self.now
        broker.advancing_to_ms = None

    def drain(self) -> None:
        """Hand out all portions of all backlogs, as the server does between flushes."""
        while self.broker.drain_on():
            pass


class Peer:
    """The client's end of one session."""

    def __init__(self, lab: Lab, peer_host: str = "127.0.0.1") -> None:
        self.lab = lab
        self.session = Session(lab.broker, lab.dirty, peer_host, next(lab.ports), "127.0.0.1", 5672, lab.now)
        self._received = b""

    # Requests of the client

    def send_bytes(self, data: bytes) -> None:
        self.session.receive(data, self.lab.now)
        self.lab.broker.end_turn()

    def send(self, *methods: base.Frame, channel: int = 1) -> None:
        """Send methods in one read."""
        self.send_bytes(b"".join(frame.marshal(method, channel) for method in methods))

    def publish(
        self,
        routing_key: str = "",
        message: bytes = b"",
        *,
        exchange: str = "",
        channel: int = 1,
        mandatory: bool = False,
        frame_size: int = 100_000,
        **properties: Any,
    ) -> None:
        """Send a basic.publish with its content."""
        self.send_bytes(
            publish_bytes(
                routing_key,
                message,
                exchange=exchange,
                channel=channel,
                mandatory=mandatory,
                frame_size=frame_size,
                **properties,
            )
        )

    def call(self, method: base.Frame, channel: int = 1) -> Any:
        """Send a method and return the answer to it, which must be the next frame."""
        self.send(method, channel=channel)
        answer, number = self.next()
        assert number == channel, f"{answer} on channel {number}"
        assert isinstance(answer, base.Frame), show(answer)
        assert answer.name in method.valid_responses, show(answer)
        return answer

    def open(
        self,
        user: str = "guest",
        password: str = "guest",
        vhost: str = "/",
        *,
        capabilities: dict[str, bool] = CAPABILITIES,
        channel_max: int = 2047,
        frame_max: int = 131072,
        heartbeat: int = 0,
    ) -> None:
        """The handshake, up to connection.open-ok."""
        self.send_bytes(b"AMQP\x00\x00\x09\x01")
        self.expect(commands.Connection.Start, channel=0)
        response = f"\0{user}\0{password}"
        self.send(commands.Connection.StartOk({"capabilities": dict(capabilities)}, "PLAIN", response), channel=0)
        self.expect(commands.Connection.Tune, channel=0)
        self.send(commands.Connection.TuneOk(channel_max, frame_max, heartbeat), channel=0)
        self.send(commands.Connection.Open(vhost), channel=0)
        self.expect(commands.Connection.OpenOk, channel=0)

    def open_channel(self, number: int) -> None:
        self.send(commands.Channel.Open(), channel=number)
        self.expect(commands.Channel.OpenOk, channel=number)

    def disconnect(self) -> None:
        """The socket is lost."""
        self.session.connection_lost(self.lab.now)
        self.lab.broker.end_turn()

    # Replies to the client

    @property
    def is_dropped(self) -> bool:
        """Return whether the broker closes the socket after its last frame."""
        return self.session.state is ENDED

    def is_waiting(self) -> bool:
        """Return whether there is something to read."""
        self._received += b"".join(self.session.outbox.take())
        return bool(self._received)

    def next(self) -> tuple[Any, int]:
        """The next frame and its channel; AssertionError if there is none."""
        self._received += b"".join(self.session.outbox.take())
        assert self._received, "nothing was received"
        size, channel, value = frame.unmarshal(self._received)
        self._received = self._received[size:]
        return value, channel

    def expect(self, kind: type[M], channel: int = 1) -> M:
        """The next frame, which must be of this method and on this channel."""
        value, number = self.next()
        assert isinstance(value, kind), show(value)
        assert number == channel, f"{show(value)} on channel {number}, not {channel}"
        return value

    def expect_content(self, channel: int = 1) -> Content:
        """The content that follows a method."""
        content_header, number = self.next()
        assert isinstance(content_header, header.ContentHeader), show(content_header)
        assert number == channel
        pieces: list[bytes] = []
        while sum(map(len, pieces)) < content_header.body_size:
            piece, number = self.next()
            assert isinstance(piece, body.ContentBody), show(piece)
            assert number == channel
            pieces.append(piece.value)
        return Content(content_header.properties, b"".join(pieces))

    def expect_delivery(self, channel: int = 1) -> tuple[commands.Basic.Deliver, Content]:
        return self.expect(commands.Basic.Deliver, channel), self.expect_content(channel)

    def expect_nothing(self) -> None:
        output = self._received + b"".join(self.session.outbox.take())
        assert not output, f"received {show(frame.unmarshal(output)[2])}"

    def deliveries(self, channel: int = 1) -> list[tuple[commands.Basic.Deliver, Content]]:
        """All deliveries that wait to be read; anything else fails."""
        return list(self._deliveries(channel))

    def bodies(self, channel: int = 1) -> list[bytes]:
        """The bodies of all deliveries that wait to be read."""
        return [content.body for _, content in self._deliveries(channel)]

    def _deliveries(self, channel: int) -> Iterator[tuple[commands.Basic.Deliver, Content]]:
        self._received += b"".join(self.session.outbox.take())
        while self._received:
            yield self.expect_delivery(channel)

    def get(self, queue: str, no_ack: bool = True) -> tuple[commands.Basic.GetOk, Content] | None:
        """basic.get; None if the queue is empty."""
        self.send(commands.Basic.Get(queue=queue, no_ack=no_ack))
        answer, _ = self.next()
        if isinstance(answer, commands.Basic.GetEmpty):
            return None
        assert isinstance(answer, commands.Basic.GetOk), show(answer)
        return answer, self.expect_content()

    def consume(self, queue: str, tag: str = "c", channel: int = 1, **options: Any) -> None:
        self.send(commands.Basic.Consume(queue=queue, consumer_tag=tag, **options), channel=channel)
        self.expect(commands.Basic.ConsumeOk, channel)

    def declare(self, queue: str, **options: Any) -> commands.Queue.DeclareOk:
        self.send(commands.Queue.Declare(queue=queue, **options))
        return self.expect(commands.Queue.DeclareOk)

    def expect_channel_close(self, code: int, channel: int = 1) -> str:
        """The channel is closed with this code; returns the text, and answers close-ok."""
        close = self.expect(commands.Channel.Close, channel)
        assert close.reply_code == code, show(close)
        self.send(commands.Channel.CloseOk(), channel=channel)
        return close.reply_text

    def expect_connection_close(self, code: int) -> str:
        """The connection is closed with this code; returns the text, and answers close-ok."""
        close = self.expect(commands.Connection.Close, channel=0)
        assert close.reply_code == code, show(close)
        self.send(commands.Connection.CloseOk(), channel=0)
        return close.reply_text


def blamed(close: commands.Channel.Close | commands.Connection.Close) -> int:
    """The method that a close is about, by its index in pamqp."""
    return present(close.class_id) << 16 | present(close.method_id)


def deaths_in(properties: commands.Basic.Properties) -> list[dict[str, Any]]:
    """The entries of `x-death`, the newest first."""
    deaths: Any = (properties.headers or {})["x-death"]
    return list(deaths)


def publish_bytes(
    routing_key: str = "",
    message: bytes = b"",
    *,
    exchange: str = "",
    channel: int = 1,
    mandatory: bool = False,
    immediate: bool = False,
    frame_size: int = 100_000,
    **properties: Any,
) -> bytes:
    """The frames of a basic.publish and its content."""
    content_header = header.ContentHeader(0, len(message), commands.Basic.Properties(**properties))
    frames = [
        frame.marshal(commands.Basic.Publish(0, exchange, routing_key, mandatory, immediate), channel),
        frame.marshal(content_header, channel),
    ]
    for start in range(0, len(message), frame_size):
        frames.append(frame.marshal(body.ContentBody(message[start : start + frame_size]), channel))
    return b"".join(frames)


def show(value: object) -> str:
    """A received frame in words."""
    if isinstance(value, base.Frame):
        return f"{value.name} {dict(value)}"
    return "a heartbeat" if isinstance(value, Heartbeat) else repr(value)
