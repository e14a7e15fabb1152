from __future__ import annotations

from xml.etree import ElementTree

import pytest

from amqp_broker.pipeline.plots import HEIGHT, POINTS_MAX, Chart, nice, path_of, shown, thinned

MINUTE = 1_790_000_040


def test_a_chart_is_well_formed_and_names_its_lines() -> None:
    lines = {"a <b>": {MINUTE: 1.0, MINUTE + 60: 3.0}, "c": {MINUTE: 2.0}}
    svg = Chart("Title & more", "ms", lines).svg()
    figure = ElementTree.fromstring(svg)
    assert figure.findtext("figcaption") == "Title & more "
    assert [span.text for span in figure.iter("span")] == ["a <b>", "c"]
    assert len(figure.findall("svg/path")) == 1
    assert len(figure.findall("svg/circle")) == 1


def test_an_empty_chart_says_so() -> None:
    assert "nothing" in Chart("t", "ms", {"a": {}}).svg()


def test_a_minute_without_a_value_is_a_gap_or_a_zero() -> None:
    line = {MINUTE: 1.0, MINUTE + 120: 2.0}
    places = range(MINUTE, MINUTE + 121, 60)
    assert thinned(line, places, 60, fills=False) == [1.0, None, 2.0]
    assert thinned(line, places, 60, fills=True) == [1.0, 0.0, 2.0]
    assert path_of([1.0, 1.0, None, 2.0, 2.0], 2.0).count("M") == 2
    assert path_of([1.0, 0.0, 2.0], 2.0).count("M") == 1


def test_a_value_between_gaps_is_a_point() -> None:
    assert path_of([1.0, None, 2.0], 2.0) == ""
    figure = ElementTree.fromstring(Chart("t", "ms", {"one": {MINUTE: 7.0}, "two": {MINUTE: 3.0}}).svg())
    assert figure.findall("svg/path") == []
    points = figure.findall("svg/circle")
    assert [point.findtext("title") for point in points] == ["one: 7", "two: 3"]
    assert float(points[0].get("cy", "0")) < float(points[1].get("cy", "0")) < HEIGHT


def test_a_long_time_span_keeps_the_largest_values() -> None:
    line = {MINUTE + 60 * number: float(number == 777) for number in range(10_000)}
    svg = Chart("t", "ms", {"a": line}).svg()
    assert svg.count("L") <= POINTS_MAX
    highest = 14.0
    assert f",{highest}" in svg
    assert highest < HEIGHT


@pytest.mark.parametrize(("value", "top"), [(0, 1), (0.03, 0.05), (1, 1), (3, 5), (70, 100), (101, 200)])
def test_an_axis_ends_with_a_round_number(value: float, top: float) -> None:
    assert nice(value) == pytest.approx(top)


@pytest.mark.parametrize(("value", "text"), [(0.1234567, "0.1235"), (9999, "9999"), (25_000, "25k"), (2e6, "2M")])
def test_a_number_is_shown_with_few_digits(value: float, text: str) -> None:
    assert shown(value) == text
