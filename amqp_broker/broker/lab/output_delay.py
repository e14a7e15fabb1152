"""Latency: the output of a connection arrives later than it was written."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from amqp_broker.amqp.connection_states import ENDED

if TYPE_CHECKING:
    from amqp_broker.broker.lab.fault_rules import Rule
    from amqp_broker.session.session import Session

# Bytes of delayed output beyond which consumers of the connection get nothing more.
DELAYED_BYTES_MAX: Final = 256 * 1024


class OutputDelay:
    """Delays each flush of a session by what its present rule says, and keeps their order."""

    def __init__(self, session: Session) -> None:
        # None if the delay has ended: all that is delayed arrives with the next flush.
        self._rule: Rule | None = None
        self._session = session
        # When it is due, and what was flushed then.
        self._delayed: deque[tuple[int, list[bytes]]] = deque()
        self._bytes = 0
        self._last_due_ms = 0
        self._has_paused = False

    def pass_on(self, output: list[bytes]) -> list[bytes]:
        """Delay `output`, and return what is due now. A connection that has ended is not delayed."""
        session, rule, now = self._session, self._rule, self._session.broker.now
        if rule is None:
            session.outbox.delay = None
            return [piece for _, pieces in self._delayed for piece in pieces] + output
        if output:
            jitter_ms = rule.random(rule.jitter_ms + 1) if rule.jitter_ms else 0
            due = max(self._last_due_ms, now + rule.delay_ms + jitter_ms)
            self._last_due_ms = due
            self._delayed.append((due, output))
            self._bytes += sum(map(len, output))
            session.broker.timers.at(due, self._on_due)
            if self._bytes > DELAYED_BYTES_MAX and not session.is_backpressured:
                self._has_paused = True
                session.pause()
        arrived: list[bytes] = []
        while self._delayed and (self._delayed[0][0] <= now or session.state is ENDED):
            _, pieces = self._delayed.popleft()
            self._bytes -= sum(map(len, pieces))
            arrived += pieces
        if self._has_paused and self._bytes <= DELAYED_BYTES_MAX // 2:
            self._has_paused = False
            session.resume(now)
        return arrived

    def follow(self, rule: Rule | None) -> None:
        """Delay by what another rule says from now on, or end the delay."""
        self._rule = rule
        if rule is not None:
            return
        self._session.outbox.request_flush()
        if self._has_paused:
            self._has_paused = False
            self._session.resume(self._session.broker.now)

    def _on_due(self, now: int) -> None:
        self._session.broker.now = now
        self._session.outbox.request_flush()
