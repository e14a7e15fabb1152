"""A comparison without brokers: the test says what the client, the upstream and ours say, and looks at what follows."""

from __future__ import annotations

from typing import Any

from pamqp import base, commands

from amqp_broker.compare.connection import PATIENCE_MS, Book, Connection
from amqp_broker.compare.deliveries import Deliveries
from amqp_broker.compare.report import Report
from amqp_broker.compare.speech import Frames, method_of
from amqp_broker.message import CONTENT, FRAME_METHOD, Properties, content_frames
from amqp_broker.protocol.methods import encode_method
from amqp_broker.protocol.wire import PROTOCOL_HEADER, method_frame
from amqp_broker.shovel.client import call

FRAME_MAX = 131072
TUNE = call(commands.Connection.Tune, channel_max=2047, frame_max=FRAME_MAX, heartbeat=60)


def said(method: type[base.Frame], channel: int = 1, body: bytes | None = None, **values: Any) -> bytes:
    """A method's frame, and those of a content if it has a body; keywords may be properties, too."""
    properties = Properties(**values.pop("properties", {}))
    frames = method_frame(channel, encode_method(call(method, **values)))
    if body is not None:
        header = CONTENT.pack(60, 0, len(body)) + properties.encode()
        frames += content_frames(channel, header, body, FRAME_MAX)
    return frames


class Three:
    """One connection of a book that several may share; `now` is the test's to move."""

    def __init__(self, book: Book | None = None, user: str = "guest", number: int = 1) -> None:
        self.lines: list[str] = []
        self.book = book or Book(Report(self.lines.append))
        self.now = 1_000_000
        self.let_in_users: list[str] = []
        self.furnished: list[tuple[str, str]] = []
        self.connection = Connection(self.book, self, number)
        self.user = user

    # What a stage does

    def let_in(self, connection: Connection, user: str) -> None:
        self.let_in_users.append(user)

    def furnish(self, connection: Connection, user: str, vhost: str) -> None:
        self.furnished.append((user, vhost))

    # Who speaks

    def client(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.connection.from_client(piece, self.now)

    def upstream(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.connection.from_upstream(piece, self.now)

    def ours(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.connection.from_ours(piece, self.now)

    def both(self, *pieces: bytes) -> None:
        self.ours(*pieces)
        self.upstream(*pieces)

    def wait(self, duration_ms: int = PATIENCE_MS) -> None:
        """Nobody says anything for so long."""
        self.now += duration_ms
        self.connection.tick(self.now)
        self.deliveries.tick(self.now, PATIENCE_MS)

    @property
    def deliveries(self) -> Deliveries:
        return self.book.deliveries

    def open(self, **tune_ok: int) -> Three:
        """Get through the handshake, and have channel 1."""
        limits = {"channel_max": 2047, "frame_max": FRAME_MAX, "heartbeat": 60, **tune_ok}
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

    # What follows

    def octets(self) -> bytes:
        pieces, self.connection.to_ours = self.connection.to_ours, []
        return b"".join(pieces)

    def played(self) -> list[Any]:
        """The methods that ours has heard since this was last asked."""
        octets = self.octets().removeprefix(PROTOCOL_HEADER)
        return [method_of(frame) for frame in Frames().cut(octets) if frame.kind == FRAME_METHOD]

    @property
    def found(self) -> list[tuple[str, str]]:
        """What upstream and ours have said where they differ."""
        return [(difference.upstream, difference.ours) for difference in self.book.report.differences]
