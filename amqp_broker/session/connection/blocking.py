"""Blocked connections, and the method connection.blocked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pamqp import commands

from amqp_broker.amqp.connection_states import RUNNING

if TYPE_CHECKING:
    from amqp_broker.session.session import Session


class Blocking:
    """The reasons for which one connection is not read.

    These are alarms, fault rules, work in steps, slow links, and black holes. An alarm blocks a connection with
    its first publish, and then until all alarms are cleared. Source: rabbit_reader.erl, maybe_block.
    """

    __slots__ = ("_has_sent_blocked", "_session", "is_blocked", "is_by_alarm")
    # For mypyc: `release` deletes it.
    __deletable__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session
        # The shell does not read the socket.
        self.is_blocked = False
        # An alarm is one of the reasons; a publish may wait in the reader.
        self.is_by_alarm = False
        # connection.blocked was sent, or would have been to a client with the capability.
        self._has_sent_blocked = False

    def release(self) -> None:
        """Forget the session, which has ended."""
        del self._session

    def block_by_alarm(self) -> None:
        """Block the connection until the last alarm is cleared. If it publishes, the publish waits in the reader."""
        self.is_by_alarm = True
        self.update()

    def follow_alarms(self) -> None:
        """Read again if the last alarm has been cleared; an alarm blocks a client that waits for confirms."""
        session = self._session
        broker = session.broker
        if not broker.alarms and self.is_by_alarm:
            self.is_by_alarm = False
            self.update()
            if not session.is_working:
                session.reader.end_hold()
                session.reader.receive(b"", broker.now)
        elif broker.alarms and session.gate.waiting:
            # The disk may be the reason why its publishes are not confirmed: it may never publish again.
            self.block_by_alarm()

    def update(self) -> None:
        """Block or unblock the connection as alarms, fault rules, work in steps and slow links say."""
        session = self._session
        by_fault = session.faults.blocking_reason
        has_reason = self.is_by_alarm or by_fault is not None
        if session.state is not RUNNING:
            return
        if self.is_blocked is not (has_reason or session.is_working or session.is_link_full):
            self.is_blocked = not self.is_blocked
            session.outbox.request_flush()
        if has_reason is not self._has_sent_blocked:
            self._has_sent_blocked = has_reason
            self._notify(by_fault)

    def _notify(self, by_fault: str | None) -> None:
        session = self._session
        low = " & ".join(sorted(session.broker.alarms))
        if self._has_sent_blocked:
            session.last_blocked_ms = session.broker.now
            session.last_blocked_by = low or "fault"
        if session.has_capability("connection.blocked"):
            blocked = commands.Connection.Blocked(f"low on {low}" if by_fault is None else by_fault)
            session.send(0, blocked if self._has_sent_blocked else commands.Connection.Unblocked())

    def block(self) -> None:
        """Read nothing more, without a word to the client."""
        self.is_blocked = True

    def end(self) -> None:
        """Read again: the connection ends, and its close-ok must be read."""
        self.is_blocked = self.is_by_alarm = False
