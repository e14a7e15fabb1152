from __future__ import annotations

import json

from amqp_broker.compare.report import SHOWN_ALIKE_MAX, Difference, Report


def difference(number: int = 1, ours: str = "b") -> Difference:
    return Difference(number, "shop", 1, f"basic.publish {number}", "a", ours)


def test_differences_that_are_alike_are_counted_and_not_all_shown() -> None:
    lines: list[str] = []
    report = Report(lines.append)
    for number in range(100):
        report.add(difference(number))
    report.add(difference(ours="c"))
    assert len(lines) == SHOWN_ALIKE_MAX + 2
    assert report.differences_count == len(report.differences) == 101


def test_the_summary_has_the_counts() -> None:
    report = Report(lambda line: None)
    assert report.summary == "0 connections, 0 methods compared, 0 differences"
    report.connections_count = report.compared_count = 1
    report.add(difference())
    assert report.summary == "1 connection, 1 method compared, 1 difference"


def test_what_the_upstreams_age_explains_is_no_difference() -> None:
    report = Report(lambda line: None, "3.10.8")
    report.add(Difference(1, "", 0, "", "nothing", "connection.close reply_code=530 reply_text='negotiated frame_max'"))
    assert report.differences_count == 0
    assert report.summary.endswith("1 more explained: Limits that are refused are told")


def test_machines_read_all_of_it() -> None:
    report = Report(lambda line: None)
    report.add(difference())
    found = json.loads(json.dumps(report.as_json()))
    assert found["differences_count"] == 1
    assert found["differences"][0]["client"] == "shop"
