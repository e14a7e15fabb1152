"""The loop's timers, and moving the broker's time.

There are two heaps of timers. `Broker.timers` follows the broker's clock, which can be frozen and advanced: messages,
queues and streams wait there. `Broker.real_timers` follows real time: heartbeats, handshakes and closes, which depend
on the client, and rates. Each heap has one timer of the loop.

An advance is one step for all clients: timers that fall due run in order, each at its own time, and their output is
written before the next one runs. No client is read during an advance.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.server.clock import Clock

# Advances from this one on begin with a scan for advice, which is done as often while time passes by itself (ms).
SCAN_MS: Final = 1000


class Ticking:
    """Runs timers that are due, then `flush`. `due_ms` and `real_due_ms` are the deadlines it waits for."""

    def __init__(self, broker: Broker, clock: Clock, flush: Callable[[], None]) -> None:
        self._broker = broker
        self._clock = clock
        self._flush = flush
        self.due_ms: int | None = None
        self.real_due_ms: int | None = None
        # When the clock was last frozen or advanced (ms of real time).
        self.moved_at_ms: int | None = None
        self._timer: asyncio.Handle | None = None
        self._real_timer: asyncio.Handle | None = None

    def stop(self) -> None:
        """Cancel the timers of the loop."""
        for timer in (self._timer, self._real_timer):
            if timer is not None:
                timer.cancel()

    def set_timers(self) -> None:
        """Wait for the earliest deadline of each heap, which may have changed."""
        broker, clock = self._broker, self._clock
        if broker.advancing_to_ms is not None:
            return
        if broker.real_timers.earliest_ms != self.real_due_ms:
            self.real_due_ms = broker.real_timers.next_deadline()
            self._real_timer = _set(self._real_timer, self.real_due_ms, clock.real_now(), self._on_real_timer)
        if broker.timers.earliest_ms != self.due_ms:
            self.due_ms = due_ms = broker.timers.next_deadline()
            now = clock.now()
            # While the clock is frozen, no later deadline can come.
            comes = due_ms is not None and (due_ms <= now or not clock.is_frozen)
            self._timer = _set(self._timer, due_ms if comes else None, now, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = self.due_ms = None
        try:
            self._broker.tick(self._clock.now())
        finally:
            # Also after an error: the timer of the loop is set again for the others.
            self._flush()

    def _on_real_timer(self) -> None:
        self._real_timer = self.real_due_ms = None
        self._broker.now = self._clock.now()
        try:
            self._broker.real_timers.run_due(self._clock.real_now())
        finally:
            self._flush()

    # Moving time

    def freeze(self) -> None:
        """Freeze the broker's clock."""
        self._clock.freeze()
        self.moved_at_ms = self._clock.real_now()
        self._rearm()

    def resume(self) -> None:
        """Let the broker's clock run on from the frozen time."""
        self._clock.resume()
        self._rearm()

    def advance(self, duration_ms: int) -> None:
        """Advance the broker's clock, frozen or not; timers that fall due run at their own time.

        Raise ValueError, and change nothing, for a negative duration or one beyond the year 9999.
        """
        broker, clock = self._broker, self._clock
        clock.check(duration_ms)
        self.moved_at_ms = clock.real_now()
        was_frozen = clock.is_frozen
        # The work of an advance takes none of the broker's time.
        clock.freeze()
        broker.now = clock.now()
        end_ms = broker.now + duration_ms
        if duration_ms >= SCAN_MS:
            # Habits are timed by the broker's clock, and what was so before the advance has lasted afterwards.
            broker.advice.scan()
        for connection in broker.connections:
            connection.before_advance(broker.now)
        broker.advancing_to_ms = end_ms
        try:
            while (deadline := broker.timers.next_deadline()) is not None and deadline <= end_ms:
                clock.move_to(deadline)
                broker.tick(clock.now())
                self._flush()
                while broker.undrained:
                    broker.drain_on()
                    self._flush()
            clock.move_to(end_ms)
            broker.now = end_ms
        finally:
            broker.advancing_to_ms = None
            if not was_frozen:
                clock.resume()
            self._rearm()

    def _rearm(self) -> None:
        """Set the timer again: the same deadline may be another moment of real time."""
        self.due_ms = -1
        self._flush()


def _set(
    timer: asyncio.Handle | None, due_ms: int | None, now: int, callback: Callable[[], None]
) -> asyncio.Handle | None:
    if timer is not None:
        timer.cancel()
    if due_ms is None:
        return None
    if due_ms <= now:
        # This runs before the next read, so that a fault of a delivery precedes its ack.
        return asyncio.get_running_loop().call_soon(callback)
    return asyncio.get_running_loop().call_later((due_ms - now) / 1000, callback)
