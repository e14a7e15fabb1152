from __future__ import annotations

from typing import Any

import pytest

from tests.management.asking import Desk


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.lab.broker.now = desk.lab.now
    return desk


def test_a_nemesis_begins_works_and_ends(desk: Desk) -> None:
    status, begun = desk.ask("POST", "/_broker/nemesis/%2F", {"seed": 7, "pace_ms": 100, "actions": ["drop_ack"]})
    assert (status, begun["seed"], begun["is_over"], begun["strokes"]) == (201, 7, False, [])
    assert desk.lab.broker.event_logs.of(desk.lab.vhost) is not None
    desk.lab.advance(1000)
    state = desk.get("/_broker/nemesis/%2F")[1]
    assert state["stroke_count"] == len(state["strokes"]) > 2
    assert {stroke["fault"]["action"] for stroke in state["strokes"]} == {"drop_ack"}
    assert desk.ask("DELETE", "/_broker/nemesis/%2F")[0] == 204
    assert desk.get("/_broker/nemesis/%2F")[1]["is_over"] is True
    assert desk.get("/_broker/faults") == (200, [])


def test_a_broker_without_a_nemesis_says_so(desk: Desk) -> None:
    for method in ("GET", "DELETE"):
        status, answer = desk.ask(method, "/_broker/nemesis/%2F")
        assert (status, answer) == (404, "no nemesis in vhost '/'")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"pace_ms": 1}, "pace_ms must be a whole number from 10 to 604800000, not 1"),
        ({"pace_ms": "fast"}, "pace_ms must be a whole number"),
        ({"actions": ["refuse"]}, "a nemesis has no action 'refuse', but confirm_nack"),
        ({"actions": "cut"}, "actions must be a list of actions"),
        ({"seeds": 1}, "seeds"),
    ],
    ids=str,
)
def test_an_impossible_nemesis_is_refused(desk: Desk, body: dict[str, Any], reason: str) -> None:
    status, answer = desk.ask("POST", "/_broker/nemesis/%2F", body)
    assert status == 400
    assert reason in answer


def test_a_second_nemesis_is_refused(desk: Desk) -> None:
    desk.ask("POST", "/_broker/nemesis/%2F", {"seed": 1})
    status, answer = desk.ask("POST", "/_broker/nemesis/%2F", {})
    assert (status, answer) == (400, "a nemesis is at work in vhost '/', with seed 1")


def test_the_history_is_counted_and_checked(desk: Desk) -> None:
    status, answer = desk.get("/_broker/history/%2F")
    assert (status, answer) == (
        400,
        "vhost '/' has no event log: start one by PUT /_broker/event-log",
    )
    desk.ask("PUT", "/_broker/event-log", {})
    peer = desk.lab.connect()
    peer.declare("q")
    peer.publish("q", b"x")
    status, history = desk.get("/_broker/history/%2F")
    assert (status, history["published"], history["ready"], history["breach_count"]) == (200, 1, 1, 0)
