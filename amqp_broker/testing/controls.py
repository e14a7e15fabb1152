"""What a test does to an embedded broker beside being its client: its clock, and what it does wrong.

    broker.clock.advance(timedelta(minutes=30))
    vhost.faults.add("confirm_nack", routing_key="orders.*", times=3)

Everything is done by the broker's own thread, between two reads.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from amqp_broker.broker.faults import Rule

if TYPE_CHECKING:
    from amqp_broker.testing.embedded import EmbeddedBroker


class EmbeddedClock:
    """The clock of a broker (docs/clock.md)."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self._broker = broker

    def now_ms(self) -> int:
        """What time it is for the broker (ms since the epoch)."""
        return self._broker.ask(lambda server: server.clock.now())

    def advance(self, duration: timedelta | int) -> None:
        """Let time pass, in ms if it is a number: what falls due in between happens at its own time, and in order.

        Raises ValueError for time that would go back.
        """
        duration_ms = duration // timedelta(milliseconds=1) if isinstance(duration, timedelta) else duration
        self._broker.ask(lambda server: server.ticking.advance(duration_ms))

    def freeze(self) -> None:
        """Let time stand still until it is resumed; `advance` moves it all the same."""
        self._broker.ask(lambda server: server.ticking.freeze())

    def resume(self) -> None:
        """Let time run on from where it stands."""
        self._broker.ask(lambda server: server.ticking.resume())


class EmbeddedFaults:
    """What a broker does wrong on purpose (docs/faults.md), in one vhost or (None) wherever a rule says."""

    def __init__(self, broker: EmbeddedBroker, vhost: str | None = None) -> None:
        self._broker = broker
        self._vhost = vhost

    def add(self, action: str, **fields: Any) -> Rule:
        """Have a rule in force from now on; its `hits` count on.

        Raises InvalidParameter for one that makes no sense, and TypeError for a field that there is not.
        """
        if self._vhost is not None:
            fields.setdefault("vhost", self._vhost)
        return self._broker.ask(lambda server: server.broker.faults.add(Rule(action, **fields)))

    def remove(self, rule: Rule) -> None:
        """End a rule, and what it does to connections."""
        self._broker.ask(lambda server: server.broker.faults.remove(rule.id))

    def clear(self) -> None:
        """Remove all rules, or those of the vhost."""
        self._broker.ask(lambda server: server.broker.faults.clear(self._vhost))
