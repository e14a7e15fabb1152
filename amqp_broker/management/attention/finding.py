"""A finding: something that needs attention, in a sentence with its cause, and its remedy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

# Kinds by level, the most urgent first. Those of the last level are on purpose, and easily forgotten.
LEVELS: Final[Mapping[str, tuple[str, ...]]] = {
    "critical": ("alarm",),
    "warning": (
        "refused-client",
        "lost-connections",
        "channel-errors",
        "idle-consumer",
        "retry-loop",
        "unroutable",
        "dead-letters",
        "no-consumer",
        "slow-consumer",
        "shovel",
    ),
    "notice": ("fault-rule", "clock"),
}
KINDS: Final = {kind: level for level, kinds in LEVELS.items() for kind in kinds}
_ORDER: Final = list(KINDS)


@dataclass(frozen=True, slots=True)
class Finding:
    """`kind` is one of KINDS. `since_ms` is when it began, in real time; None if that is not known.

    `place` has the names of the objects concerned: vhost, queue, exchange, connection and the like.
    """

    kind: str
    sentence: str
    remedy: str
    since_ms: int | None = None
    place: Mapping[str, Any] = field(default_factory=dict)

    @property
    def level(self) -> str:
        """The level of its kind."""
        return KINDS[self.kind]

    def rank(self) -> tuple[int, int]:
        """Return what findings are sorted by: the most urgent first, and of one kind the latest."""
        return _ORDER.index(self.kind), -(self.since_ms or 0)


def number(count: float) -> str:
    """Return a whole number as the web page writes it, with commas between thousands."""
    return f"{round(count):,}"


def counted(count: float, singular: str, plural: str = "") -> str:
    """Return a number with its noun."""
    return f"{number(count)} {singular if round(count) == 1 else plural or singular + 's'}"
