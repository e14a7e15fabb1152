"""Differences that may stay, about which a user would say: rightly so. Each is removed from the lines of a window."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Allowed:
    """A part of a line that may differ, as a regular expression, and its replacement."""

    reason: str
    pattern: re.Pattern[str]
    replacement: str
    # Profiles of amqp-broker; an empty tuple stands for all.
    profiles: tuple[str, ...] = ()


# Headers of dead letters and of quorum queues, which RabbitMQ 3.10 does not have or has always.
_LATER_HEADERS = re.compile(
    r"(?:x-(?:first|last)-death-\w+: S'[^']*'|x-delivery-count: l0)(?:, )?|, (?=\})|(?<=\{), |headers=\{\} "
)

ALLOWED = (
    Allowed(
        "Debian's package of RabbitMQ 4.3 permits transient queues, so the oracle refuses them by its configuration; "
        "the text names the configuration.",
        re.compile(r"(Feature `\w+` is deprecated\.).*'"),
        r"\1'",
    ),
    Allowed(
        "A dead letter has headers about its last death, as in RabbitMQ 3.13; a message from a quorum queue has a "
        "count only after a redelivery, as in RabbitMQ 4.",
        _LATER_HEADERS,
        "",
        profiles=("3.13",),
    ),
    Allowed(
        "The reply text names a stream queue, as in RabbitMQ 4.",
        re.compile(r"is not set for (?:'queue|stream queue) ('\w+' in vhost '/')'?"),
        r"is not set for \1",
        profiles=("3.13",),
    ),
    Allowed(
        "An unknown exchange type closes the channel with 406, as in RabbitMQ 3.13; 3.10 closes the connection.",
        re.compile(r"a\d (?:channel|connection)\.close reply_code=\d+ .*(?:unknown|invalid) exchange type.*"),
        "unknown exchange type",
        profiles=("3.13",),
    ),
)


def normalized(line: str, profile: str) -> str:
    """Return a line without what may differ."""
    for allowed in ALLOWED:
        if not allowed.profiles or profile in allowed.profiles:
            line = allowed.pattern.sub(allowed.replacement, line)
    return line
