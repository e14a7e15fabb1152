"""Capture and replay of the messages of an embedded vhost (docs/replay.md).

with amqp_vhost.capture() as capture:
    run_the_application()
capture.save("run.jsonl")
amqp_vhost.replay("run.jsonl", speed=10)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from amqp_broker.broker.observe.capture import Capture, CapturedMessage
from amqp_broker.management.documents.capture_file import Skipped, header_line, message_line, read, skipped_line
from amqp_broker.server.replay_runner import Replay, ReplayRunner, parse_uri

if TYPE_CHECKING:
    from amqp_broker.server.server import Server
    from amqp_broker.testing.embedded_broker import EmbeddedBroker


class PublishedMessage(NamedTuple):
    """A message, `at_us` after the start of the capture; `properties` has those that are present."""

    at_us: int
    exchange: str
    routing_key: str
    properties: dict[str, Any]
    body: bytes
    mandatory: bool
    user: str


class EmbeddedCapture:
    """The messages published in a block, available when it has ended; `skipped` messages are missing."""

    def __init__(self, vhost: str) -> None:
        self.vhost = vhost
        self.started_at_ms = 0
        self.captured: Sequence[CapturedMessage] = ()
        self.skipped = 0

    def __repr__(self) -> str:
        return f"<EmbeddedCapture of vhost {self.vhost!r}, {len(self.captured)} messages, {self.skipped} skipped>"

    @property
    def messages(self) -> list[PublishedMessage]:
        """The messages in the order of their publishing."""
        return [
            PublishedMessage(
                one.at_us,
                one.message.exchange,
                one.message.routing_key,
                one.message.properties().as_dict(),
                one.message.body,
                one.mandatory,
                one.user,
            )
            for one in self.captured
        ]

    def save(self, path: str | PathLike[str]) -> None:
        """Write a capture file, as `amqp-broker capture` does. Raise OSError."""
        lines = [header_line(self.vhost, self.started_at_ms), *map(message_line, self.captured)]
        if self.skipped:
            lines.append(skipped_line(self.skipped))
        Path(path).write_bytes(b"".join(lines))


class Replayed(NamedTuple):
    """The numbers of messages that a replay has published, and that were confirmed, nacked and returned."""

    published: int
    confirmed: int
    nacked: int
    returned: int


@contextmanager
def capture(
    broker: EmbeddedBroker, vhost: str, exchange: str | None, routing_key: str | None
) -> Iterator[EmbeddedCapture]:
    """Capture the messages that are published in the block. Raise DoesNotExist for a missing vhost."""

    def start(server: Server) -> Capture:
        observer = Capture(server.broker.vhost(vhost), exchange, routing_key)
        observer.start()
        return observer

    result, observer = EmbeddedCapture(vhost), broker.ask(start)
    result.started_at_ms = observer.started_at_us // 1000
    try:
        yield result
    finally:
        if broker.is_running:
            broker.ask(lambda server: observer.stop())
        result.captured, result.skipped = observer.take()


def replay(broker: EmbeddedBroker, source: EmbeddedCapture | str | PathLike[str], vhost: str, speed: float) -> Replayed:
    """Publish captured messages again; see `EmbeddedVHost.replay`."""
    captured = list(source.captured) if isinstance(source, EmbeddedCapture) else load(source)
    url = parse_uri(broker.amqp_url(vhost))
    subject = Replay(
        iter([(one.at_us, one.message, one.mandatory) for one in captured]),
        speed,
        exchanges=frozenset(one.message.exchange for one in captured),
        user=url.user,
    )

    async def run(server: Server) -> None:
        is_moved = server.clock.is_frozen and speed != math.inf
        await ReplayRunner(subject, url, advance=server.ticking.advance if is_moved else None).run()

    broker.run(run)
    return Replayed(subject.published, subject.confirmed, subject.nacked, subject.returned)


def load(path: str | PathLike[str]) -> list[CapturedMessage]:
    """Read the messages of a capture file. Raise CaptureFileError and OSError."""
    with Path(path).open("rb") as lines:
        return [one for one in read(lines) if not isinstance(one, Skipped)]
