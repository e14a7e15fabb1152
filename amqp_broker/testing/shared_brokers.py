"""Brokers that tests share: each test leaves their fault rules as it found them.

A frozen clock runs again after the test. The time stays: after a step back, the periodic timers of a broker would wait
for as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from amqp_broker.broker.lab.fault_rules import Rule
    from amqp_broker.server.server import Server
    from amqp_broker.testing.embedded_broker import EmbeddedBroker


class Found(NamedTuple):
    """The fault rules of a broker, and whether its clock is frozen."""

    rules: frozenset[Rule]
    is_frozen: bool


def look(broker: EmbeddedBroker) -> Found:
    """Return what a test finds."""
    return broker.ask(lambda server: Found(frozenset(server.broker.faults), server.clock.is_frozen))


def restore(broker: EmbeddedBroker, found: Found) -> None:
    """Remove the fault rules that were not found, and let the clock run if it ran. A broker may have stopped."""

    def put_back(server: Server) -> None:
        for rule in server.broker.faults:
            # A rule goes together with the one that it follows.
            if rule not in found.rules and rule.id:
                server.broker.faults.remove(rule.id)
        if not found.is_frozen:
            server.ticking.resume()

    if broker.is_running:
        broker.ask(put_back)


@contextmanager
def left_as_found(broker: EmbeddedBroker) -> Iterator[None]:
    """Leave a broker at the end of the block as it was at its beginning."""
    found = look(broker)
    try:
        yield
    finally:
        restore(broker, found)


class SharedBrokers:
    """The brokers of a run of pytest that tests share, and what the running test has found there."""

    def __init__(self) -> None:
        self._found: dict[EmbeddedBroker, Found] = {}

    def add(self, broker: EmbeddedBroker) -> None:
        self._found[broker] = look(broker)

    def begin_test(self) -> None:
        self._found.update(self.looks())

    def end_test(self) -> None:
        for broker, found in self._found.items():
            restore(broker, found)

    def looks(self) -> dict[EmbeddedBroker, Found]:
        """Return the present state of the brokers that run."""
        return {broker: look(broker) for broker in self._found if broker.is_running}

    def keep(self, before: dict[EmbeddedBroker, Found]) -> None:
        """Keep what has changed since `before`: a fixture that outlives the test has done so."""
        for broker, now in self.looks().items():
            found = self._found[broker]
            then = before.get(broker, found)
            is_frozen = found.is_frozen if now.is_frozen == then.is_frozen else now.is_frozen
            self._found[broker] = Found(found.rules | (now.rules - then.rules), is_frozen)
