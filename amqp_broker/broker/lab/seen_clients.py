"""Notes on clients between the scans for advice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqp_broker.broker.lab.habits import RATE_MS

if TYPE_CHECKING:
    from amqp_broker.broker.exchanges.exchange import Exchange


class SeenChannel:
    """Notes on a channel between scans."""

    __slots__ = ("excused", "has_persistent", "newest_tag", "reported", "settled", "since_ms")

    def __init__(self) -> None:
        # A persistent message was published here without confirms.
        self.has_persistent = False
        # Messages that exchanges dropped before their first binding.
        self.excused: dict[Exchange, int] = {}
        # Habits already reported here, each with a key of its own, and the messages that were added to the advice.
        self.reported: dict[tuple[str, str], int] = {}
        # Number of settled deliveries, and the time of its last change; -1 while few deliveries are unacked.
        self.settled = -1
        self.newest_tag = 0
        self.since_ms = 0


class Rate:
    """A count within a minute."""

    __slots__ = ("count", "since_ms")

    def __init__(self) -> None:
        self.count = 0
        self.since_ms = 0

    def reaches(self, limit: int, now: int) -> bool:
        """Add one; return whether the count reaches `limit`, and begin again if it does."""
        if now - self.since_ms > RATE_MS:
            self.count, self.since_ms = 0, now
        self.count += 1
        if self.count < limit:
            return False
        self.count = 0
        return True


class SeenConnection:
    """Messages of a connection's closed channels, and the rate of channels that carried one message."""

    __slots__ = ("published", "received", "short_channels")

    def __init__(self) -> None:
        self.published = self.received = 0
        self.short_channels = Rate()
