"""The differences that were found: each a line when it is found, all of them counted, and a summary at the end."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

from amqp_broker.compare.known import title_of

# So many that are alike are shown, and no more of one run than so many are kept.
SHOWN_ALIKE_MAX: Final = 3
KEPT_MAX: Final = 10_000
_NUMBERS: Final = re.compile(r"\d+")


@dataclass(frozen=True)
class Difference:
    """Where, after what of the client's, and what the two brokers said; `connection` is the number of it."""

    connection: int
    client: str
    channel: int
    asked: str
    upstream: str
    ours: str
    note: str = ""

    @property
    def kind(self) -> tuple[str, ...]:
        """Those that are alike but for their numbers have the same."""
        return tuple(_NUMBERS.sub("#", text) for text in (self.asked, self.upstream, self.ours, self.note))

    def lines(self) -> str:
        client = f" ({self.client})" if self.client else ""
        note = f"\n  {self.note}" if self.note else ""
        return (
            f"connection {self.connection}{client}, channel {self.channel}: {self.asked}\n"
            f"  upstream: {self.upstream}\n"
            f"  ours:     {self.ours}{note}"
        )


class Report:
    """What was compared with an upstream of that version. `tell` gets each line that is to be seen at once."""

    def __init__(self, tell: Callable[[str], None], version: str = "") -> None:
        self.tell = tell
        self.version = version
        self.connections_count = 0
        self.compared_count = 0
        self.differences_count = 0
        # By title: what the age of the upstream explains.
        self.known_counts: dict[str, int] = {}
        self.differences: list[Difference] = []
        self.notes: list[str] = []
        self._kinds: dict[tuple[str, ...], int] = {}

    def add(self, difference: Difference) -> None:
        known = title_of(self.version, difference.upstream, difference.ours)
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
            self.tell("  (more of these are counted, and not shown)")

    def note(self, text: str) -> None:
        """Something that a reader must know, and that is no difference."""
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
