"""What is published in a vhost of an embedded broker, recorded, and published again (docs/replay.md).

with amqp_vhost.recording() as recording:
    run_the_application()
recording.save("run.jsonl")
amqp_vhost.replay("run.jsonl", speed=10)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from amqp_broker.broker.recording import Recorded, Recording
from amqp_broker.management.recording_file import Skipped, header_line, message_line, read, skipped_line
from amqp_broker.server.replaying import Replay, Replaying, parse_uri

if TYPE_CHECKING:
    from amqp_broker.server.server import Server
    from amqp_broker.testing.embedded import EmbeddedBroker


class RecordedMessage(NamedTuple):
    """A message that was published, `at_us` after the recording began; `properties` are those that are present."""

    at_us: int
    exchange: str
    routing_key: str
    properties: dict[str, Any]
    body: bytes
    mandatory: bool
    user: str


class EmbeddedRecording:
    """What was published during a block: complete when that has ended, but for `skipped` messages."""

    def __init__(self, vhost: str) -> None:
        self.vhost = vhost
        self.started_at_ms = 0
        self.recorded: Sequence[Recorded] = ()
        self.skipped = 0

    @property
    def messages(self) -> list[RecordedMessage]:
        """What was published, in its order."""
        return [
            RecordedMessage(
                one.at_us,
                one.message.exchange,
                one.message.routing_key,
                one.message.properties().as_dict(),
                one.message.body,
                one.mandatory,
                one.user,
            )
            for one in self.recorded
        ]

    def save(self, path: str | PathLike[str]) -> None:
        """Write it as `amqp-broker record` does. Raises OSError."""
        lines = [header_line(self.vhost, self.started_at_ms), *map(message_line, self.recorded)]
        if self.skipped:
            lines.append(skipped_line(self.skipped))
        Path(path).write_bytes(b"".join(lines))


class Replayed(NamedTuple):
    """How a replay went: how many messages were published, confirmed, nacked, and came back."""

    published: int
    confirmed: int
    nacked: int
    returned: int


@contextmanager
def recording(
    broker: EmbeddedBroker, vhost: str, exchange: str | None, routing_key: str | None
) -> Iterator[EmbeddedRecording]:
    """Record what is published inside of the block. Raises DoesNotExist for the vhost."""

    def start(server: Server) -> Recording:
        tap = Recording(server.broker.vhost(vhost), exchange, routing_key)
        tap.start()
        return tap

    subject, tap = EmbeddedRecording(vhost), broker.ask(start)
    subject.started_at_ms = tap.started_at_us // 1000
    try:
        yield subject
    finally:
        if broker.is_running:
            broker.ask(lambda server: tap.stop())
        subject.recorded, subject.skipped = tap.take()


def replay(
    broker: EmbeddedBroker, source: EmbeddedRecording | str | PathLike[str], vhost: str, speed: float
) -> Replayed:
    """Publish again what was recorded; see `EmbeddedVHost.replay`."""
    recorded = list(source.recorded) if isinstance(source, EmbeddedRecording) else load(source)
    url = parse_uri(broker.amqp_url(vhost))
    subject = Replay(
        iter([(one.at_us, one.message, one.mandatory) for one in recorded]),
        speed,
        exchanges=frozenset(one.message.exchange for one in recorded),
        user=url.user,
    )

    async def run(server: Server) -> None:
        is_moved = server.clock.is_frozen and speed != math.inf
        await Replaying(subject, url, advance=server.ticking.advance if is_moved else None).run()

    broker.run(run)
    return Replayed(subject.published, subject.confirmed, subject.nacked, subject.returned)


def load(path: str | PathLike[str]) -> list[Recorded]:
    """The messages of a file. Raises RecordingError, and OSError."""
    with Path(path).open("rb") as lines:
        return [one for one in read(lines) if not isinstance(one, Skipped)]
