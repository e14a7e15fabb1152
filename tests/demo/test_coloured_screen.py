from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console, RenderableType

from amqp_broker.demo import coloured_screen
from amqp_broker.demo.ledger import CONFIRMED, IN_FLIGHT, LOST, NOT_SENT, RETRIED
from tests.demo.shown_figures import EVENTS, RESULT

FIGURES: dict[str, Any] = {
    "strategy": "async",
    "sentence": "publishes on",
    "messages": 10,
    "window": 4,
    "sent": 7,
    "confirmed": 5,
    "in_flight": 2,
    "median_ms": 1.25,
    "p99_ms": 205.0,
    "retries": {"nacked": 2},
    "connection": "open",
    "connects": 2,
    "elapsed_ms": 400.0,
    "pulse": [1, 0, 2, 2],
    "grid": CONFIRMED * 3 + RETRIED * 2 + LOST + IN_FLIGHT * 2 + NOT_SENT * 2,
    "plan": EVENTS,
    "results": [],
}


def drawn(shown: RenderableType, width: int = 100) -> list[str]:
    """Return the lines of a drawing without its colours."""
    console = Console(file=io.StringIO(), width=width, height=40, color_system=None)
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_the_live_view_shows_all_figures() -> None:
    assert drawn(coloured_screen.live(FIGURES, 100, 40)) == [
        "async publishes on",
        "confirmed   " + "━" * 15 + " " * 16 + "5 of 10",
        "in flight   " + "━" * 15 + " " * 16 + "2 of 4",
        "confirms    ▄ ██ 20/s".replace("▄", "▅"),
        "faults      ▲  ▲",
        "latency     median 1.2 ms, p99 205 ms",
        "retries     2: 2 nacked",
        "connection  open, connected 2 times",
        "messages    ✓✓✓↻↻✗▶▶··",
        "            ✓ confirmed  ▶ in flight  ↻ confirmed after a retry  ✗ not confirmed  · to come",
        "✓ the broker is killed",
        "▶ the broker nacks 6 publishes: 2 of 6",
        "· the broker loses 3 confirms, before message 30",
    ]


@pytest.mark.parametrize("width", [30, 60, 100, 200])
@pytest.mark.parametrize("height", [14, 24, 50])
def test_the_live_view_fits_the_terminal(width: int, height: int) -> None:
    figures = {**FIGURES, "pulse": [3] * 900, "grid": CONFIRMED * 1000, "plan": EVENTS * 4}
    lines = drawn(coloured_screen.live(figures, width, height), width)
    assert all(len(line) <= width for line in lines)
    assert len(lines) <= max(height, 16)


def test_a_long_run_shares_columns() -> None:
    pulse = [1] * 100 + [3] * 100
    assert coloured_screen.sparkline(pulse, 28).plain == "▃" * 10 + "█" * 10 + " 30/s"
    event = {"began_ms": 10_000.0}
    assert coloured_screen.fault_marks([event], len(pulse), 28).plain == " " * 10 + "▲"


def test_many_messages_share_marks_that_show_the_worst() -> None:
    states = (CONFIRMED * 9 + LOST) + CONFIRMED * 10 + (CONFIRMED * 9 + IN_FLIGHT) + NOT_SENT * 20
    assert coloured_screen.grid(states, 1).plain == "\n".join("✗✓▶··")


def test_the_strategies_stand_side_by_side() -> None:
    lines = [line.split() for line in drawn(coloured_screen.comparison([RESULT], FIGURES))]
    assert lines[0] == ["naive", "▶", "async"]
    assert ["took", "4.2", "s", "0.4", "s"] in lines
    assert ["lost", "2", "…"] in lines
    assert lines[-1] == ["promise", "nothing", "…"]
    assert drawn(coloured_screen.comparison([{**RESULT, "lost": {}}]))[-1].split() == ["promise", "✓", "held"]
    assert drawn(coloured_screen.comparison([{**RESULT, "is_held": False}]))[-1].split() == ["promise", "✗", "broken"]


def test_the_comparison_is_below_the_strategy_that_runs() -> None:
    both = drawn(coloured_screen.live({**FIGURES, "results": [RESULT]}, 100, 40))
    assert both[-11].split() == ["naive", "▶", "async"]
    alone = {**FIGURES, "results": [{**RESULT, "strategy": "async"}]}
    assert drawn(coloured_screen.live(alone, 100, 40))[-1].startswith("· the broker")


def test_the_verdict_has_a_mark() -> None:
    assert (
        drawn(coloured_screen.verdict(RESULT))[-1]
        == "It had promised nothing about losses; what was confirmed is there."
    )
    held = {**RESULT, "lost": {}}
    assert drawn(coloured_screen.verdict(held))[-1] == "✓ Held: at most once; what was confirmed is there."
    broken = {**RESULT, "is_held": False, "breaches": ("it is lost",)}
    assert drawn(coloured_screen.verdict(broken))[-1] == "✗ Broken: at most once."
