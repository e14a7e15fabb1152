"""What a test does with an embedded broker beside being its client: its clock, what it does wrong, what it advises.

    broker.clock.advance(timedelta(minutes=30))
    vhost.faults.add("confirm_nack", routing_key="orders.*", times=3)

Everything is done by the broker's own thread, between two reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from amqp_broker.broker.faults import Rule

if TYPE_CHECKING:
    from amqp_broker.broker.advice import Advice
    from amqp_broker.server.server import Server
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


class EmbeddedAdvice:
    """The habits that a broker has noticed (docs/advice.md), in one vhost or (None) everywhere.

    As a list it is what there is to say by now, oldest first.
    """

    def __init__(self, broker: EmbeddedBroker, vhost: str | None = None) -> None:
        self._broker = broker
        self._vhost = vhost

    def __iter__(self) -> Iterator[Advice]:
        return iter(self._broker.ask(self.given))

    def __len__(self) -> int:
        return len(self._broker.ask(self.given))

    @property
    def habits(self) -> list[str]:
        """The names of the habits, each once, in the order in which they were noticed."""
        return list(dict.fromkeys(advice.habit.name for advice in self))

    def clear(self) -> None:
        """Forget what was said."""
        self._broker.ask(lambda server: server.broker.advice.clear(self._vhost))

    def given(self, server: Server) -> list[Advice]:
        """The same, asked in the broker's own thread."""
        advisor = server.broker.advice
        advisor.look_at_all()
        return [replace(advice) for advice in advisor if self._vhost in (None, advice.place.vhost)]
