from __future__ import annotations

import json
import re
from typing import Any

import pytest

from amqp_broker.pipeline.plots import Chart, Without, brief, shown, values_of

START = 1_790_000_040_000
STEP = 5000
STARTS = range(START, START + 5 * STEP, STEP)


def values_in(chart: Chart) -> Any:
    [found] = re.findall("<script[^>]*>(.*)</script>", chart.html())
    return json.loads(found)


def test_a_chart_has_its_values_as_json_which_no_name_ends() -> None:
    name = "</script><script>alert('&')"
    chart = Chart("Title & more", "ms", STARTS, {name: {START: 1.0, START + STEP: 3.25}, "c": {START: 2.0}})
    lines = [[name, [1, 3.25, None, None, None]], ["c", [2, None, None, None, None]]]
    assert values_in(chart) == {"start_ms": START, "step_ms": STEP, "lines": lines}
    assert "<figcaption>Title &amp; more " in chart.html()


def test_an_empty_chart_says_so() -> None:
    assert "nothing" in Chart("t", "ms", STARTS, {"a": {}}).html()


@pytest.mark.parametrize(
    ("without", "values"),
    [
        (Without.GAP, [None, 3, None, 1, None]),
        (Without.ZERO, [0, 3, 0, 1, 0]),
        (Without.LAST, [0, 3, 3, 1, 1]),
    ],
)
def test_an_interval_without_a_value_is_a_gap_a_zero_or_as_before(without: Without, values: list[float | None]) -> None:
    assert values_of({START + STEP: 3.0, START + 3 * STEP: 1.0}, STARTS, without) == values


def test_a_page_has_no_more_digits_than_a_plot_shows() -> None:
    assert [json.dumps(brief(value)) for value in (2.0, 1 / 3, 123456.7)] == ["2", "0.33333", "123460"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1234567, "0.1235"), (12, "12"), (999.96, "1000"), (25_000, "25,000"), (2_000_000.4, "2,000,000")],
)
def test_a_number_has_one_form(value: float, text: str) -> None:
    assert shown(value) == text
