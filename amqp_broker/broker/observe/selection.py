"""The selection of a trace: which messages it records."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

# A multiplier without patterns in its bits (Knuth's golden ratio): neighbouring numbers get far values.
_GOLDEN: Final = 0x9E3779B97F4A7C15
_MASK: Final = (1 << 64) - 1


class Selection(NamedTuple):
    """Selects whole messages: all events of one, or none.

    `exchanges` and `queues` are the names that a message must be published to and routed to (one of its queues); none
    select all. Of the messages that match, one in `one_in` is selected. Which ones depends on their numbers alone.
    """

    exchanges: frozenset[str] = frozenset()
    queues: frozenset[str] = frozenset()
    one_in: int = 1

    @property
    def takes_all(self) -> bool:
        return self == Selection()

    @property
    def is_by_name(self) -> bool:
        """True if names decide, and not chance alone."""
        return bool(self.exchanges or self.queues)

    def matches(self, exchange: str, queues: Collection[str]) -> bool:
        """Return whether names select a message that was published to an exchange and is routed to queues."""
        if self.exchanges and exchange not in self.exchanges:
            return False
        return not self.queues or not self.queues.isdisjoint(queues)

    def samples(self, number: int) -> bool:
        """Return whether chance selects the message with this number."""
        return (number * _GOLDEN & _MASK) * self.one_in <= _MASK
