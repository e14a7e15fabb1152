from __future__ import annotations

from typing import Any

import pytest

from tests.management.asking import Desk

ALL = {"configure": ".*", "write": ".*", "read": ".*"}


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.broker.users.add("alice", "a")
    desk.broker.add_vhost("v")
    return desk


def test_a_permission_is_set_changed_and_cleared(desk: Desk) -> None:
    path = "/api/permissions/v/alice"
    assert desk.get(path) == (404, "Not Found")
    assert desk.ask("PUT", path, ALL)[0] == 201
    assert desk.ask("PUT", path, {**ALL, "write": "^w"})[0] == 204
    described = {"user": "alice", "vhost": "v", **ALL, "write": "^w"}
    assert desk.get(path) == (200, described)
    assert described in desk.get("/api/permissions")[1]
    assert desk.get("/api/users/alice/permissions") == (200, [described])
    assert desk.get("/api/vhosts/v/permissions") == (200, [described])
    assert desk.ask("DELETE", path)[0] == 204
    assert desk.ask("DELETE", path) == (404, "Not Found")
    assert not desk.broker.users["alice"].can_open("v")


@pytest.mark.parametrize(
    ("path", "given", "reason"),
    [
        ("v/nobody", ALL, "vhost_or_user_not_found"),
        ("none/alice", ALL, "vhost_or_user_not_found"),
        ("v/alice", {"configure": ""}, "[{key_missing,write},{key_missing,read}]"),
        ("v/alice", {**ALL, "read": 5}, "read must be a string"),
        ("v/alice", {**ALL, "read": None}, "read must be a string"),
        ("v/alice", {**ALL, "read": "("}, ["invalid_regexp", "(", '{"missing )",1}']),
    ],
)
def test_an_invalid_permission_is_refused(desk: Desk, path: str, given: Any, reason: Any) -> None:
    assert desk.ask("PUT", f"/api/permissions/{path}", given) == (400, reason)


def test_topic_permissions_are_set_listed_and_cleared(desk: Desk) -> None:
    path = "/api/topic-permissions/v/alice"
    assert desk.ask("PUT", path, {"exchange": "amq.topic", "write": "^a", "read": "^b"})[0] == 201
    assert desk.ask("PUT", path, {"exchange": "other", "write": "", "read": ""})[0] == 204
    one = {"user": "alice", "vhost": "v", "exchange": "amq.topic", "write": "^a", "read": "^b"}
    other = {"user": "alice", "vhost": "v", "exchange": "other", "write": "", "read": ""}
    for listing in (
        path,
        "/api/topic-permissions",
        "/api/users/alice/topic-permissions",
        "/api/vhosts/v/topic-permissions",
    ):
        assert desk.get(listing) == (200, [one, other])
    assert desk.get(f"{path}/other") == desk.get(f"{path}/nope") == (200, [one, other])
    # The body names the exchange.
    assert desk.ask("PUT", f"{path}/ignored", {"exchange": "other", "write": "", "read": ""})[0] == 204
    assert desk.get(path) == (200, [one, other])
    assert desk.ask("DELETE", f"{path}/other")[0] == 204
    assert desk.get(path) == (200, [one])
    assert desk.ask("DELETE", path)[0] == 204
    assert desk.get(path) == (404, "Not Found")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"exchange": 5, "write": "", "read": ""}, "exchange must be a string"),
        ({"exchange": "e", "write": "(", "read": ""}, ["invalid_regexp", "(", '{"missing )",1}']),
        ({"write": "", "read": ""}, "[{key_missing,exchange}]"),
    ],
)
def test_an_invalid_topic_permission_is_refused(desk: Desk, given: Any, reason: Any) -> None:
    assert desk.ask("PUT", "/api/topic-permissions/v/alice", given) == (400, reason)


def test_users_see_their_own_permissions(desk: Desk) -> None:
    desk.be("management", write="^w")
    status, found = desk.get("/_broker/permissions")
    assert (status, list(found)) == (200, ["/"])
    assert found["/"]["write"] == "^w"
