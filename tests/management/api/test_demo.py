from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amqp_broker.management.node.node import Demo
from tests.management.asking import Desk


class CountingDemo(Demo):
    """A demo that notes what it is asked for."""

    def __init__(self) -> None:
        self.given: list[Mapping[str, Any]] = []
        self.stops = 0

    def status(self) -> dict[str, Any]:
        return {"state": "running" if len(self.given) > self.stops else "none"}

    def start(self, given: Mapping[str, Any]) -> None:
        if given.get("seed") == -1:
            raise ValueError("seed is wrong")
        if self.status()["state"] == "running":
            raise RuntimeError("one runs")
        self.given.append(given)

    def stop(self) -> None:
        self.stops += 1


def test_without_a_demo_the_state_is_none() -> None:
    desk = Desk()
    assert desk.get("/_broker/demo") == (200, {"state": "none", "reason": "", "choices": None, "figures": None})
    status, reason = desk.ask("POST", "/_broker/demo", {})
    assert (status, "amqp-broker serve" in reason) == (409, True)
    assert desk.ask("DELETE", "/_broker/demo")[0] == 202


def test_a_demo_starts_once_and_stops() -> None:
    desk = Desk()
    desk.node.demo = demo = CountingDemo()
    assert desk.ask("POST", "/_broker/demo", {"seed": -1}) == (400, "seed is wrong")
    assert desk.ask("POST", "/_broker/demo", {"seed": 1}) == (202, {"state": "running"})
    assert desk.ask("POST", "/_broker/demo", {"seed": 1}) == (409, "one runs")
    assert desk.get("/_broker/demo") == (200, {"state": "running"})
    assert desk.ask("DELETE", "/_broker/demo") == (202, {"state": "none"})
    assert (demo.given, demo.stops) == ([{"seed": 1}], 1)


def test_watching_requires_the_tag_monitoring_and_starting_an_administrator() -> None:
    desk = Desk()
    desk.node.demo = CountingDemo()
    desk.be("management")
    assert desk.get("/_broker/demo")[0] == 401
    desk.be("monitoring")
    assert desk.get("/_broker/demo")[0] == 200
    assert desk.ask("POST", "/_broker/demo", {})[0] == 401
    assert desk.ask("DELETE", "/_broker/demo")[0] == 401
