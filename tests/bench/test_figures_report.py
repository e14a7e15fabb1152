"""Tables have the measured figures, and omit the others."""

from __future__ import annotations

from bench.figures_report import as_json, comparison_table, flat_table, goals_table
from bench.flat import FlatFigures, FlatRow, Variant
from bench.generator import Load
from bench.row import RATE, REFERENCE, Goal, Row, Sample
from bench.side_by_side import Figures

ROW = Row("speed", "16 B", RATE, Load(), (Goal("at least 3 x", Row.advantage, at_least=3),))
FLAT = FlatRow("queues", "to", (Variant("1 queue", Load()), Variant("10 queues", Load())))


def figures(amqp_broker: float, theirs: float | None) -> Figures:
    both = Figures()
    both.add(ROW, "amqp-broker", Sample(amqp_broker, cpu_us=2.0))
    if theirs is not None:
        both.add(ROW, REFERENCE, Sample(theirs, cpu_us=12.0))
    return both


def test_the_table_has_both_rates_and_the_advantage() -> None:
    line = comparison_table([ROW], ["amqp-broker", REFERENCE], figures(400_000, 100_000)).splitlines()[-1]
    assert line.split() == ["16", "B", "400", "k/s", "100", "k/s", "4.0x", "2.00", "12.00", "6.0x"]


def test_the_table_has_no_column_without_figures() -> None:
    header = comparison_table([ROW], ["amqp-broker", REFERENCE], figures(400_000, None)).splitlines()[0]
    assert header.split() == ["amqp-broker", "CPU", "µs/msg", "amqp-broker"]


def test_a_missed_goal_is_shown_and_reported() -> None:
    assert goals_table([ROW], "amqp-broker", figures(400_000, 100_000))[1]
    text, are_all_met = goals_table([ROW], "amqp-broker", figures(200_000, 100_000))
    assert "MISSED" in text
    assert not are_all_met


def test_a_goal_without_rabbitmq_is_neither_measured_nor_missed() -> None:
    text, are_all_met = goals_table([ROW], "amqp-broker", figures(200_000, None))
    assert "not measured" in text
    assert are_all_met


def test_settings_are_compared_with_the_first() -> None:
    flat = FlatFigures(
        {("queues", "1 queue"): [Sample(1.0, cpu_us=2.0)], ("queues", "10 queues"): [Sample(1.0, cpu_us=3.0)]}
    )
    text, is_flat = flat_table([FLAT], flat)
    assert "1.50x" in text
    assert not is_flat


def test_a_broker_that_is_busy_when_idle_misses_its_goal() -> None:
    samples = {("queues", title): [Sample(1.0, cpu_us=2.0)] for title in ("1 queue", "10 queues")}
    text, is_flat = flat_table(
        [FLAT], FlatFigures(samples, {("queues", "1 queue"): 0.0033, ("queues", "10 queues"): 0})
    )
    assert "0.3%" in text
    assert is_flat
    text, is_flat = flat_table([FLAT], FlatFigures(samples, {("queues", "1 queue"): 0.25}))
    assert "MISSED" in text
    assert not is_flat


def test_json_has_every_sample_and_failure() -> None:
    both = figures(400_000, 100_000)
    both.failures.append("speed, amqp-broker: why")
    saved = as_json([ROW], both, [FLAT], FlatFigures())
    assert saved["rows"]["speed"]["amqp-broker"] == {
        "median": {"value": 400_000, "cpu_us": 2.0},
        "samples": [{"value": 400_000, "cpu_us": 2.0}],
    }
    assert saved["failures"] == ["speed, amqp-broker: why"]
