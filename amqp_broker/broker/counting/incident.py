"""Incidents: things that should be rare, noticed by the growth of a count that exists anyway."""

from __future__ import annotations

from typing import Final

# An incident is over after this time without another occurrence (ms of real time).
RECENT_MS: Final = 600_000


class Incident:
    """Occurrences of one kind in one place: their number, and when the first and the last were noticed.

    `total` is the watched count. Times are in ms of real time since the epoch.
    """

    __slots__ = ("count", "first_ms", "last_ms", "total")

    def __init__(self) -> None:
        self.total = self.count = 0
        self.first_ms = self.last_ms = 0

    def notice(self, total: int, now: int) -> None:
        """Compare the watched count with the last one; growth after a long time begins another incident."""
        grown, self.total = total - self.total, total
        if grown > 0:
            if not self.is_recent(now):
                self.count, self.first_ms = 0, now
            self.count += grown
            self.last_ms = now

    def is_recent(self, now: int) -> bool:
        """Return whether there was an occurrence within RECENT_MS."""
        return self.count > 0 and now - self.last_ms < RECENT_MS


class QueueIncidents:
    """The incidents of a queue.

    `deaths` are of messages that it gave up, by reason, and `circling` is of those that return again and again.
    `rounds` is the highest number of times that one message has died here for the same reason.
    """

    __slots__ = ("circling", "deaths", "rounds")

    def __init__(self) -> None:
        self.deaths: dict[str, Incident] = {}
        self.circling = Incident()
        self.rounds = 0

    def notice_deaths(self, reason: str, total: int, now: int) -> None:
        incident = self.deaths.get(reason)
        if incident is None:
            incident = self.deaths[reason] = Incident()
        incident.notice(total, now)

    def notice_round(self, rounds: int, now: int) -> None:
        """Note a message that has died here for this number of times."""
        circling = self.circling
        self.rounds = max(self.rounds, rounds) if circling.is_recent(now) else rounds
        circling.notice(circling.total + 1, now)
