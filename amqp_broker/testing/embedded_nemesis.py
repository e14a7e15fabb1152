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
    from amqp_broker.server.server import Server
    from amqp_broker.testing.embedded_broker import EmbeddedBroker


class EmbeddedNemesis:
    """The nemesis of a block. `strokes` and `history` have what it did and the check (docs/nemesis.md), at the end."""

    def __init__(self, broker: EmbeddedBroker, vhost: str, seed: int) -> None:
        self._broker = broker
        self._vhost = vhost
        self.seed = seed
        self.strokes: list[dict[str, Any]] = []
        self.history: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<EmbeddedNemesis seed={self.seed} of vhost {self._vhost!r}>"

    def end(self) -> None:
        """End the faults, and check the history; the end of the block does the same."""
        self.strokes, self.history = self._broker.ask(self._end)

    def _end(self, server: Server) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        core = server.broker
        nemesis = core.faults.nemeses[self._vhost]
        nemesis.end()
        log = core.event_logs.of(nemesis.vhost)
        assert log is not None
        return nemesis.as_dict()["strokes"], finished(HistoryCheck(log).run())

    def text(self) -> str:
        """Return the seed, a line for each stroke, and the history."""
        strokes = [stroke_line(stroke) for stroke in self.strokes]
        return "\n".join([f"nemesis with seed {self.seed}:", *strokes, *history_lines(self.history)])


@contextlib.contextmanager
def nemesis_of(
    broker: EmbeddedBroker, vhost: str, seed: int | None, pace_ms: int, actions: Sequence[str]
) -> Iterator[EmbeddedNemesis]:
    """Have a nemesis at work for the duration of the block.

    Raise InvalidParameter for impossible values, and AssertionError at the end for a breach. An error in the block gets
    a note with the strokes.
    """

    def begin(server: Server) -> int:
        core = server.broker
        owner = core.vhost(vhost)
        if core.event_logs.of(owner) is None:
            core.event_logs.start(owner)
        return core.faults.begin_nemesis(
            owner, seed=seed, duration_ms=TIME_MAX_MS, pace_ms=pace_ms, actions=actions
        ).seed

    nemesis = EmbeddedNemesis(broker, vhost, broker.ask(begin))
    try:
        yield nemesis
    except Exception as error:
        if broker.is_running:
            nemesis.end()
            error.add_note(nemesis.text())
        raise
    nemesis.end()
    if nemesis.history["breach_count"]:
        raise AssertionError(nemesis.text())
