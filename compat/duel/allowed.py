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


ALLOWED = (
    Allowed(
        "Debian's package of RabbitMQ 4.3 permits transient queues, so the oracle refuses them by its configuration; "
        "the text names the configuration.",
        re.compile(r"(Feature `\w+` is deprecated\.).*'"),
        r"\1'",
    ),
)


def normalized(line: str) -> str:
    """Return a line without what may differ."""
    for allowed in ALLOWED:
        line = allowed.pattern.sub(allowed.replacement, line)
    return line
