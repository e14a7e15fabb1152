"""The connections of clients that have not logged in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# Beyond this number, none may be silent for longer than others need that reconnect at the same moment.
CONNECTIONS_MAX: Final = 4096
SILENCE_MS_MAX: Final = 2000
# Connections that are closed for a new one.
CLOSED_MAX: Final = 2


class AwaitingLogin:
    """Bounds their number: for a new one, those are closed that have been silent for longest.

    Each is named by its number, and `now` is the real time (ms since the epoch).
    """

    def __init__(self, count_max: int = CONNECTIONS_MAX) -> None:
        self._count_max = count_max
        # The last sign of each connection, and what closes it, in the order of the signs.
        self._waiting: dict[int, tuple[int, Callable[[], None]]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, number: int, now: int, close: Callable[[], None]) -> None:
        """Count a new connection."""
        waiting = self._waiting
        waiting[number] = now, close
        for _ in range(CLOSED_MAX):
            first = next(iter(waiting))
            if len(waiting) <= self._count_max or waiting[first][0] + SILENCE_MS_MAX > now:
                return
            waiting.pop(first)[1]()

    def note_sign(self, number: int, now: int) -> None:
        """Move a connection, whose client goes on with its login, behind the others."""
        if number in self._waiting:
            self._waiting[number] = now, self._waiting.pop(number)[1]

    def remove(self, number: int) -> None:
        """Count a connection no more: its client has logged in, or is gone."""
        self._waiting.pop(number, None)
