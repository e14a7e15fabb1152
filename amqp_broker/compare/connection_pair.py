"""One client's connection at both brokers, and the differences between them.

The proxy forwards octets between client and upstream unchanged, and passes a copy of each to `ConnectionPair`. Octets
for the local broker collect in `to_local`. This module does no I/O; the time is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from pamqp import base, commands

from amqp_broker.amqp import fields
from amqp_broker.amqp.frames import FRAME_OVERHEAD, PROTOCOL_HEADER, method_frame
from amqp_broker.amqp.message import FRAME, FRAME_BODY, FRAME_END_BYTE, FRAME_HEADER, FRAME_HEARTBEAT, FRAME_METHOD
from amqp_broker.amqp.methods import encode_method
from amqp_broker.compare import method_facts
from amqp_broker.compare.channel_pair import ChannelPair
from amqp_broker.compare.client_requests import LOCAL, UPSTREAM, Answer, ClientRequest
from amqp_broker.compare.deliveries import Deliveries
from amqp_broker.compare.difference_report import Difference, DifferenceReport
from amqp_broker.compare.method_reader import Frame, FrameSplitter, MethodReader, Received, Unreadable, method_of
from amqp_broker.compare.name_pairs import NAMES_MAX, NamePairs
from amqp_broker.compare.older_rabbitmq import headers_unknown

# How long an answer of one broker waits for the same answer of the other.
PATIENCE_MS: Final = 5000
# User name for logins without a name and a password.
UNNAMED: Final = "upstream"

_HANDSHAKE: Final = (
    commands.Connection.StartOk,
    commands.Connection.SecureOk,
    commands.Connection.TuneOk,
    commands.Connection.Open,
)


class Stage(Protocol):
    """Prepares the local broker for the users and vhosts that the upstream has accepted."""

    def accept_next_login(self, connection: ConnectionPair, user: str) -> None:
        """Make the next login on this connection that of `user`."""
        ...

    def create_missing(self, connection: ConnectionPair, user: str, vhost: str) -> None:
        """Create the vhost if it is missing, and give the user all permissions in it."""
        ...


@dataclass
class ComparisonState:
    """State that all connections of a run share."""

    report: DifferenceReport
    names: NamePairs = field(init=False)
    # Time of the last event that may change message counts, by vhost.
    changed_ms: dict[str, int] = field(default_factory=dict)
    # Time of the last disconnect or deletion, by vhost: the upstream may auto-delete objects a moment later.
    deleted_ms: dict[str, int] = field(default_factory=dict)
    # Objects that the local broker has declared and that may auto-delete: vhost, kind and name.
    declared: dict[tuple[str, tuple[str, str]], None] = field(default_factory=dict)
    deliveries: Deliveries = field(init=False)

    def __post_init__(self) -> None:
        self.names = NamePairs(headers_unknown(self.report.version))
        self.deliveries = Deliveries(self.names, self.report)

    def remember(self, vhost: str, declared: tuple[str, str]) -> None:
        """Note that the local broker has declared this object."""
        self.declared[vhost, declared] = None
        if len(self.declared) > NAMES_MAX:
            del self.declared[next(iter(self.declared))]


class ConnectionPair:
    """The comparison of one connection; `is_over` once the client or the upstream has disconnected."""

    def __init__(self, state: ComparisonState, stage: Stage, number: int) -> None:
        self.state = state
        self.stage = stage
        self.number = number
        self.client = ""
        self.user = UNNAMED
        self.vhost = ""
        self.to_local: list[bytes] = []
        self.channels: dict[int, ChannelPair] = {}
        # Messages that only the local broker has delivered here, and messages that only the upstream has.
        self.ahead_count = 0
        self.behind_count = 0
        # The client reads slowly, so the upstream may have sent more than was read from it.
        self.is_held_up = False
        self.is_open = False
        self.is_over = False
        # The upstream has sent close or close-ok.
        self.close_seen = False
        # The local broker has closed the connection, and the upstream has not.
        self.is_lost = False
        self._now = 0
        self._heard_ms = 0
        self._local_gone_ms: int | None = None
        self._client = FrameSplitter()
        self._header = b""
        self._has_header = False
        self._is_blind = False
        self._listeners = (MethodReader(), MethodReader())
        self._is_unreadable = [False, False]
        # Frames of the handshake, and frames that the client sent before the handshake ended.
        self._kept: list[tuple[Frame, base.Frame | None]] = []
        self._last_asked: dict[int, ClientRequest] = {}
        # Answers on channel 0 that only one broker has given.
        self._closes: list[Answer | None] = [None, None]
        self._answers: tuple[list[Answer], list[Answer]] = ([], [])
        self._local_frame_max = self._client.frame_max
        self._local_channel_max = 0

    # From the client

    def from_client(self, data: bytes, now: int) -> None:
        """Take octets that the client sent to the upstream."""
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
            # Not AMQP: play it unchanged.
            self._is_blind = True
            self.play(self._client.take_partial_frame())

    def _on_client(self, frame: Frame) -> None:
        if frame.kind == FRAME_HEARTBEAT:
            # The local connection has no heartbeats. A malformed one is worth playing.
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
            ignores_input = channel is not None and channel.ignores_local
            channel = self.channels[frame.channel] = ChannelPair(self, frame.channel)
            channel.ignores_local = ignores_input
        if channel is None or (channel.has_ended and not channel.is_lost):
            self.play(frame.octets)
        else:
            channel.from_client(frame, method, self._now)

    def _on_client_0(self, frame: Frame, method: Any) -> None:
        if isinstance(method, commands.Connection.CloseOk):
            self._on_client_close_ok()
        if method is not None:
            self._last_asked[method.index] = ClientRequest(method, self._now)
        self.play(frame.octets)

    def _on_client_close_ok(self) -> None:
        """Handle the client's close-ok to the upstream's close."""
        upstream = self._closes[UPSTREAM]
        if upstream is not None:
            self._closes[UPSTREAM] = None
            self._tell(upstream, self._channel_close_of_local())
            self.is_lost = True

    def _channel_close_of_local(self) -> Answer | None:
        """Return the channel.close that the local broker sent instead, or None."""
        for channel in self.channels.values():
            for lane in channel.lanes.values():
                for answer in lane[LOCAL]:
                    if isinstance(answer.said.method, commands.Channel.Close):
                        return answer
        return None

    def play(self, octets: bytes) -> None:
        if not self.is_lost and octets:
            self.to_local.append(octets)

    def play_content(self, frame: Frame) -> None:
        """Play a content frame: a header with the local broker's names, a body cut to the local frame size."""
        if frame.kind == FRAME_HEADER:
            payload = self.state.names.translate_header(frame.payload)
            if payload is not frame.payload:
                self.play(FRAME.pack(FRAME_HEADER, frame.channel, len(payload)) + payload + FRAME_END_BYTE)
                return
        step = self._local_frame_max - FRAME_OVERHEAD
        if frame.kind != FRAME_BODY or len(frame.payload) <= step:
            self.play(frame.octets)
            return
        for start in range(0, len(frame.payload), step):
            piece = frame.payload[start : start + step]
            self.play(FRAME.pack(FRAME_BODY, frame.channel, len(piece)) + piece + FRAME_END_BYTE)

    # The handshake: each step is played to the local broker once the upstream has answered it

    def _release(self) -> None:
        """Play the kept frames unchanged.

        The upstream has refused them, or the client does not wait for answers.
        """
        kept, self._kept = self._kept, []
        for frame, method in kept:
            if isinstance(method, commands.Connection.CloseOk):
                self._on_client_close_ok()
            self.play(frame.octets)

    def _on_tune(self) -> None:
        """Handle the upstream's tune: the login has succeeded."""
        for frame, method in self._kept:
            if isinstance(method, commands.Connection.StartOk):
                self._read_start_ok(method)
                self.stage.accept_next_login(self, self.user)
                self.play(frame.octets)
        self._kept = [one for one in self._kept if not isinstance(one[1], _HANDSHAKE[:2])]

    def _read_start_ok(self, method: Any) -> None:
        name = method.client_properties.get("connection_name")
        self.client = name if isinstance(name, str) else ""
        self.user = user_of(method.mechanism, method.response)

    def _on_open_ok(self) -> None:
        """Handle the upstream's open-ok: play the open, then the frames that the client has sent since."""
        self.is_open = True
        kept, self._kept = self._kept, []
        for frame, method in kept:
            if isinstance(method, commands.Connection.TuneOk):
                self._play_tune_ok(method)
            elif isinstance(method, commands.Connection.Open):
                self.vhost = method.virtual_host
                self.stage.create_missing(self, self.user, self.vhost)
                self._last_asked[method.index] = ClientRequest(method, self._now)
                self.play(frame.octets)
            else:
                self._on_client_method(frame, method)

    def _play_tune_ok(self, method: Any) -> None:
        """Play the client's limits, capped by the local broker's, without heartbeats."""
        limits = (("frame_max", self._local_frame_max), ("channel_max", self._local_channel_max))
        for name, offered in limits:
            value = getattr(method, name)
            if offered and (value == 0 or value > offered):
                setattr(method, name, offered)
        self._client.frame_max = max(self._client.frame_max, method.frame_max)
        self._local_frame_max = method.frame_max
        method.heartbeat = 0
        self.play(method_frame(0, encode_method(method)))

    # Output of the brokers

    def from_upstream(self, data: bytes, now: int) -> None:
        """The upstream has said this to the client."""
        self._heard_ms = now
        self._from_broker(UPSTREAM, data, now)

    def from_local(self, data: bytes, now: int) -> None:
        """The local broker has said this, which the client does not hear."""
        self._from_broker(LOCAL, data, now)

    def _from_broker(self, side: int, data: bytes, now: int) -> None:
        self._now = now
        if self._is_unreadable[side] or self.is_lost:
            return
        try:
            for said in self._listeners[side].hear(data):
                if said.channel == 0:
                    self._on_channel_0(side, said)
                elif (channel := self.channels.get(said.channel)) is not None:
                    channel.from_broker(side, said, now)
        except Unreadable:
            # A protocol header, for example: nothing readable follows.
            self._is_unreadable[side] = True

    def _on_channel_0(self, side: int, said: Received) -> None:
        method = said.method
        if isinstance(method, commands.Connection.Tune):
            self._listeners[side].frames.frame_max = method.frame_max or 1 << 31
            if side == UPSTREAM:
                self._client.frame_max = method.frame_max or 1 << 31
                self._on_tune()
            else:
                self._local_frame_max, self._local_channel_max = method.frame_max, method.channel_max
        elif isinstance(method, commands.Connection.Close):
            if side == UPSTREAM:
                self.close_seen = True
                self._release()
            self._on_close(side, Answer(said, self._asked_for(method), self._now))
        elif isinstance(method, (commands.Connection.OpenOk, commands.Connection.CloseOk)):
            if side == UPSTREAM and isinstance(method, commands.Connection.OpenOk):
                self._on_open_ok()
            elif side == UPSTREAM:
                self.close_seen = True
            self._on_answer(side, Answer(said, self._asked_for(method), self._now))

    def _asked_for(self, method: Any) -> ClientRequest | None:
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
        self.state.report.compared_count += 1
        upstream, local = (answer, other) if side == UPSTREAM else (other, answer)
        names = self.state.names
        if method_facts.facts(upstream.said, names) != method_facts.facts(local.said, names):
            self._tell(upstream, local)

    def _on_answer(self, side: int, answer: Answer) -> None:
        self._answers[side].append(answer)
        while self._answers[UPSTREAM] and self._answers[LOCAL]:
            upstream, local = self._answers[UPSTREAM].pop(0), self._answers[LOCAL].pop(0)
            self.state.report.compared_count += 1
            if type(upstream.said.method) is not type(local.said.method):
                self._tell(upstream, local)

    # The end

    def local_is_gone(self, now: int) -> None:
        """The local broker has closed the connection."""
        if self._local_gone_ms is None:
            self._local_gone_ms = now

    def finish(self, now: int) -> None:
        """The client or the upstream has disconnected."""
        if self.is_over:
            return
        self._now = now
        if not self.is_lost and self._closes[LOCAL] is not None:
            self._tell(None, self._closes[LOCAL])
            self.is_lost = True
        elif not self.is_lost and self._closes[UPSTREAM] is not None:
            self._tell(self._closes[UPSTREAM], self._channel_close_of_local())
            self.is_lost = True
        for channel in self.channels.values():
            if not channel.has_ended:
                channel.end()
        self.is_over = True
        if self.is_open:
            self.vhost_changed(now)
            self.state.deleted_ms[self.vhost] = now

    def tick(self, now: int) -> None:
        """Report answers that have waited too long for their counterpart."""
        self._now = now
        since = now - PATIENCE_MS
        if self.is_lost or self.is_over:
            return
        local = self._closes[LOCAL]
        if local is not None or self._local_gone_ms is not None:
            at_ms = local.at_ms if local is not None else self._local_gone_ms or 0
            if at_ms <= since and not self.is_behind:
                self._tell(None, local)
                self.is_lost = True
            return
        for channel in self.channels.values():
            if not channel.is_lost and not channel.has_ended:
                channel.tick(since)

    @property
    def is_behind(self) -> bool:
        """Return whether the upstream may have sent more than was read from it."""
        return self.is_held_up or self._now - self._heard_ms < PATIENCE_MS

    # Reporting

    @property
    def vhost_changed_ms(self) -> int:
        return self.state.changed_ms.get(self.vhost, 0)

    def vhost_changed(self, now: int) -> None:
        """Note that message counts in this vhost may have changed."""
        self.state.changed_ms[self.vhost] = now

    def _tell(self, upstream: Answer | None, local: Answer | None) -> None:
        answer = upstream or local
        asked = answer.asked.text if answer is not None and answer.asked is not None else ""
        closed = "closed the connection"
        said = (
            method_facts.show(local.said)
            if local is not None
            else closed
            if self._local_gone_ms is not None
            else "nothing"
        )
        note = "" if upstream is not None else "amqp-broker has closed this connection, so it is no longer compared"
        self.report(0, asked, method_facts.show(upstream.said if upstream else None), said, note)

    def report(self, channel: int, asked: str, upstream: str, local: str, note: str = "") -> None:
        self.state.report.add(Difference(self.number, self.client, channel, asked, upstream, local, note))


def user_of(mechanism: str, response: bytes) -> str:
    """Return the user name of a login, or UNNAMED if only the upstream knows it."""
    name: Any = ""
    if mechanism == "PLAIN" and response.count(b"\0") == 2:
        name = response.split(b"\0")[1].decode("utf-8", "surrogateescape")
    elif mechanism == "AMQPLAIN":
        try:
            name = fields.decode_table(len(response).to_bytes(4, "big") + response)[0].get("LOGIN")
        except fields.MalformedTable:
            name = ""
    return name if name and isinstance(name, str) else UNNAMED
