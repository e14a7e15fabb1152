from __future__ import annotations

import base64
from typing import Any

import pytest

from amqp_broker.broker.admin.access import InternalUser, hash_password
from tests.management.asking import Desk

HASH = base64.b64encode(hash_password(b"secret", b"salt")).decode()


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_users_are_listed_by_name(desk: Desk) -> None:
    desk.ask("PUT", "/api/users/alice", {"password": "a", "tags": "management"})
    status, users = desk.get("/api/users")
    assert (status, [user["name"] for user in users]) == (200, ["alice", "guest"])
    assert set(users[0]) == {"name", "password_hash", "hashing_algorithm", "tags", "limits"}


def test_a_user_is_created_and_then_changed(desk: Desk) -> None:
    assert desk.ask("PUT", "/api/users/alice", {"password": "a", "tags": "management"})[0] == 201
    assert desk.broker.users["alice"].accepts(b"a")
    assert desk.ask("PUT", "/api/users/alice", {"password": "b", "tags": ["monitoring", "x"]})[0] == 204
    alice = desk.broker.users["alice"]
    assert (alice.accepts(b"a"), alice.accepts(b"b"), alice.tags) == (False, True, ("monitoring", "x"))


def test_a_changed_user_keeps_the_permissions(desk: Desk) -> None:
    desk.ask("PUT", "/api/users/guest", {"password": "b", "tags": ""})
    assert desk.broker.users["guest"].can_open("/")


def test_a_password_hash_is_stored_unchanged(desk: Desk) -> None:
    assert desk.ask("PUT", "/api/users/alice", {"password_hash": HASH, "tags": ""})[0] == 201
    assert desk.broker.users["alice"].accepts(b"secret")
    assert desk.get("/api/users/alice")[1]["password_hash"] == HASH


def test_a_user_without_a_password_cannot_log_in(desk: Desk) -> None:
    desk.ask("PUT", "/api/users/alice", {"password_hash": "", "tags": ""})
    assert not desk.broker.users["alice"].accepts(b"")


@pytest.mark.parametrize(
    ("given", "algorithm"),
    [
        ({"password": "secret"}, "sha512"),
        ({"password": "secret", "hashing_algorithm": "rabbit_password_hashing_md5"}, "sha512"),
        ({"password_hash": ""}, "sha512"),
        ({"password_hash": HASH, "hashing_algorithm": "rabbit_password_hashing_sha256"}, "sha256"),
    ],
)
def test_a_new_user_has_the_configured_algorithm_unless_the_hash_has_another(given: Any, algorithm: str) -> None:
    """Seen at RabbitMQ 3.10.8, 4.0.5 and 4.3.6."""
    desk = Desk(password_hashing_module="rabbit_password_hashing_sha512")
    assert desk.ask("PUT", "/api/users/alice", {"tags": "", **given})[0] == 201
    assert desk.get("/api/users/alice")[1]["hashing_algorithm"] == f"rabbit_password_hashing_{algorithm}"
    assert desk.broker.users["alice"].accepts(b"secret") == bool(given.get("password") or given["password_hash"])


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"password": "x"}, "tags_not_present"),
        ({"password": "x", "password_hash": HASH, "tags": ""}, "both_password_and_password_hash_are_provided"),
        ({"password": 5, "tags": ""}, ["not_string", "password"]),
        ({"password_hash": "!!", "tags": ""}, ["not_base64", "!!"]),
        ({"password_hash": HASH, "tags": "", "hashing_algorithm": None}, ["not_string", "hashing_algorithm"]),
    ],
)
def test_an_invalid_user_is_refused_and_nothing_changes(desk: Desk, given: Any, reason: Any) -> None:
    assert desk.ask("PUT", "/api/users/alice", given) == (400, reason)
    assert "alice" not in desk.broker.users


def test_a_deleted_user_is_gone(desk: Desk) -> None:
    desk.ask("PUT", "/api/users/alice", {"password": "a", "tags": ""})
    assert desk.ask("DELETE", "/api/users/alice")[0] == 204
    assert desk.ask("DELETE", "/api/users/alice") == (404, "Not Found")
    assert desk.get("/api/users/alice") == (404, "Not Found")


