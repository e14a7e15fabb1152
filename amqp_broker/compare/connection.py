"""One client's connection, at both brokers: octets in from all three, octets out to our broker, differences told.

The shell writes the client's octets to the upstream and the upstream's to the client, both unchanged, and gives a copy
of each to this; what our broker is to hear waits in `to_ours`. Nothing here waits, and nothing asks what time it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from pamqp import base, commands

from amqp_broker import fields
from amqp_broker.compare import words
from amqp_broker.compare.answers import OURS, UPSTREAM, Answer, Asked
from amqp_broker.compare.channel import Channel
from amqp_broker.compare.deliveries import Deliveries
from amqp_broker.compare.known import headers_unknown
from amqp_broker.compare.names import NAMES_MAX, Names
from amqp_broker.compare.report import Difference, Report
from amqp_broker.compare.speech import Frame, Frames, Listener, Said, Unreadable, method_of
from amqp_broker.message import FRAME, FRAME_BODY, FRAME_END_BYTE, FRAME_HEADER, FRAME_HEARTBEAT, FRAME_METHOD
from amqp_broker.protocol.methods import encode_method
from amqp_broker.protocol.wire import FRAME_OVERHEAD, PROTOCOL_HEADER, method_frame

# How long what one has said waits for the same from the other.
PATIENCE_MS: Final = 5000
# Who logs in by other means than a name and a password.
UNNAMED: Final = "upstream"

_HANDSHAKE: Final = (
    commands.Connection.StartOk,
    commands.Connection.SecureOk,
    commands.Connection.TuneOk,
    commands.Connection.Open,
)


class Stage(Protocol):
    """Our broker, as far as it must be prepared for what the upstream has let in."""

    def let_in(self, connection: Connection, user: str) -> None:
        """Who logs in next on this connection is that user."""
        ...

    def furnish(self, connection: Connection, user: str, vhost: str) -> None:
        """Have that vhost, and let the user do anything there."""
        ...


@dataclass
class Book:
    """What all connections of a run have in common."""

    report: Report
    names: Names = field(init=False)
    # By vhost: when something last happened that may change counts.
    changed_ms: dict[str, int] = field(default_factory=dict)
    # By vhost: when somebody last left or deleted something, which the upstream may do a moment later.
    deleted_ms: dict[str, int] = field(default_factory=dict)
    # What ours has declared, and so may be deleting itself: vhost, kind and name.
    declared: dict[tuple[str, tuple[str, str]], None] = field(default_factory=dict)
    deliveries: Deliveries = field(init=False)

    def __post_init__(self) -> None:
        self.names = Names(headers_unknown(self.report.version))
        self.deliveries = Deliveries(self.names, self.report)

    def remember(self, vhost: str, declared: tuple[str, str]) -> None:
        """Ours has declared this."""
        self.declared[vhost, declared] = None
        if len(self.declared) > NAMES_MAX:
            del self.declared[next(iter(self.declared))]


class Connection:
    """`is_over` when the client or the upstream has left."""

    def __init__(self, book: Book, stage: Stage, number: int) -> None:
        self.book = book
        self.stage = stage
        self.number = number
        self.client = ""
        self.user = UNNAMED
        self.vhost = ""
        self.to_ours: list[bytes] = []
        self.channels: dict[int, Channel] = {}
        # How many messages ours has delivered here that the upstream has not, and the other way round.
        self.ahead_count = 0
        self.behind_count = 0
        # The shell knows that the upstream may have said more than was heard, as the client reads slowly.
        self.is_held_up = False
        self.is_open = False
        self.is_over = False
        # The upstream has said close or close-ok.
        self.has_said_goodbye = False
        # Ours has closed the connection, and the upstream has not.
        self.is_lost = False
        self._now = 0
        self._heard_ms = 0
        self._ours_gone_ms: int | None = None
        self._client = Frames()
        self._header = b""
        self._has_header = False
        self._is_blind = False
        self._listeners = (Listener(), Listener())
        self._is_deaf = [False, False]
        # Of the handshake, and what the client has said ahead of its end.
        self._kept: list[tuple[Frame, base.Frame | None]] = []
        self._last_asked: dict[int, Asked] = {}
        # Answers on channel 0 that the other has not given.
        self._closes: list[Answer | None] = [None, None]
        self._answers: tuple[list[Answer], list[Answer]] = ([], [])
        self._ours_frame_max = self._client.frame_max
        self._ours_channel_max = 0

    # What the client says

    def from_client(self, data: bytes, now: int) -> None:
        """The client has said this to the upstream."""
        self._now = now
        if self._is_blind:
            self.play(data)
            return
        if not self._has_header:
            self._header += data
            if len(self._header) < len(PROTOCOL_HEADER):
                return
            self._has_header = True
            self.play(self._header[: len(PROTOCOL_HEADER)])
            data = self._header[len(PROTOCOL_HEADER) :]
        try:
            for frame in self._client.cut(data):
                self._on_client(frame)
        except Unreadable:
            # No AMQP: both brokers are to hear it as it is.
            self._is_blind = True
            self.play(self._client.take_rest())

    def _on_client(self, frame: Frame) -> None:
        if frame.kind == FRAME_HEARTBEAT:
            # Ours has agreed on none. A wrong one is worth playing.
            if frame.channel or frame.payload:
                self.play(frame.octets)
            return
        method = None
        if frame.kind == FRAME_METHOD:
            try:
                method = method_of(frame)
            except Unreadable:
                self.play(frame.octets)
                return
        if not self.is_open:
            self._kept.append((frame, method))
            if method is not None and frame.channel == 0 and not isinstance(method, _HANDSHAKE):
                self._release()
            return
        self._on_client_method(frame, method)

    def _on_client_method(self, frame: Frame, method: Any) -> None:
        if frame.channel == 0:
            self._on_client_0(frame, method)
            return
        channel = self.channels.get(frame.channel)
        if isinstance(method, commands.Channel.Open) and (channel is None or channel.has_ended):
            is_deaf = channel is not None and channel.is_deaf_to_ours
            channel = self.channels[frame.channel] = Channel(self, frame.channel)
            channel.is_deaf_to_ours = is_deaf
        if channel is None or (channel.has_ended and not channel.is_lost):
            self.play(frame.octets)
        else:
            channel.from_client(frame, method, self._now)

    def _on_client_0(self, frame: Frame, method: Any) -> None:
        if isinstance(method, commands.Connection.CloseOk):
            self._on_client_close_ok()
        if method is not None:
            self._last_asked[method.index] = Asked(method, self._now)
        self.play(frame.octets)

    def _on_client_close_ok(self) -> None:
        """The client knows that the upstream has closed the connection."""
        upstream = self._closes[UPSTREAM]
        if upstream is not None:
            self._closes[UPSTREAM] = None
            self._tell(upstream, self._channel_close_of_ours())
            self.is_lost = True

    def _channel_close_of_ours(self) -> Answer | None:
        """What ours has closed instead, if it has."""
        for channel in self.channels.values():
            for lane in channel.lanes.values():
                for answer in lane[OURS]:
                    if isinstance(answer.said.method, commands.Channel.Close):
                        return answer
        return None

    def play(self, octets: bytes) -> None:
        if not self.is_lost and octets:
            self.to_ours.append(octets)

    def play_content(self, frame: Frame) -> None:
        """A frame of a content: a header in our broker's names, a body in pieces if ours takes only smaller ones."""
        if frame.kind == FRAME_HEADER:
            payload = self.book.names.translate_header(frame.payload)
            if payload is not frame.payload:
                self.play(FRAME.pack(FRAME_HEADER, frame.channel, len(payload)) + payload + FRAME_END_BYTE)
                return
        step = self._ours_frame_max - FRAME_OVERHEAD
        if frame.kind != FRAME_BODY or len(frame.payload) <= step:
            self.play(frame.octets)
            return
        for start in range(0, len(frame.payload), step):
            piece = frame.payload[start : start + step]
            self.play(FRAME.pack(FRAME_BODY, frame.channel, len(piece)) + piece + FRAME_END_BYTE)

    # The handshake: ours hears each step when the upstream has answered it

    def _release(self) -> None:
        """Play what was kept, as it is: the upstream has refused it, or the client does not wait for answers."""
        kept, self._kept = self._kept, []
        for frame, method in kept:
            if isinstance(method, commands.Connection.CloseOk):
                self._on_client_close_ok()
            self.play(frame.octets)

    def _on_tune(self) -> None:
        """The upstream has let the client in."""
        for frame, method in self._kept:
            if isinstance(method, commands.Connection.StartOk):
                self._read_start_ok(method)
                self.stage.let_in(self, self.user)
                self.play(frame.octets)
        self._kept = [one for one in self._kept if not isinstance(one[1], _HANDSHAKE[:2])]

    def _read_start_ok(self, method: Any) -> None:
        name = method.client_properties.get("connection_name")
        self.client = name if isinstance(name, str) else ""
        self.user = user_of(method.mechanism, method.response)

    def _on_open_ok(self) -> None:
        """The client is in its vhost: what it has said since then follows."""
        self.is_open = True
        kept, self._kept = self._kept, []
        for frame, method in kept:
            if isinstance(method, commands.Connection.TuneOk):
                self._play_tune_ok(method)
            elif isinstance(method, commands.Connection.Open):
                self.vhost = method.virtual_host
                self.stage.furnish(self, self.user, self.vhost)
                self._last_asked[method.index] = Asked(method, self._now)
                self.play(frame.octets)
            else:
                self._on_client_method(frame, method)

    def _play_tune_ok(self, method: Any) -> None:
        """The limits are those of the client, as far as ours offers them; nobody sends ours heartbeats."""
        limits = (("frame_max", self._ours_frame_max), ("channel_max", self._ours_channel_max))
        for name, offered in limits:
            value = getattr(method, name)
            if offered and (value == 0 or value > offered):
                setattr(method, name, offered)
        self._client.frame_max = max(self._client.frame_max, method.frame_max)
        self._ours_frame_max = method.frame_max
        method.heartbeat = 0
        self.play(method_frame(0, encode_method(method)))

    # What the brokers say

    def from_upstream(self, data: bytes, now: int) -> None:
        """The upstream has said this to the client."""
        self._heard_ms = now
        self._from_broker(UPSTREAM, data, now)

    def from_ours(self, data: bytes, now: int) -> None:
        """Our broker has said this, which the client does not hear."""
        self._from_broker(OURS, data, now)

    def _from_broker(self, side: int, data: bytes, now: int) -> None:
        self._now = now
        if self._is_deaf[side] or self.is_lost:
            return
        try:
            for said in self._listeners[side].hear(data):
                if said.channel == 0:
                    self._on_channel_0(side, said)
                elif (channel := self.channels.get(said.channel)) is not None:
                    channel.from_broker(side, said, now)
        except Unreadable:
            # A protocol header, say: what follows is not ours to read.
            self._is_deaf[side] = True

    def _on_channel_0(self, side: int, said: Said) -> None:
        method = said.method
        if isinstance(method, commands.Connection.Tune):
            self._listeners[side].frames.frame_max = method.frame_max or 1 << 31
            if side == UPSTREAM:
                self._client.frame_max = method.frame_max or 1 << 31
                self._on_tune()
            else:
                self._ours_frame_max, self._ours_channel_max = method.frame_max, method.channel_max
        elif isinstance(method, commands.Connection.Close):
            if side == UPSTREAM:
                self.has_said_goodbye = True
                self._release()
            self._on_close(side, Answer(said, self._asked_for(method), self._now))
        elif isinstance(method, (commands.Connection.OpenOk, commands.Connection.CloseOk)):
            if side == UPSTREAM and isinstance(method, commands.Connection.OpenOk):
                self._on_open_ok()
            elif side == UPSTREAM:
                self.has_said_goodbye = True
            self._on_answer(side, Answer(said, self._asked_for(method), self._now))

    def _asked_for(self, method: Any) -> Asked | None:
        if method.index == commands.Connection.Close.index:
            index = method.class_id << 16 | method.method_id
            in_channels = (channel.last_asked.get(index) for channel in self.channels.values())
            return self._last_asked.get(index) or next((asked for asked in in_channels if asked is not None), None)
        return self._last_asked.get(method.index - 1)

    def _on_close(self, side: int, answer: Answer) -> None:
        other = self._closes[1 - side]
        if other is None:
            self._closes[side] = answer
            return
        self._closes[1 - side] = None
        self.book.report.compared_count += 1
        upstream, ours = (answer, other) if side == UPSTREAM else (other, answer)
        names = self.book.names
        if words.facts(upstream.said, names) != words.facts(ours.said, names):
            self._tell(upstream, ours)

    def _on_answer(self, side: int, answer: Answer) -> None:
        self._answers[side].append(answer)
        while self._answers[UPSTREAM] and self._answers[OURS]:
            upstream, ours = self._answers[UPSTREAM].pop(0), self._answers[OURS].pop(0)
            self.book.report.compared_count += 1
            if type(upstream.said.method) is not type(ours.said.method):
                self._tell(upstream, ours)

    # The end

    def ours_is_gone(self, now: int) -> None:
        """Our broker has closed its socket."""
        if self._ours_gone_ms is None:
            self._ours_gone_ms = now

    def finish(self, now: int) -> None:
        """The client or the upstream has left."""
        if self.is_over:
            return
        self._now = now
        if not self.is_lost and self._closes[OURS] is not None:
            self._tell(None, self._closes[OURS])
            self.is_lost = True
        elif not self.is_lost and self._closes[UPSTREAM] is not None:
            self._tell(self._closes[UPSTREAM], self._channel_close_of_ours())
            self.is_lost = True
        for channel in self.channels.values():
            if not channel.has_ended:
                channel.end()
        self.is_over = True
        if self.is_open:
            self.vhost_changed(now)
            self.book.deleted_ms[self.vhost] = now

    def tick(self, now: int) -> None:
        """Time has passed: tell what waited too long."""
        self._now = now
        since = now - PATIENCE_MS
        if self.is_lost or self.is_over:
            return
        ours = self._closes[OURS]
        if ours is not None or self._ours_gone_ms is not None:
            at_ms = ours.at_ms if ours is not None else self._ours_gone_ms or 0
            if at_ms <= since and not self.is_behind:
                self._tell(None, ours)
                self.is_lost = True
            return
        for channel in self.channels.values():
            if not channel.is_lost and not channel.has_ended:
                channel.tick(since)

    @property
    def is_behind(self) -> bool:
        """Whether the upstream may have more to say than we have heard."""
        return self.is_held_up or self._now - self._heard_ms < PATIENCE_MS

    # Words of it

    @property
    def vhost_changed_ms(self) -> int:
        return self.book.changed_ms.get(self.vhost, 0)

    def vhost_changed(self, now: int) -> None:
        """Counts of this vhost's queues may be others now."""
        self.book.changed_ms[self.vhost] = now

    def _tell(self, upstream: Answer | None, ours: Answer | None) -> None:
        answer = upstream or ours
        asked = answer.asked.text if answer is not None and answer.asked is not None else ""
        closed = "closed the connection"
        said = words.show(ours.said) if ours is not None else closed if self._ours_gone_ms is not None else "nothing"
        note = "" if upstream is not None else "this connection is not compared any more, ours has closed it"
        self.report(0, asked, words.show(upstream.said if upstream else None), said, note)

    def report(self, channel: int, asked: str, upstream: str, ours: str, note: str = "") -> None:
        self.book.report.add(Difference(self.number, self.client, channel, asked, upstream, ours, note))


def user_of(mechanism: str, response: bytes) -> str:
    """Who logs in there; UNNAMED where only the upstream knows."""
    name: Any = ""
    if mechanism == "PLAIN" and response.count(b"\0") == 2:
        name = response.split(b"\0")[1].decode("utf-8", "surrogateescape")
    elif mechanism == "AMQPLAIN":
        try:
            name = fields.decode_table(len(response).to_bytes(4, "big") + response)[0].get("LOGIN")
        except fields.MalformedTable:
            name = ""
    return name if name and isinstance(name, str) else UNNAMED
