"""x-expires: a queue is deleted when it was not used for some time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqp_broker.broker.scheduling.timers import Timer, Timers


class UnusedExpiry:
    """The last use of a queue, and the timer that deletes it. While it has consumers, the queue is in use.

    A use does not move the timer: when it is due, the last use decides whether it is set again. A queue that is due and
    stays starts it again by its next use.
    """

    __slots__ = ("_consumers", "_delete", "_timer", "_timers", "expires_ms", "last_used_ms")

    def __init__(self, timers: Timers, now: int, consumers: Collection[object], delete: Callable[[], None]) -> None:
        self._timers = timers
        self._timer: Timer | None = None
        self._consumers = consumers
        self._delete: Callable[[], None] = delete
        self.expires_ms: int | None = None
        self.last_used_ms = now

    @property
    def due_ms(self) -> int | None:
        """When the queue is deleted unless it is used before (ms since the epoch); None if it is not."""
        if self._timer is None or self.expires_ms is None or self._consumers:
            return None
        return self.last_used_ms + self.expires_ms

    def use(self, now: int) -> None:
        """Note a use: for example, the queue was read, or its last consumer left."""
        self.last_used_ms = now
        if self._timer is None:
            self._start()

    def follow(self, expires_ms: int | None) -> None:
        """Apply another x-expires; None is never."""
        self.expires_ms = expires_ms
        self._start()

    def _start(self) -> None:
        self._cancel()
        if self.expires_ms is not None:
            self._timer = self._timers.at(self.last_used_ms + self.expires_ms, self._on_due)

    def _on_due(self, now: int) -> None:
        self._timer = None
        if self.expires_ms is None or self._consumers:
            # The last consumer to leave is a use, and starts the timer again.
            return
        if now >= self.last_used_ms + self.expires_ms:
            self._delete()
        else:
            self._start()

    def stop(self) -> None:
        """Never delete the queue any more: it is deleted. Refer to it no longer, so that it is freed at once."""
        self.expires_ms = None
        self._cancel()
        self._delete = lambda: None

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
