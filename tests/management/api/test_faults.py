from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.broker.lab.fault_rules import ACTIONS
from tests.management.asking import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_fault_is_added_listed_and_removed(desk: Desk) -> None:
    rule = {"action": "confirm_nack", "vhost": "/", "routing_key": "orders.*", "times": 3, "seed": 1}
    status, added = desk.ask("POST", "/_broker/faults", rule)
    counts = {"matched": 0, "hits": 0, "is_spent": False}
    assert (status, added) == (201, {**rule, "id": 1, "on": "publish", **counts})
    assert desk.get("/_broker/faults") == (200, [added])
    assert desk.get("/_broker/faults/1") == (200, added)
    assert desk.ask("DELETE", "/_broker/faults/1")[0] == 204
    assert desk.get("/_broker/faults") == (200, [])
    assert desk.ask("DELETE", "/_broker/faults/1")[0] == 404


def test_hits_are_counted(desk: Desk) -> None:
    peer = desk.lab.connect()
    desk.ask("POST", "/_broker/faults", {"action": "close_connection", "vhost": "/"})
    assert peer.expect_connection_close(320)
    assert desk.get("/_broker/faults")[1][0]["hits"] == 1


def test_held_deliveries_are_made_one_by_one_or_several_at_once(desk: Desk) -> None:
    peer = desk.lab.connect()
    peer.declare("q")
    desk.ask("POST", "/_broker/faults", {"action": "hold_delivery", "queue": "q"})
    peer.consume("q")
    for body in (b"one", b"two", b"three"):
        peer.publish("q", body)
    assert desk.get("/_broker/faults/1")[1]["held"] == 3
    assert desk.ask("POST", "/_broker/faults/1/release", {}) == (200, {"released": 1})
    desk.lab.advance(0)
    assert peer.bodies() == [b"one"]
    assert desk.ask("POST", "/_broker/faults/1/release", {"count": 5}) == (200, {"released": 2})
    desk.lab.advance(0)
    assert peer.bodies() == [b"two", b"three"]


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("1/release", {}, 400, "fault 1 is 'confirm_nack', and only 'hold_delivery' holds deliveries"),
        ("2/release", {"count": 0}, 400, "count must be at least 1, not 0"),
        ("2/release", {"count": "all"}, 400, "count must be a whole number"),
        ("2/release", {"number": 1}, 400, "number"),
        ("3/release", {}, 404, "Not Found"),
    ],
)
def test_a_wrong_release_is_refused(desk: Desk, path: str, body: Any, status: int, reason: str) -> None:
    for action in ("confirm_nack", "hold_delivery"):
        desk.ask("POST", "/_broker/faults", {"action": action})
    found, answer = desk.ask("POST", f"/_broker/faults/{path}", body)
    assert (found, reason in str(answer)) == (status, True), answer


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({}, "a fault needs an 'action'"),
        ({"action": "explode"}, "unknown action 'explode'"),
        ({"action": "confirm_nack", "vhost": "none"}, "there is no vhost 'none'"),
        ({"action": "confirm_nack", "times": "3"}, "times must be a whole number"),
    ],
)
def test_an_invalid_rule_is_refused_and_changes_nothing(desk: Desk, rule: dict[str, Any], reason: str) -> None:
    status, answer = desk.ask("POST", "/_broker/faults", rule)
    assert (status, reason in answer) == (400, True)
    assert desk.get("/_broker/faults") == (200, [])


def test_actions_are_listed_with_the_fields_of_each_moment(desk: Desk) -> None:
    status, actions = desk.get("/_broker/fault-actions")
    assert (status, [action["action"] for action in actions]) == (200, list(ACTIONS))
    [block] = [action for action in actions if action["action"] == "block"]
    assert (block["needs"], block["may_have"], block["code"]) == ([], ["text", "duration_ms"], None)
    assert list(block["on"]) == ["now", "open", "publish"]
    assert block["on"]["open"] == ["vhost", "user", "connection", "client_property"]
    [cancel] = [action for action in actions if action["action"] == "cancel_consumer"]
    assert "queue" in cancel["on"]["now"]


@pytest.mark.parametrize("name", ["0", "99", "one", "²", "9" * 30])
def test_a_missing_rule_is_not_found(desk: Desk, name: str) -> None:
    assert desk.get(f"/_broker/faults/{name}")[0] == 404


def test_all_rules_or_those_of_a_vhost_are_removed(desk: Desk) -> None:
    for vhost in ("/", None, None):
        desk.ask("POST", "/_broker/faults", {"action": "confirm_nack", "vhost": vhost})
    assert desk.ask("DELETE", "/_broker/faults", query={"vhost": "typo"})[0] == 404
    assert desk.ask("DELETE", "/_broker/faults", query={"vhost": "/"})[0] == 204
    assert [rule["id"] for rule in desk.get("/_broker/faults")[1]] == [2, 3]
    assert desk.ask("DELETE", "/_broker/faults")[0] == 204
    assert desk.get("/_broker/faults")[1] == []


def test_fault_rules_require_an_administrator(desk: Desk) -> None:
    desk.be("monitoring")
    assert desk.get("/_broker/faults")[0] == 401
    assert desk.ask("POST", "/_broker/faults", {"action": "cut"})[0] == 401
