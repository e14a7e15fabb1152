"""Heartbeats of one connection (spec 4.2.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amqp_broker.amqp.connection_states import RUNNING
from amqp_broker.amqp.frames import HEARTBEAT_FRAME

if TYPE_CHECKING:
    from amqp_broker.session.session import Session

# Number of silent intervals in a row after which RabbitMQ ends a connection.
QUIET_INTERVALS_MAX: Final = 2


class Heartbeats:
    """Sends a heartbeat after half an interval without output. Two intervals without input end the session."""

    def __init__(self, session: Session, interval_s: int) -> None:
        self._session = session
        self._interval_ms = interval_s * 1000
        self._quiet_intervals = 0
        # Counts at the last check; the interval that begins now does not count as quiet.
        self._received_count = -1
        self._flush_count = session.outbox.flush_count
        # Set by a fault: no heartbeat is sent.
        self.is_suppressed = False
        timers, now = session.broker.real_timers, session.broker.real_now()
        self._send_timer = timers.at(now + self._interval_ms // 2, self._check_sent)
        self._receive_timer = timers.at(now + self._interval_ms, self._check_received)

    def stop(self) -> None:
        """Cancel the timers, which would keep an ended session in memory."""
        self._send_timer.cancel()
        self._receive_timer.cancel()

    def _check_sent(self, now: int) -> None:
        session = self._session
        # A full socket has something to send, so it needs no heartbeat; the flush of a heartbeat itself is none.
        is_silent = (
            session.outbox.flush_count == self._flush_count and not session.is_backpressured and not self.is_suppressed
        )
        if is_silent:
            session.outbox.append(HEARTBEAT_FRAME)
        self._flush_count = session.outbox.flush_count + is_silent
        self._send_timer = session.broker.real_timers.at(now + self._interval_ms // 2, self._check_sent)

    def _check_received(self, now: int) -> None:
        session = self._session
        # The socket of a blocked connection is not read.
        is_heard = session.received_count != self._received_count or (
            session.blocking.is_blocked and session.state is RUNNING
        )
        self._quiet_intervals = 0 if is_heard else self._quiet_intervals + 1
        self._received_count = session.received_count
        if self._quiet_intervals < QUIET_INTERVALS_MAX:
            self._receive_timer = session.broker.real_timers.at(now + self._interval_ms, self._check_received)
        else:
            session.cause = f"missed heartbeats from client, timeout: {self._interval_ms // 1000}s"
            session.drop()
