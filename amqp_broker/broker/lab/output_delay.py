"""The output of a connection over a slow link: it arrives later than it was written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from amqp_broker.amqp.connection_states import ENDED
from amqp_broker.broker.lab.slow_link import WAITING_BYTES_MAX, SlowLink

if TYPE_CHECKING:
    from amqp_broker.broker.lab.fault_rules import Rule
    from amqp_broker.session.session import Session


class OutputDelay:
    """Delays each flush of a session. Consumers get nothing more while too much is on its way."""

    __slots__ = ("_has_paused", "_link", "_session")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._link = SlowLink(session.broker, self._on_due)
        self._has_paused = False

    def follow(self, rules: Iterable[Rule]) -> None:
        """Delay as these rules say from now on, or end the delay."""
        self._link.follow(rules)
        if self._link.is_slow:
            return
        self._session.outbox.request_flush()
        if self._has_paused:
            self._has_paused = False
            self._session.resume(self._session.broker.now)

    def pass_on(self, output: list[bytes]) -> list[bytes]:
        """Delay `output`, and return what arrives now. A connection that has ended is not delayed."""
        session, link = self._session, self._link
        if not link.is_slow:
            session.outbox.delay = None
            return link.arrived() + output
        if output:
            link.put(b"".join(output))
        arrived = link.arrived(is_over=session.state is ENDED)
        if link.waiting_bytes > WAITING_BYTES_MAX and not session.is_backpressured:
            self._has_paused = True
            session.pause()
        elif self._has_paused and link.waiting_bytes <= WAITING_BYTES_MAX // 2:
            self._has_paused = False
            session.resume(session.broker.now)
        return arrived

    def _on_due(self, now: int) -> None:
        self._session.outbox.request_flush()
