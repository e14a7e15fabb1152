from __future__ import annotations

from amqp_broker.management.attention.finding import KINDS, LEVELS, Finding, counted


def test_findings_are_sorted_by_urgency_and_those_of_a_kind_by_time() -> None:
    given = [
        Finding("clock", "", ""),
        Finding("unroutable", "older", "", 1000),
        Finding("unroutable", "newer", "", 2000),
        Finding("alarm", "", "", 500),
    ]
    ordered = sorted(given, key=lambda finding: finding.rank())
    assert [finding.sentence or finding.kind for finding in ordered] == ["alarm", "newer", "older", "clock"]


def test_each_kind_has_one_level() -> None:
    assert sum(map(len, LEVELS.values())) == len(KINDS)
    assert Finding("alarm", "", "").level == "critical"
    assert Finding("clock", "", "").level == "notice"


def test_a_number_has_its_noun() -> None:
    assert counted(1, "message") == "1 message"
    assert counted(0.4, "message") == "0 messages"
    assert counted(2, "delivery", "deliveries") == "2 deliveries"
    assert counted(1234567, "message") == "1,234,567 messages"
