"""The trace and the firehose of a vhost over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.management.asking import Desk

PLACE = "/_broker/trace/%2F"
FIREHOSE = "/_broker/firehose/%2F"


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    for name, kind in (("trace", "stream"), ("q", "classic")):
        arguments = {"x-queue-type": kind}
        assert desk.ask("PUT", f"/api/queues/%2F/{name}", {"durable": True, "arguments": arguments})[0] == 201
    return desk


def test_the_firehose_is_started_and_stopped(desk: Desk) -> None:
    assert desk.ask("PUT", FIREHOSE)[0] == 204
    assert desk.get(PLACE)[1] == {"is_on": True, "queue": None}
    assert desk.ask("DELETE", FIREHOSE)[0] == 204
    assert desk.get(PLACE)[1] == {"is_on": False, "queue": None}
    assert desk.broker.vhosts["/"].trace is None
    assert desk.ask("PUT", "/_broker/firehose/nowhere")[0] == 404


def test_the_firehose_and_the_trace_are_stopped_separately(desk: Desk) -> None:
    tracing = desk.broker.vhosts["/"].tracing
    for stopped, states in ((FIREHOSE, (False, True)), (PLACE, (True, False))):
        assert desk.ask("PUT", FIREHOSE)[0] == desk.ask("PUT", PLACE, {"queue": "trace"})[0] == 204
        assert desk.ask("DELETE", stopped)[0] == 204
        assert (tracing.is_on, tracing.recorder is not None) == states


def test_a_trace_goes_to_a_stream(desk: Desk) -> None:
    selection = {"exchanges": ["", "amq.topic"], "queues": ["q"], "one_in": 3}
    assert desk.ask("PUT", PLACE, {"queue": "trace", **selection})[0] == 204
    assert desk.get(PLACE)[1] == {"is_on": False, "queue": "trace", "events": 0, **selection}
    assert desk.ask("DELETE", PLACE)[0] == 204
    assert desk.broker.vhosts["/"].trace is None


def test_amq_default_is_the_default_exchange(desk: Desk) -> None:
    assert desk.ask("PUT", PLACE, {"queue": "trace", "exchanges": ["amq.default"]})[0] == 204
    assert desk.get(PLACE)[1]["exchanges"] == [""]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"queue": "nope"}, "there is no queue 'nope' in vhost '/'"),
        ({"queue": "q"}, "queue 'q' is not a stream"),
        ({"queue": "trace", "queues": ["q", "nope"]}, "there is no queue 'nope' in vhost '/'"),
        ({"queue": "trace", "exchanges": ["nope"]}, "there is no exchange 'nope' in vhost '/'"),
    ],
)
def test_a_wrong_selection_is_refused(desk: Desk, options: dict[str, Any], reason: str) -> None:
    assert desk.ask("PUT", PLACE, options) == (400, reason)
    assert desk.broker.vhosts["/"].trace is None


@pytest.mark.parametrize("wrong", [{"queue": 1}, {"one_in": 0}, {"one_in": "2"}, {"queues": "q"}, {"extended": True}])
def test_invalid_options_are_refused(desk: Desk, wrong: dict[str, Any]) -> None:
    assert desk.ask("PUT", PLACE, {"queue": "trace", **wrong})[0] == 400
