from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.broker.admin.access import Permission
from amqp_broker.broker.queues.queue import QueueDeclaration
from tests.management.asking import Desk

PATH = "/api/policies/%2F/p"
LIMIT = {"pattern": "^q", "definition": {"max-length": 1}}


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_policy_is_in_force_at_once(desk: Desk) -> None:
    vhost = desk.broker.vhosts["/"]
    queue = vhost.declare_queue(QueueDeclaration("q", {}, is_durable=True))
    assert desk.ask("PUT", PATH, LIMIT)[0] == 201
    assert queue.settings.length_max == 1
    assert desk.ask("PUT", PATH, {**LIMIT, "priority": 3, "apply-to": "exchanges"})[0] == 204
    assert queue.settings.length_max is None
    described = {"vhost": "/", "name": "p", "apply-to": "exchanges", "priority": 3, **LIMIT}
    assert desk.get(PATH) == (200, described)
    assert desk.get("/api/policies") == desk.get("/api/policies/%2F") == (200, [described])
    assert desk.ask("DELETE", PATH)[0] == 204
    assert desk.ask("DELETE", PATH) == desk.get(PATH) == (404, "Not Found")


def test_operator_policies_are_separate_from_policies(desk: Desk) -> None:
    assert desk.ask("PUT", "/api/operator-policies/%2F/p", LIMIT)[0] == 201
    assert desk.get("/api/policies") == (200, [])
    assert desk.get("/api/operator-policies/%2F/p")[1]["definition"] == {"max-length": 1}
    assert [policy["name"] for policy in desk.get("/api/operator-policies")[1]] == ["p"]
    assert desk.ask("DELETE", "/api/operator-policies/%2F/p")[0] == 204
    assert desk.get("/api/operator-policies/%2F") == (200, [])


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"pattern": ""}, "[{key_missing,definition}]"),
        ({**LIMIT, "definition": {}}, "Validation failed\n\nno policy provided\n"),
        (
            {**LIMIT, "definition": {"x": 1}},
            'Validation failed\n\n[{&lt;&lt;"x"&gt;&gt;,1}] are not recognised policy settings\n',
        ),
        ({**LIMIT, "pattern": 5}, "Validation failed\n\npattern should be a binary but was 5\n"),
        ({**LIMIT, "priority": None}, "Validation failed\n\npriority should be a number, actually was null\n"),
    ],
)
def test_an_invalid_policy_is_refused_in_rabbitmqs_words(desk: Desk, given: Any, reason: str) -> None:
    assert desk.ask("PUT", PATH, given) == (400, reason)


@pytest.mark.parametrize("value", [2**63, {"max-length": 2**63}, {"delivery-limit": -(2**63) - 1}])
def test_a_number_beyond_64_bits_is_refused(desk: Desk, value: Any) -> None:
    for key in ("definition", "priority"):
        assert desk.ask("PUT", PATH, {**LIMIT, key: value})[0] == 400
    assert desk.get("/api/policies") == (200, [])


@pytest.mark.parametrize("value", [10**400, -1, 1.5, "x", None, [], {"a": [{}]}, True])
def test_every_value_is_accepted_or_refused_with_a_reason(desk: Desk, value: Any) -> None:
    for key in ("definition", "pattern", "priority", "apply-to"):
        status, reason = desk.ask("PUT", PATH, {**LIMIT, key: value})
        assert status == 201 or (status == 400 and reason), key
        assert desk.get("/api/policies")[0] == 200, key


def test_a_policymaker_sets_policies_in_permitted_vhosts(desk: Desk) -> None:
    desk.user = desk.broker.users.add("alice", "a", tags=("policymaker",))
    assert desk.ask("PUT", PATH, LIMIT) == (401, "User not authorised to access virtual host")
    desk.broker.users.set_permission(desk.user, "/", Permission())
    assert desk.ask("PUT", PATH, LIMIT)[0] == 201
    assert desk.ask("PUT", "/api/operator-policies/%2F/p", LIMIT)[0] == 401


def test_policies_of_a_missing_vhost_are_not_found(desk: Desk) -> None:
    assert desk.ask("PUT", "/api/policies/none/p", LIMIT) == (404, "vhost_not_found")
    assert desk.get("/api/policies/none") == (404, "Not Found")
