"""A slow link: in one direction of a connection, octets arrive late or at a limited rate, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.lab.fault_rules import Rule
    from amqp_broker.broker.scheduling.timers import Timer

# Octets on their way beyond which the sender has to wait, as for a full socket.
WAITING_BYTES_MAX: Final = 256 * 1024
# With a limited rate, octets arrive in slices of this time, but of no fewer octets than the minimum.
SLICE_MS: Final = 20
SLICE_BYTES_MIN: Final = 256


class SlowLink:
    """The octets on their way in one direction of a connection.

    The newest rule of each kind delays them. `on_due` is called when the next octets arrive.
    """

    __slots__ = (
        "_bandwidth",
        "_broker",
        "_free_us",
        "_last_due_ms",
        "_latency",
        "_on_due",
        "_timer",
        "_waiting",
        "waiting_bytes",
    )

    def __init__(self, broker: Broker, on_due: Callable[[int], None]) -> None:
        self._broker, self._on_due = broker, on_due
        self._latency: Rule | None = None
        self._bandwidth: Rule | None = None
        # When they arrive, and the octets.
        self._waiting: deque[tuple[int, bytes]] = deque()
        self.waiting_bytes = 0
        self._last_due_ms = 0
        # When the link has transmitted all that it has been given.
        self._free_us = 0
        self._timer: Timer | None = None

    def follow(self, rules: Iterable[Rule]) -> None:
        """Delay what comes from now on as these rules say, the oldest first. Without any, all has arrived."""
        self._latency = self._bandwidth = None
        for rule in rules:
            if rule.action == "latency":
                self._latency = rule
            else:
                self._bandwidth = rule
        if not self.is_slow:
            self._cancel()

    @property
    def is_slow(self) -> bool:
        return self._latency is not None or self._bandwidth is not None

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    def put(self, data: bytes) -> None:
        """Take octets that are sent now; none at all arrive like the end of the connection."""
        now, rule = self._broker.now, self._bandwidth
        latency_ms = self._latency_ms()
        if rule is None:
            self._put(data, now + latency_ms)
            return
        size = max(SLICE_BYTES_MIN, rule.bytes_per_s * SLICE_MS // 1000)
        self._free_us = max(self._free_us, now * 1000)
        for start in range(0, len(data) or 1, size):
            piece = data[start : start + size]
            self._free_us += len(piece) * 1_000_000 // rule.bytes_per_s
            self._put(piece, -(-self._free_us // 1000) + latency_ms)

    def _latency_ms(self) -> int:
        rule = self._latency
        if rule is None:
            return 0
        return rule.delay_ms + (rule.random(rule.jitter_ms + 1) if rule.jitter_ms else 0)

    def _put(self, data: bytes, due_ms: int) -> None:
        self._last_due_ms = max(self._last_due_ms, due_ms)
        self._waiting.append((self._last_due_ms, data))
        self.waiting_bytes += len(data)

    def arrived(self, *, is_over: bool = False) -> list[bytes]:
        """Take out what has arrived; all if no rule delays it any more, or if the connection `is_over`."""
        now, waiting = self._broker.now, self._waiting
        has_all = is_over or not self.is_slow
        found = []
        while waiting and (has_all or waiting[0][0] <= now):
            _, data = waiting.popleft()
            self.waiting_bytes -= len(data)
            found.append(data)
        if not waiting:
            self._cancel()
        elif self._timer is None:
            self._timer = self._broker.timers.at(waiting[0][0], self._call)
        return found

    def discard(self) -> None:
        """Drop what is on its way."""
        self._waiting.clear()
        self.waiting_bytes = 0
        self._cancel()

    def _call(self, now: int) -> None:
        self._timer = None
        self._broker.now = now
        self._on_due(now)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
