"""The input of a connection over a slow link: the broker acts on it later than the client sent it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from amqp_broker.amqp.connection_states import RUNNING
from amqp_broker.broker.lab.slow_link import WAITING_BYTES_MAX, SlowLink

if TYPE_CHECKING:
    from amqp_broker.broker.lab.fault_rules import Rule
    from amqp_broker.session.session import Session


class InputDelay:
    """Delays each read of a session, and the end of the socket. While too much is on its way, the socket is not read.

    It stands before the session's reader until no rule delays input any more and all has arrived.
    """

    __slots__ = ("_has_ended", "_link", "_session")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._link = SlowLink(session.broker, self._on_due)
        # The client has closed its socket.
        self._has_ended = False
        session.receive = self.receive

    def follow(self, rules: Iterable[Rule]) -> None:
        """Delay as these rules say from now on, or end the delay."""
        self._link.follow(rules)
        if not self._link.is_slow:
            # The caller may be in the middle of other work.
            broker = self._session.broker
            broker.timers.at(broker.now, self._on_due)

    def receive(self, data: bytes, now: int) -> None:
        """Take one read of the socket."""
        self._session.broker.now = now
        if data:
            self._link.put(data)
        self._pass_on()

    def delays_end(self) -> bool:
        """Return whether the end of the socket, which has come, is still on its way."""
        if not self._has_ended:
            self._has_ended = True
            self._link.put(b"")
            self._pass_on()
        return not self._link.is_empty

    def discard(self) -> None:
        """Drop what is on its way: the session ends."""
        self._link.discard()
        self._leave()

    def _on_due(self, now: int) -> None:
        session = self._session
        session.broker.now = now
        if session.input_delay is self:
            self._pass_on()

    def _pass_on(self) -> None:
        session, link = self._session, self._link
        # A session that ends only waits for the client's answer.
        for data in link.arrived(is_over=session.state is not RUNNING):
            if data:
                session.reader.receive(data, session.broker.now)
        is_full = link.waiting_bytes > (WAITING_BYTES_MAX // 2 if session.is_link_full else WAITING_BYTES_MAX)
        if is_full is not session.is_link_full:
            session.is_link_full = is_full
            session.blocking.update()
        if not link.is_empty:
            return
        if self._has_ended:
            self._leave()
            session.connection_lost(session.broker.now)
        elif not link.is_slow:
            self._leave()

    def _leave(self) -> None:
        self._session.input_delay = None
        self._session.receive = self._session.reader.receive
