"""A nemesis for a test: faults that a seed draws while a block runs, and a check of the history.

with amqp_vhost.nemesis(seed=7, pace_ms=200):
    run_the_application()
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from amqp_broker.broker.lab.fault_rules import TIME_MAX_MS
from amqp_broker.broker.lab.nemesis import stroke_line
from amqp_broker.broker.observe.history_check import HistoryCheck, history_lines
from amqp_broker.broker.scheduling.portions import finished

if TYPE_CHECKING:
    from amqp_broker.broker.lab.nemesis import Nemesis
    from amqp_broker.server.server import Server
    from amqp_broker.testing.embedded_broker import EmbeddedBroker


class EmbeddedNemesis:
    """The nemesis of a block. `strokes` and `history` have what it did and the check (docs/nemesis.md), at the end."""

    def __init__(self, broker: EmbeddedBroker, nemesis: Nemesis) -> None:
        self._broker = broker
        self._nemesis = nemesis
        self.seed = nemesis.seed
        self.strokes: list[dict[str, Any]] = []
        self.history: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<EmbeddedNemesis seed={self.seed} of vhost {self._nemesis.vhost.name!r}>"

    def end(self) -> None:
        """End the faults, and check the history; the end of the block does the same."""
        self._broker.ask(self._end)

    def _end(self, server: Server) -> None:
        self._nemesis.end()
        self.strokes = self._nemesis.as_dict()["strokes"]
        vhost = self._nemesis.vhost
        log = server.broker.event_logs.of(vhost)
        # The vhost may be deleted, and its log stopped.
        if log is not None and log.vhost is vhost:
            self.history = finished(HistoryCheck(log).run())

    def text(self) -> str:
        """Return the seed, a line for each stroke, and the history."""
        strokes = [stroke_line(stroke) for stroke in self.strokes]
        history = (
            history_lines(self.history) if self.history else ["The event log is gone: the history was not checked."]
        )
        return "\n".join([f"nemesis with seed {self.seed}:", *strokes, *history])


@contextlib.contextmanager
def nemesis_of(
    broker: EmbeddedBroker, vhost: str, seed: int | None, pace_ms: int, actions: Sequence[str]
) -> Iterator[EmbeddedNemesis]:
    """Have a nemesis at work for the duration of the block.

    Raise InvalidParameter for impossible values, and AssertionError at the end for a breach. An error in the block gets
    a note with the strokes.
    """

    def begin(server: Server) -> Nemesis:
        core = server.broker
        owner = core.vhost(vhost)
        if core.event_logs.of(owner) is None:
            core.event_logs.start(owner)
        return core.faults.begin_nemesis(owner, seed=seed, duration_ms=TIME_MAX_MS, pace_ms=pace_ms, actions=actions)

    nemesis = EmbeddedNemesis(broker, broker.ask(begin))
    try:
        yield nemesis
    except Exception as error:
        if broker.is_running:
            nemesis.end()
            error.add_note(nemesis.text())
        raise
    nemesis.end()
    if not nemesis.history or nemesis.history["breach_count"]:
        raise AssertionError(nemesis.text())