def test_a_bulk_deletion_skips_missing_users(desk: Desk) -> None:
    desk.ask("PUT", "/api/users/a", {"password": "a", "tags": ""})
    assert desk.ask("POST", "/api/users/bulk-delete", {"users": ["nobody", "a"]})[0] == 204
    assert list(desk.broker.users) == ["guest"]
    assert desk.ask("POST", "/api/users/bulk-delete", {"users": [5]}) == (400, ["no_such_user", 5])


def test_a_hash_of_a_wrong_length_accepts_no_password(desk: Desk) -> None:
    given = {"password_hash": "AAAA", "tags": "", "hashing_algorithm": "rabbit_password_hashing_sha512"}
    assert desk.ask("PUT", "/api/users/a", given)[0] == 201
    assert not desk.broker.users["a"].accepts(b"a")


def test_a_bulk_deletion_in_rabbitmq_3_stops_at_the_first_missing_user() -> None:
    desk = Desk(compat="3.13")
    for name in ("a", "b", "c"):
        desk.ask("PUT", f"/api/users/{name}", {"password": "a", "tags": ""})
    assert desk.ask("POST", "/api/users/bulk-delete", {"users": ["a", "b"]})[0] == 204
    assert desk.ask("POST", "/api/users/bulk-delete", {"users": ["nobody", "c"]}) == (400, ["no_such_user", "nobody"])
    assert sorted(desk.broker.users) == ["c", "guest"]
    assert desk.ask("POST", "/api/users/bulk-delete", {"users": "c"})[0] == 400


def test_users_without_any_permission_are_listed(desk: Desk) -> None:
    desk.ask("PUT", "/api/users/alice", {"password": "a", "tags": ""})
    assert [user["name"] for user in desk.get("/api/users/without-permissions")[1]] == ["alice"]


def test_users_require_an_administrator(desk: Desk) -> None:
    desk.broker.users.set_tags(desk.broker.users["guest"], ["monitoring"])
    assert desk.get("/api/users")[0] == 401


# Protected users

PROTECTED = "Protected users cannot be modified via the HTTP API"


@pytest.fixture
def protecting() -> Desk:
    """A broker with a protected user `alice`."""
    desk = Desk()
    desk.ask("PUT", "/api/users/alice", {"password": "a", "tags": "protected,management"})
    return desk


@pytest.mark.parametrize("body", [{"password": "b", "tags": ""}, {}, [], "text", b"{"])
def test_a_protected_user_is_not_changed_over_http_whatever_the_body(protecting: Desk, body: Any) -> None:
    assert protecting.ask("PUT", "/api/users/alice", body) == (400, PROTECTED)
    assert protecting.broker.users["alice"].accepts(b"a")


def test_a_protected_user_is_not_deleted_over_http(protecting: Desk) -> None:
    assert protecting.ask("DELETE", "/api/users/alice") == (400, PROTECTED)
    protecting.ask("PUT", "/api/users/bob", {"password": "b", "tags": ""})
    assert protecting.ask("POST", "/api/users/bulk-delete", {"users": ["alice", "bob"]})[0] == 204
    assert set(protecting.broker.users) == {"alice", "guest"}


def test_a_protected_user_gets_permissions_and_limits(protecting: Desk) -> None:
    permission = {"configure": "", "write": "", "read": ""}
    assert protecting.ask("PUT", "/api/permissions/%2F/alice", permission)[0] == 201
    assert protecting.ask("PUT", "/api/user-limits/alice/max-channels", {"value": 5})[0] == 204


def test_definitions_and_commands_change_a_protected_user(protecting: Desk) -> None:
    user = {"name": "alice", "password": "b", "tags": "protected"}
    assert protecting.ask("POST", "/api/definitions", {"users": [user]})[0] == 204
    assert protecting.broker.users["alice"].accepts(b"b")
    protecting.user = InternalUser("rmq-cli")
    assert protecting.ask("PUT", "/api/users/alice", {"password": "c", "tags": "protected"})[0] == 204
    assert protecting.broker.users["alice"].accepts(b"c")
    assert protecting.ask("DELETE", "/api/users/alice")[0] == 204


def test_before_4_2_the_tag_protected_has_no_effect() -> None:
    desk = Desk(compat="4.0")
    desk.ask("PUT", "/api/users/alice", {"password": "a", "tags": "protected"})
    assert desk.ask("PUT", "/api/users/alice", {"password": "b", "tags": "protected"})[0] == 204
    assert desk.ask("DELETE", "/api/users/alice")[0] == 204
