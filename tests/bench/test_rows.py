"""Medians, advantages and goals."""

from __future__ import annotations

from bench.rows import RATE, ROWS, SECONDS, Goal, Row, Sample, cpu_advantage, median

SPEED = Row("speed", "speed", RATE)
START = Row("start", "start", SECONDS)


def test_the_median_is_of_each_figure_for_itself() -> None:
    samples = [Sample(1.0, cpu_us=9.0), Sample(3.0, cpu_us=7.0), Sample(2.0)]
    assert median(samples) == Sample(2.0, cpu_us=8.0)


def test_more_is_better_for_rates_and_less_for_times() -> None:
    assert SPEED.advantage(Sample(300.0), Sample(100.0)) == 3
    assert START.advantage(Sample(0.2), Sample(5.0)) == 25


def test_without_rabbitmq_there_is_no_advantage() -> None:
    assert SPEED.advantage(Sample(300.0), None) is None
    assert cpu_advantage(SPEED, Sample(300.0, cpu_us=2.0), None) is None
    assert cpu_advantage(SPEED, Sample(300.0, cpu_us=2.0), Sample(100.0, cpu_us=12.0)) == 6


def test_a_goal_is_a_least_or_a_most() -> None:
    assert Goal("", Row.advantage, at_least=3).is_met(3.0)
    assert not Goal("", Row.advantage, at_least=3).is_met(2.9)
    assert Goal("", Row.advantage, below=0.4).is_met(0.3)
    assert not Goal("", Row.advantage, below=0.4).is_met(0.4)


def test_row_names_are_unique() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
