"""When the loop is to wake up, and how time is moved.

There are two heaps of timers. `Broker.timers` goes by the clock, which can be frozen and advanced: all that messages,
queues and streams wait for. `Broker.real_timers` goes by the time that really passes: heartbeats, handshakes, closes,
which a peer must live through itself, and the rates of what is counted. Each has one timer of the loop.

Advancing is one moment for everybody: what falls due in between runs at its own time and in order, and what that has
to say to consumers is written before the next runs; no client is read meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.server.clock import Clock


class Ticking:
    """Calls `flush` after whatever it ran. `due_ms` and `real_due_ms` are the deadlines that it knows of."""

    def __init__(self, broker: Broker, clock: Clock, flush: Callable[[], None]) -> None:
        self._broker = broker
        self._clock = clock
        self._flush = flush
        self.due_ms: int | None = None
        self.real_due_ms: int | None = None
        self._timer: asyncio.Handle | None = None
        self._real_timer: asyncio.Handle | None = None

    def stop(self) -> None:
        for timer in (self._timer, self._real_timer):
            if timer is not None:
                timer.cancel()

    def set_timers(self) -> None:
        """Wake up when the first of each heap is due, which may be others than before."""
        broker, clock = self._broker, self._clock
        if broker.advancing_to_ms is not None:
            return
        if broker.real_timers.earliest_ms != self.real_due_ms:
            self.real_due_ms = broker.real_timers.next_deadline()
            self._real_timer = _set(self._real_timer, self.real_due_ms, clock.real_now(), self._on_real_timer)
        if broker.timers.earliest_ms != self.due_ms:
            self.due_ms = due_ms = broker.timers.next_deadline()
            now = clock.now()
            # While time stands still, nothing of the future will be due.
            comes = due_ms is not None and (due_ms <= now or not clock.is_frozen)
            self._timer = _set(self._timer, due_ms if comes else None, now, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = self.due_ms = None
        self._broker.tick(self._clock.now())
        self._flush()

    def _on_real_timer(self) -> None:
        self._real_timer = self.real_due_ms = None
        self._broker.now = self._clock.now()
        self._broker.real_timers.run_due(self._clock.real_now())
        self._flush()

    # Moving time

    def freeze(self) -> None:
        """Let the broker's time stand still."""
        self._clock.freeze()
        self._look_again()

    def resume(self) -> None:
        """Let the broker's time run on from where it stands."""
        self._clock.resume()
        self._look_again()

    def advance(self, duration_ms: int) -> None:
        """Let the broker's time pass, frozen or not; what is due in between runs at its own time.

        Raises ValueError, and changes nothing, for a negative duration or one beyond the year 9999.
        """
        broker, clock = self._broker, self._clock
        clock.check(duration_ms)
        was_frozen = clock.is_frozen
        # What all this takes is no time for the broker.
        clock.freeze()
        broker.now = clock.now()
        end_ms = broker.now + duration_ms
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
            self._look_again()

    def _look_again(self) -> None:
        """The same deadline may be another moment now."""
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
        # Before anything more is read: a fault that follows a delivery comes before the ack of it.
        return asyncio.get_running_loop().call_soon(callback)
    return asyncio.get_running_loop().call_later((due_ms - now) / 1000, callback)
