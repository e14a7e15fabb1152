"""Known behaviour of RabbitMQ versions older than the oldest profile.

Each title is a heading of compat/DIFFERENCES.md, and the differential tests prove it.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

# The oldest version with a profile.
OLDEST: Final = (3, 13)
# Headers of a dead letter since that version.
LAST_DEATH: Final = frozenset(f"x-last-death-{name}" for name in ("exchange", "queue", "reason"))


class Known(NamedTuple):
    """A difference by its title, with patterns for the answers of both brokers."""

    title: str
    upstream: str
    local: str


BEFORE_OLDEST: Final = (
    Known(
        "An unknown exchange type closes the channel", "connection.close reply_code=503", "channel.close.*unknown exc"
    ),
    Known(
        "Error texts name streams",
        r"channel.close.*for 'queue '|automatic ack",
        "channel.close.*stream queue",
    ),
    Known(
        "A body larger than announced is refused at once",
        "connection.close reply_code=505.*expected content body",
        "connection.close reply_code=501",
    ),
    Known(
        "A classic queue may have x-queue-leader-locator",
        "channel.close.*x-queue-leader-locator.*rabbit_classic_queue",
        "queue.declare-ok",
    ),
    Known("A nack to a stream is credit", "connection.close reply_code=540.*stream queue", "nothing"),
)


def numbers_of(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version, or () for an invalid version."""
    try:
        return tuple(map(int, version.split(".")[:2]))
    except ValueError:
        return ()


def headers_unknown(version: str) -> frozenset[str]:
    """Return the headers that an upstream of this version does not know."""
    return LAST_DEATH if is_older(version) else frozenset()


def is_older(version: str) -> bool:
    """Return whether the upstream is older than the oldest profile."""
    return () < numbers_of(version) < OLDEST


def title_of(version: str, upstream: str, local: str) -> str:
    """Return the title of a difference that the upstream's version explains, or ""."""
    if is_older(version):
        for known in BEFORE_OLDEST:
            if re.match(known.upstream, upstream) and re.match(known.local, local):
                return known.title
    return ""
