from __future__ import annotations

from xml.etree import ElementTree

import pytest

from amqp_broker.pipeline.plots import HEIGHT, Chart, Without, nice, path_of, shown, time_text, values_of

START = 1_790_000_040_000
STEP = 5000


def test_a_chart_is_well_formed_and_names_its_lines() -> None:
    lines = {"a <b>": {START: 1.0, START + STEP: 3.0}, "c": {START: 2.0}}
    svg = Chart("Title & more", "ms", STEP, lines).svg()
    figure = ElementTree.fromstring(svg)
    assert figure.findtext("figcaption") == "Title & more "
    assert [span.text for span in figure.iter("span")] == ["a <b>", "c"]
    assert len(figure.findall("svg/path")) == 1
    assert len(figure.findall("svg/circle")) == 1


def test_an_empty_chart_says_so() -> None:
    assert "nothing" in Chart("t", "ms", STEP, {"a": {}}).svg()


def test_an_interval_without_a_value_is_a_gap_or_a_zero() -> None:
    line = {START + STEP * number: 1.0 for number in (0, 1, 4, 5)}
    [gap] = ElementTree.fromstring(Chart("t", "ms", STEP, {"a": line}).svg()).findall("svg/path")
    [zero] = ElementTree.fromstring(Chart("t", "ms", STEP, {"a": line}, without=Without.ZERO).svg()).findall("svg/path")
    assert (gap.get("d", "").count("M"), gap.get("d", "").count("L")) == (2, 2)
    assert (zero.get("d", "").count("M"), zero.get("d", "").count("L")) == (1, 5)
    assert path_of([1.0, 0.0, 2.0], 2.0).count("M") == 1


def test_a_depth_remains_until_the_next_one() -> None:
    line = {START + STEP: 3.0, START + 3 * STEP: 1.0}
    places = range(START, START + 5 * STEP, STEP)
    assert values_of(line, places, Without.LAST) == [0, 3, 3, 1, 1]


def test_a_value_between_gaps_is_a_point() -> None:
    assert path_of([1.0, None, 2.0], 2.0) == ""
    figure = ElementTree.fromstring(Chart("t", "ms", STEP, {"one": {START: 7.0}, "two": {START: 3.0}}).svg())
    assert figure.findall("svg/path") == []
    points = figure.findall("svg/circle")
    assert [point.findtext("title") for point in points] == ["one: 7", "two: 3"]
    assert float(points[0].get("cy", "0")) < float(points[1].get("cy", "0")) < HEIGHT


@pytest.mark.parametrize(
    ("step_ms", "span_ms", "text"),
    [
        (100, 1000, "14:14:00.3"),
        (5000, 60_000, "14:14:00"),
        (60_000, 3_600_000, "14:14"),
        (3_600_000, 100_000_000, "09-21 14:14"),
        (86_400_000, 86_400_000, "2026-09-21"),
    ],
)
def test_an_axis_has_times_as_exact_as_its_step(step_ms: int, span_ms: int, text: str) -> None:
    assert time_text(START + 300, step_ms, span_ms) == text


@pytest.mark.parametrize(("value", "top"), [(0, 1), (0.03, 0.05), (1, 1), (3, 5), (70, 100), (101, 200)])
def test_an_axis_ends_with_a_round_number(value: float, top: float) -> None:
    assert nice(value) == pytest.approx(top)


@pytest.mark.parametrize(("value", "text"), [(0.1234567, "0.1235"), (9999, "9999"), (25_000, "25k"), (2e6, "2M")])
def test_a_number_is_shown_with_few_digits(value: float, text: str) -> None:
    assert shown(value) == text
