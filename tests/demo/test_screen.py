from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.demo import screen
from tests.demo.shown_figures import EVENTS, RESULT

TOLD: dict[str, Any] = {
    "strategy": "async",
    "sentence": "publishes on",
    "messages": 100,
    "window": 10,
    "confirmed": 50,
    "in_flight": 5,
    "median_ms": 1.25,
    "p99_ms": 205.0,
    "retries": {"nacked": 2, "returned": 1},
    "connection": "open",
    "connects": 2,
    "plan": EVENTS,
}


def test_the_live_view_shows_all_figures() -> None:
    assert screen.live(TOLD, 100, 40) == [
        "async: publishes on",
        "confirmed   [###############...............] 50 of 100",
        "in flight   [###############...............] 5 of 10",
        "latency     median 1.2 ms, p99 205 ms",
        "retries     3: 2 nacked, 1 returned",
        "connection  open, connected 2 times",
        "x the broker is killed",
        "> the broker nacks 6 publishes: 2 of 6",
        ". the broker loses 3 confirms, before message 30",
    ]


@pytest.mark.parametrize("height", [1, 3, 7, 8, 9, 100])
@pytest.mark.parametrize("width", [1, 10, 32, 40, 200])
def test_the_live_view_fits_any_terminal(width: int, height: int) -> None:
    lines = screen.live(TOLD, width, height)
    assert 1 <= len(lines) <= height
    assert all(len(line) <= width for line in lines)


def test_a_low_terminal_shows_the_current_event() -> None:
    assert screen.live(TOLD, 100, 7)[-1] == "> the broker nacks 6 publishes: 2 of 6"


def test_a_narrow_terminal_shows_numbers_without_bars() -> None:
    assert screen.live(TOLD, 30, 40)[1] == "confirmed   50 of 100"


def test_without_a_window_there_is_no_bar() -> None:
    assert screen.live({**TOLD, "window": None}, 100, 40)[2] == "in flight   5, not waited for"


def test_each_event_is_a_line_once() -> None:
    first = list(screen.new_lines(TOLD, None))
    assert first == [
        "async publishes on.",
        "  before message 10: the broker is killed.",
        "  before message 20: the broker nacks 6 publishes.",
        "  connected again, with 50 of 100 confirmed.",
    ]
    assert list(screen.new_lines(TOLD, TOLD)) == []
    assert list(screen.new_lines({**TOLD, "connects": 3}, TOLD)) == ["  connected again, with 50 of 100 confirmed."]
    assert next(screen.new_lines({**TOLD, "strategy": "sync"}, TOLD)) == "sync publishes on."


def test_the_verdict_gives_the_reasons_of_losses() -> None:
    assert screen.verdict(RESULT) == [
        "naive: 10 messages, published 10 times, 7 confirmed; median 1.0 ms, p99 -.",
        "  In the queue: 8 of them, and 0 duplicates.",
        "  Lost: 2 (2 nacked).",
        "  It had promised nothing about losses; what was confirmed is there.",
    ]


def test_a_promise_is_held_if_nothing_is_lost_that_it_was_about() -> None:
    kept = "  Held: at most once; what was confirmed is there."
    assert screen.verdict({**RESULT, "lost": {}, "distinct": 10})[-1] == kept
    assert screen.verdict({**RESULT, "promises_delivery": True})[-1] == kept


def test_the_verdict_names_the_breaches() -> None:
    broken = {**RESULT, "is_held": False, "breaches": ("message 3 was acked, and is in the queue 0 times",)}
    assert screen.verdict(broken)[-2:] == [
        "  Wrong: message 3 was acked, and is in the queue 0 times.",
        "  Broken: at most once.",
    ]


def test_the_table_compares_the_strategies() -> None:
    head, row = screen.table([RESULT])
    assert " ".join(head.split()) == (
        "strategy took sent confirmed retries in queue duplicates lost median p99 promise"
    )
    assert " ".join(row.split()) == "naive 4.2 s 10 7 0 8 0 2 1.0 ms - nothing"
