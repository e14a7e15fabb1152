"""The clock, faults and advice of an embedded broker, for its tests.

    broker.clock.advance(timedelta(minutes=30))
    vhost.faults.add("confirm_nack", routing_key="orders.*", times=3)

All methods run in the thread of the broker, between two reads of its sockets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from operator import index
from typing import TYPE_CHECKING, Any

from amqp_broker.broker.lab.durations import duration_ms
from amqp_broker.broker.lab.fault_rules import Rule

if TYPE_CHECKING:
    from amqp_broker.broker.clients.client_connection import Connection
    from amqp_broker.broker.lab.advice import Advice
    from amqp_broker.server.server import Server
    from amqp_broker.testing.embedded_broker import EmbeddedBroker


class EmbeddedClock:
    """The clock of a broker (docs/clock.md)."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self._broker = broker

    def __repr__(self) -> str:
        now_s = self.now_ms() / 1000 if self._broker.is_running else None
        moment = "not running" if now_s is None else datetime.fromtimestamp(now_s, UTC).isoformat(" ", "milliseconds")
        return f"<EmbeddedClock {moment}>"

    def now_ms(self) -> int:
        """Return the time of the broker in ms since the epoch."""
        return self._broker.ask(lambda server: server.clock.now())

    def advance(self, duration: timedelta | int | str) -> None:
        """Advance time by a timedelta, by ms, or by a text such as "30m" or "1h30m".

        Whatever falls due meanwhile happens in order, at its own time. Raise ValueError for a negative duration and for
        another text, and TypeError for one that is not whole.
        """
        if isinstance(duration, str):
            ms = duration_ms(duration)
        else:
            ms = duration // timedelta(milliseconds=1) if isinstance(duration, timedelta) else index(duration)
        self._broker.ask(lambda server: server.ticking.advance(ms))

    def freeze(self) -> None:
        """Stop the clock until `resume`; `advance` still moves it."""
        self._broker.ask(lambda server: server.ticking.freeze())

    def resume(self) -> None:
        """Let the clock run again from its current time."""
        self._broker.ask(lambda server: server.ticking.resume())


class EmbeddedFaults:
    """The fault rules of a broker (docs/faults.md): those of one vhost, or all (None)."""

    def __init__(self, broker: EmbeddedBroker, vhost: str | None = None) -> None:
        self._broker = broker
        self._vhost = vhost

    def __repr__(self) -> str:
        return f"<EmbeddedFaults {self._given() if self._broker.is_running else []}>"

    def _given(self) -> list[Rule]:
        """Return the rules of the vhost, or all."""
        return self._broker.ask(self._rules)

    def _rules(self, server: Server) -> list[Rule]:
        return [rule for rule in server.broker.faults if self._vhost in (None, rule.vhost)]

    def add(self, action: str, **fields: Any) -> Rule:
        """Add a fault rule and return it; its `hits` keep counting.

        Raise InvalidParameter for an invalid rule or an unknown field.
        """
        if self._vhost is not None:
            fields.setdefault("vhost", self._vhost)
        rule = Rule.from_mapping({"action": action, **fields})
        return self._broker.ask(lambda server: server.broker.faults.add(rule))

    def remove(self, rule: Rule) -> None:
        """Remove a rule and undo its effect on connections."""
        self._broker.ask(lambda server: server.broker.faults.remove(rule.id))

    def release(self, rule: Rule, count: int = 1) -> int:
        """Make the oldest deliveries that a rule `hold_delivery` holds, and the next ones if they are too few.

        Return how many it held. Raise InvalidParameter for another rule.
        """
        return self._broker.ask(lambda server: server.broker.faults.release(rule.id, count))

    def clear(self) -> None:
        """Remove the rules of the vhost, or all rules."""
        self._broker.ask(lambda server: server.broker.faults.clear(self._vhost))

    def verify(self) -> None:
        """Raise AssertionError if a rule of the vhost, or any rule, has never hit; it names what came closest."""
        if sentences := self._broker.ask(self.unused):
            raise AssertionError("\n".join(sentences))

    def unused(self, server: Server) -> list[str]:
        """Return a sentence for each rule that has never hit; to be called in the thread of the broker."""
        from amqp_broker.testing.unused_faults import unused

        vhosts = [vhost for name, vhost in self._broker.lent.items() if self._vhost in (None, name)]
        events = [event for vhost in vhosts for event in vhost.reported]
        connections = [one for one in server.broker.connections if self._vhost is None or _is_in(self._vhost, one)]
        methods = [sent for sent in server.broker.faults.methods if self._vhost in (None, sent.vhost)]
        return unused(self._rules(server), events, connections, methods)


def _is_in(vhost: str, connection: Connection) -> bool:
    """Return whether a connection is in the vhost, or in none yet."""
    return connection.vhost is None or connection.vhost.name == vhost


class EmbeddedAdvice:
    """The advice of a broker about its clients (docs/advice.md), in one vhost or in all (None).

    Iterating yields the current advice, oldest first.
    """

    def __init__(self, broker: EmbeddedBroker, vhost: str | None = None) -> None:
        self._broker = broker
        self._vhost = vhost

    def __iter__(self) -> Iterator[Advice]:
        return iter(self._broker.ask(self.given))

    def __len__(self) -> int:
        return len(self._broker.ask(self.given))

    def __repr__(self) -> str:
        return f"<EmbeddedAdvice {self.habits if self._broker.is_running else []}>"

    @property
    def habits(self) -> list[str]:
        """The names of the habits, without duplicates, in the order of their detection."""
        return list(dict.fromkeys(advice.habit.name for advice in self))

    def clear(self) -> None:
        """Discard the advice."""
        self._broker.ask(lambda server: server.broker.advice.clear(self._vhost))

    def given(self, server: Server) -> list[Advice]:
        """Return the current advice; to be called in the thread of the broker."""
        advisor = server.broker.advice
        advisor.scan_all()
        return [replace(advice) for advice in advisor if self._vhost in (None, advice.place.vhost)]
