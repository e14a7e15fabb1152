"""Message TTL: the deadlines of the messages of a queue, and the timer for the one at its head."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqp_broker.broker.scheduling.timers import Timer, Timers


class Expiry:
    """The deadlines of ready and unacked messages that expire, by position (ms since the epoch).

    Only the message at the head expires. An expired message behind one that is not expired is counted and kept, as in
    RabbitMQ.
    """

    __slots__ = ("_on_due", "_timer", "_timers", "deadlines")

    def __init__(self, timers: Timers, on_due: Callable[[], None]) -> None:
        self._timers = timers
        self._on_due: Callable[[], None] = on_due
        self._timer: Timer | None = None
        self.deadlines: dict[int, int] = {}

    def is_due(self, position: int, now: int) -> bool:
        """Return whether the message at the head has expired; set the timer if it expires later."""
        deadline = self.deadlines.get(position)
        if deadline is None:
            return False
        if deadline > now:
            self._wake_at(deadline)
            return False
        return True

    def _wake_at(self, deadline_ms: int) -> None:
        timer = self._timer
        if timer is not None and timer.callback is not None:
            if timer.deadline_ms <= deadline_ms:
                return
            timer.cancel()
        self._timer = self._timers.at(deadline_ms, self._run)

    def _run(self, now: int) -> None:
        self._on_due()

    def stop(self) -> None:
        """Cancel the timer; the queue is deleted. Refer to it no longer, so that it is freed at once."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._on_due = lambda: None
