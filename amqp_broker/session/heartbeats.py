"""Heartbeats of one connection: sent when nothing else was, and missed when nothing at all came (spec 4.2.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amqp_broker.protocol.wire import HEARTBEAT_FRAME

if TYPE_CHECKING:
    from amqp_broker.session.session import Session

# RabbitMQ gives up on a peer after this many silent intervals in a row.
QUIET_INTERVALS_MAX: Final = 2


class Heartbeats:
    """Looks twice an interval whether to send one, and once an interval whether anything was received."""

    def __init__(self, session: Session, interval_s: int) -> None:
        self._session = session
        self._interval_ms = interval_s * 1000
        self._quiet_intervals = 0
        self._flush_count = session.flush_count
        session.has_received = True
        # Set by a fault: the peer hears nothing of us.
        self.is_mute = False
        timers, now = session.broker.real_timers, session.broker.real_now()
        self._send_timer = timers.at(now + self._interval_ms // 2, self._check_sent)
        self._receive_timer = timers.at(now + self._interval_ms, self._check_received)

    def stop(self) -> None:
        """The connection is over: the timers must not keep its session."""
        self._send_timer.cancel()
        self._receive_timer.cancel()

    def _check_sent(self, now: int) -> None:
        session = self._session
        # A full socket has something to send, so it needs no heartbeat; the flush of a heartbeat itself is none.
        is_silent = session.flush_count == self._flush_count and not session.is_paused and not self.is_mute
        if is_silent:
            session.send_bytes(HEARTBEAT_FRAME)
        self._flush_count = session.flush_count + is_silent
        self._send_timer = session.broker.real_timers.at(now + self._interval_ms // 2, self._check_sent)

    def _check_received(self, now: int) -> None:
        session = self._session
        # Nobody reads a blocked connection, so nothing can be heard of it.
        is_heard = session.has_received or (session.is_blocked and not session.is_deaf)
        self._quiet_intervals = 0 if is_heard else self._quiet_intervals + 1
        session.has_received = False
        if self._quiet_intervals < QUIET_INTERVALS_MAX:
            self._receive_timer = session.broker.real_timers.at(now + self._interval_ms, self._check_received)
        else:
            session.cause = f"missed heartbeats from client, timeout: {self._interval_ms // 1000}s"
            session.drop()
