from __future__ import annotations

import pytest

from tests.management.asking import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_trace_is_started_and_stopped(desk: Desk) -> None:
    assert desk.ask("PUT", "/_broker/trace/%2F")[0] == 204
    assert desk.broker.vhosts["/"].trace is not None
    assert desk.ask("DELETE", "/_broker/trace/%2F")[0] == 204
    assert desk.broker.vhosts["/"].trace is None
    assert desk.ask("PUT", "/_broker/trace/nowhere")[0] == 404


def test_a_trace_is_extended_only_on_request(desk: Desk) -> None:
    assert desk.get("/_broker/trace/%2F")[1] == {"is_on": False, "extended": False}
    assert desk.ask("PUT", "/_broker/trace/%2F")[0] == 204
    assert desk.get("/_broker/trace/%2F")[1] == {"is_on": True, "extended": False}
    assert desk.ask("PUT", "/_broker/trace/%2F", {"extended": True})[0] == 204
    assert desk.get("/_broker/trace/%2F")[1] == {"is_on": True, "extended": True}
    for wrong in ({"extended": "yes"}, {"queue": "q"}):
        assert desk.ask("PUT", "/_broker/trace/%2F", wrong)[0] == 400
