"""The differences found: each is printed at once and counted, and a summary follows at the end."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

from amqp_broker.compare.older_rabbitmq import title_of

# Limits on similar differences that are printed, and on differences that are kept.
SHOWN_ALIKE_MAX: Final = 3
KEPT_MAX: Final = 10_000
_NUMBERS: Final = re.compile(r"\d+")


@dataclass(frozen=True)
class Difference:
    """A request of the client, and what the two brokers did; `connection` is the connection's number."""

    connection: int
    client: str
    channel: int
    asked: str
    upstream: str
    amqp_broker: str
    note: str = ""

    @property
    def kind(self) -> tuple[str, ...]:
        """Return a key that is equal for differences that differ only in numbers."""
        return tuple(_NUMBERS.sub("#", text) for text in (self.asked, self.upstream, self.amqp_broker, self.note))

    def lines(self) -> str:
        client = f" ({self.client})" if self.client else ""
        note = f"\n  {self.note}" if self.note else ""
        return (
            f"connection {self.connection}{client}, channel {self.channel}: {self.asked}\n"
            f"  upstream:    {self.upstream}\n"
            f"  amqp-broker: {self.amqp_broker}{note}"
        )


class DifferenceReport:
    """Counts and differences of one run. `tell` is called with each text that is shown at once."""

    def __init__(self, tell: Callable[[str], None], version: str = "") -> None:
        self.tell = tell
        self.version = version
        self.connections_count = 0
        self.compared_count = 0
        self.differences_count = 0
        # Differences that the upstream's older version explains, by title.
        self.known_counts: dict[str, int] = {}
        self.differences: list[Difference] = []
        self.notes: list[str] = []
        self._kinds: dict[tuple[str, ...], int] = {}

    def add(self, difference: Difference) -> None:
        known = title_of(self.version, difference.upstream, difference.amqp_broker)
        if known:
            self.known_counts[known] = self.known_counts.get(known, 0) + 1
            return
        self.differences_count += 1
        if len(self.differences) < KEPT_MAX:
            self.differences.append(difference)
        count = self._kinds.get(difference.kind, 0) + 1
        if count > 1 or len(self._kinds) < KEPT_MAX:
            self._kinds[difference.kind] = count
        if count <= SHOWN_ALIKE_MAX:
            self.tell(difference.lines())
        if count == SHOWN_ALIKE_MAX:
            self.tell("  (more of these are counted but not shown)")

    def note(self, text: str) -> None:
        """Add a note, which does not count as a difference."""
        if len(self.notes) < KEPT_MAX:
            self.notes.append(text)
            self.tell(text)

    @property
    def summary(self) -> str:
        counts = ((self.connections_count, "connection"), (self.compared_count, "method"))
        said = ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts)
        differences = f"{self.differences_count} difference{'' if self.differences_count == 1 else 's'}"
        known = "".join(f"\n  {count} more explained: {title}" for title, count in self.known_counts.items())
        return f"{said} compared, {differences}{known}"

    def as_json(self) -> dict[str, Any]:
        return {
            "connections": self.connections_count,
            "methods_compared": self.compared_count,
            "differences_count": self.differences_count,
            "explained": self.known_counts,
            "differences": [asdict(difference) for difference in self.differences],
            "notes": self.notes,
        }
