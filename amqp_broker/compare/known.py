"""What older versions of RabbitMQ do otherwise than the oldest that we imitate: no surprise, and none of our making.

Each is a heading of the list of differences (compat/DIFFERENCES.md), whose differential tests prove it.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

# The oldest version that we have a profile of.
OLDEST: Final = (3, 13)
# A dead letter tells its last death only from then on.
LAST_DEATH: Final = frozenset(f"x-last-death-{name}" for name in ("exchange", "queue", "reason"))


class Known(NamedTuple):
    """A difference by its title, and the patterns of what the two say."""

    title: str
    upstream: str
    ours: str


BEFORE_OLDEST: Final = (
    Known(
        "An unknown exchange type closes the channel", "connection.close reply_code=503", "channel.close.*unknown exc"
    ),
    Known(
        "A stream names itself in its texts",
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
    Known("Limits that are refused are told", "nothing", "connection.close reply_code=530.*negotiated"),
    Known("A nack to a stream is credit", "connection.close reply_code=540.*stream queue", "nothing"),
)


def numbers_of(version: str) -> tuple[int, ...]:
    """The first two numbers of a version; () for what is none."""
    try:
        return tuple(map(int, version.split(".")[:2]))
    except ValueError:
        return ()


def headers_unknown(version: str) -> frozenset[str]:
    """Headers that an upstream of this version does not know."""
    return LAST_DEATH if is_older(version) else frozenset()


def is_older(version: str) -> bool:
    """Whether the upstream is older than all that we imitate."""
    return () < numbers_of(version) < OLDEST


def title_of(version: str, upstream: str, ours: str) -> str:
    """The title of a difference that the upstream's age explains, or nothing."""
    if is_older(version):
        for known in BEFORE_OLDEST:
            if re.match(known.upstream, upstream) and re.match(known.ours, ours):
                return known.title
    return ""
