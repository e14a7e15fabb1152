"""Results by chapter, and transcripts side by side."""

from __future__ import annotations

from amqp_broker.conformance.judging import Judged, Verdict
from amqp_broker.conformance.lab import Scenario
from amqp_broker.conformance.results import Results, Row, sentence_of, side_by_side
from amqp_broker.conformance.scenarios import ttl


def judged(name: str, area: str, verdict: Verdict, reason: str = "") -> Judged:
    return Judged(Scenario(name, area, print), verdict, reason)


RESULTS = Results(
    "X 1.0 at amqp://localhost/",
    "RabbitMQ 4.3.6",
    1.0,
    [
        judged("b", "ttl", Verdict.DIFFERS),
        judged("a", "ttl", Verdict.AGREES),
        judged("c", "at_least_once", Verdict.SKIPPED, "no quorum queues"),
        judged("d", "at_least_once", Verdict.SKIPPED, "no streams"),
        judged("e", "at_least_once", Verdict.SKIPPED, "no streams"),
    ],
)


def test_chapters_are_sorted_and_say_what_they_are_about() -> None:
    once, ttls = RESULTS.chapters()
    assert (once.title, ttls.title) == ("At least once", "Ttl")
    assert [one.scenario.name for one in ttls.judged] == ["a", "b"]
    assert ttls.about
    assert ttls.about in " ".join((ttl.__doc__ or "").split())
    assert [ttls.count(verdict) for verdict in Verdict] == [1, 1, 0]


def test_reasons_to_skip_are_counted() -> None:
    assert RESULTS.reasons_to_skip() == [("no streams", 2), ("no quorum queues", 1)]
    assert RESULTS.has_differences
    assert not Results("", "").has_differences


def test_a_name_is_a_sentence() -> None:
    assert sentence_of(Scenario("a_queue_is_gone", "area", print)) == "A queue is gone"
    assert sentence_of(Scenario("classic queue: x-max_a", "area", print)) == "Classic queue: x-max_a"


def test_equal_lines_are_beside_each_other() -> None:
    rows = list(side_by_side(["a", "b", "c"], ["a", "x", "y", "c", "d"]))
    assert rows == [Row("a", "a"), Row("b", "x"), Row(None, "y"), Row("c", "c"), Row(None, "d")]
    assert [row.differs for row in rows] == [False, True, True, False, True]
