"""A comparison without brokers: the test plays the client, the upstream and the local broker."""

from __future__ import annotations

from typing import Any

from pamqp import base, commands

from amqp_broker.amqp.frames import PROTOCOL_HEADER, method_frame
from amqp_broker.amqp.message import CONTENT, FRAME_METHOD, Properties, content_frames
from amqp_broker.amqp.methods import encode_method
from amqp_broker.compare.connection_pair import PATIENCE_MS, ComparisonState, ConnectionPair
from amqp_broker.compare.deliveries import Deliveries
from amqp_broker.compare.difference_report import DifferenceReport
from amqp_broker.compare.method_reader import FrameSplitter, method_of
from amqp_broker.shovel.amqp_client import call

FRAME_MAX = 131072
TUNE = call(commands.Connection.Tune, channel_max=2047, frame_max=FRAME_MAX, heartbeat=60)


def said(method: type[base.Frame], channel: int = 1, body: bytes | None = None, **values: Any) -> bytes:
    """Return the frames of a method and its content, if any; keywords are fields or properties."""
    properties = Properties(**values.pop("properties", {}))
    frames = method_frame(channel, encode_method(call(method, **values)))
    if body is not None:
        header = CONTENT.pack(60, 0, len(body)) + properties.encode()
        frames += content_frames(channel, header, body, FRAME_MAX)
    return frames


class Three:
    """One connection; several may share a state. The test advances `now`."""

    def __init__(self, state: ComparisonState | None = None, user: str = "guest", number: int = 1) -> None:
        self.lines: list[str] = []
        self.state = state or ComparisonState(DifferenceReport(self.lines.append))
        self.now = 1_000_000
        self.let_in_users: list[str] = []
        self.furnished: list[tuple[str, str]] = []
        self.connection = ConnectionPair(self.state, self, number)
        self.user = user

    # connection_pair.Stage

    def accept_next_login(self, connection: ConnectionPair, user: str) -> None:
        self.let_in_users.append(user)

    def create_missing(self, connection: ConnectionPair, user: str, vhost: str) -> None:
        self.furnished.append((user, vhost))

    # Sending

    def client(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.connection.from_client(piece, self.now)

    def upstream(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.connection.from_upstream(piece, self.now)

    def local(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.connection.from_local(piece, self.now)

    def both(self, *pieces: bytes) -> None:
        self.local(*pieces)
        self.upstream(*pieces)

    def wait(self, duration_ms: int = PATIENCE_MS) -> None:
        """Let time pass in silence."""
        self.now += duration_ms
        self.connection.tick(self.now)
        self.deliveries.tick(self.now, PATIENCE_MS)

    @property
    def deliveries(self) -> Deliveries:
        return self.state.deliveries

    def open(self, **tune_ok: int) -> Three:
        """Complete the handshake and open channel 1."""
        limits: dict[str, Any] = {"channel_max": 2047, "frame_max": FRAME_MAX, "heartbeat": 60, **tune_ok}
        start_ok = said(
            commands.Connection.StartOk,
            0,
            client_properties={"connection_name": "shop"},
            mechanism="PLAIN",
            response=f"\0{self.user}\0secret",
            locale="en_US",
        )
        start = said(commands.Connection.Start, 0, version_minor=9, mechanisms="PLAIN", locales="en_US")
        tune = method_frame(0, encode_method(TUNE))
        self.client(PROTOCOL_HEADER)
        self.both(start)
        self.client(start_ok)
        self.both(tune)
        self.client(said(commands.Connection.TuneOk, 0, **limits))
        self.client(said(commands.Connection.Open, 0, virtual_host="/"))
        self.both(said(commands.Connection.OpenOk, 0))
        self.client(said(commands.Channel.Open))
        self.both(said(commands.Channel.OpenOk))
        self.played()
        return self

    # Results

    def octets(self) -> bytes:
        pieces, self.connection.to_local = self.connection.to_local, []
        return b"".join(pieces)

    def played(self) -> list[Any]:
        """Return the methods played to the local broker since the last call."""
        octets = self.octets().removeprefix(PROTOCOL_HEADER)
        return [method_of(frame) for frame in FrameSplitter().cut(octets) if frame.kind == FRAME_METHOD]

    @property
    def found(self) -> list[tuple[str, str]]:
        """Return the differing answers as (upstream, local)."""
        return [(difference.upstream, difference.amqp_broker) for difference in self.state.report.differences]
