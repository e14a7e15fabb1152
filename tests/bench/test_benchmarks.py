"""Medians, advantages and goals."""

from __future__ import annotations

from dataclasses import replace

from bench.benchmarks import ROWS
from bench.generator import Outcome
from bench.row import RATE, REAL, REPEATED, SECONDS, Goal, Row, Sample, cpu_advantage, median
from bench.side_by_side import sample_of

SPEED = Row("speed", "speed", RATE)
START = Row("start", "start", SECONDS)


def test_each_figure_has_its_own_median() -> None:
    samples = [Sample(1.0, cpu_us=9.0), Sample(3.0, cpu_us=7.0), Sample(2.0)]
    assert median(samples) == Sample(2.0, cpu_us=8.0)


def test_more_is_better_for_rates_and_less_for_times() -> None:
    assert SPEED.advantage(Sample(300.0), Sample(100.0)) == 3
    assert START.advantage(Sample(0.2), Sample(5.0)) == 25


def test_without_rabbitmq_there_is_no_advantage() -> None:
    assert SPEED.advantage(Sample(300.0), None) is None
    assert cpu_advantage(SPEED, Sample(300.0, cpu_us=2.0), None) is None
    assert cpu_advantage(SPEED, Sample(300.0, cpu_us=2.0), Sample(100.0, cpu_us=12.0)) == 6


def test_a_goal_is_a_minimum_or_a_maximum() -> None:
    assert Goal("", Row.advantage, at_least=3).is_met(3.0)
    assert not Goal("", Row.advantage, at_least=3).is_met(2.9)
    assert Goal("", Row.advantage, below=0.4).is_met(0.3)
    assert not Goal("", Row.advantage, below=0.4).is_met(0.4)


def test_the_compiled_build_has_goals_of_its_own() -> None:
    own, both = Goal("own", Row.advantage, at_least=8), Goal("both", Row.advantage, at_least=2)
    row = replace(SPEED, goals=(both,), compiled_goals=(own,))
    assert row.goals_of("amqp-broker compiled") == (own,)
    assert row.goals_of("amqp-broker") == (both,)
    assert replace(SPEED, goals=(both,)).goals_of("amqp-broker compiled") == (both,)


def test_each_row_of_real_messages_has_a_shape() -> None:
    real = [row for row in ROWS if row.group == REAL]
    assert len(real) > 10
    assert all(row.load is not None and row.load.shape for row in real)


def test_each_row_of_one_message_has_no_shape() -> None:
    assert [row.name for row in ROWS if row.group == REPEATED and row.load and row.load.shape] == []


def test_row_names_are_unique() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_without_consumers_the_rate_is_that_of_publishing() -> None:
    outcome = Outcome(
        sent=500,
        confirmed=500,
        received=0,
        is_complete=True,
        seconds=0.5,
        publish_rate=1000,
        receive_rate=0,
        latency_p50_us=None,
        latency_p99_us=None,
        latency_p999_us=None,
        latency_max_us=None,
        own_cpu_us_per_message=1,
        own_cpu_share=0.1,
        broker_cpu_us_per_message=2,
        elsewhere_share=0,
    )
    assert sample_of(outcome, SPEED).value == 1000
    assert sample_of(replace(outcome, received=5000, receive_rate=10_000), SPEED).value == 10_000
