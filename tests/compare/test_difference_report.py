from __future__ import annotations

import json

from amqp_broker.compare.difference_report import SHOWN_ALIKE_MAX, Difference, DifferenceReport


def difference(number: int = 1, local: str = "b") -> Difference:
    return Difference(number, "shop", 1, f"basic.publish {number}", "a", local)


def test_similar_differences_are_all_counted_but_not_all_shown() -> None:
    lines: list[str] = []
    report = DifferenceReport(lines.append)
    for number in range(100):
        report.add(difference(number))
    report.add(difference(local="c"))
    assert len(lines) == SHOWN_ALIKE_MAX + 2
    assert report.differences_count == len(report.differences) == 101


def test_the_summary_has_the_counts() -> None:
    report = DifferenceReport(lambda line: None)
    assert report.summary == "0 connections, 0 methods compared, 0 differences"
    report.connections_count = report.compared_count = 1
    report.add(difference())
    assert report.summary == "1 connection, 1 method compared, 1 difference"


def test_a_difference_that_the_upstreams_version_explains_is_counted_apart() -> None:
    report = DifferenceReport(lambda line: None, "3.10.8")
    upstream = "connection.close reply_code=540 reply_text='basic.nack not supported by stream queue'"
    report.add(Difference(1, "", 0, "", upstream, "nothing"))
    assert report.differences_count == 0
    assert report.summary.endswith("1 more explained: A nack to a stream is credit")


def test_json_has_all_differences() -> None:
    report = DifferenceReport(lambda line: None)
    report.add(difference())
    found = json.loads(json.dumps(report.as_json()))
    assert found["differences_count"] == 1
    assert found["differences"][0]["client"] == "shop"
