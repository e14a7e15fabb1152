from __future__ import annotations

import base64
from typing import Any

import pytest

from amqp_broker.broker.admin.access import User
from amqp_broker.broker.logins import Attempts
from amqp_broker.management.api import logins
from amqp_broker.management.http.request import Request
from tests.management.asking import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_oauth_is_not_supported(desk: Desk) -> None:
    desk.user = User("nobody")
    assert desk.get("/api/auth") == (200, {"oauth_enabled": False})


def test_a_returned_hash_accepts_its_password(desk: Desk) -> None:
    for status, value in (
        desk.get("/api/auth/hash_password/secret"),
        desk.ask("POST", "/api/auth/hash_password", {"password": "secret"}),
    ):
        assert status == 200
        assert User("u", base64.b64decode(value["ok"])).accepts(b"secret")
    assert desk.ask("POST", "/api/auth/hash_password", {"password": 5}) == (400, "password must be a string")


def test_a_returned_hash_is_of_the_configured_algorithm() -> None:
    sha512 = "rabbit_password_hashing_sha512"
    status, value = Desk(password_hashing_module=sha512).get("/api/auth/hash_password/secret")
    assert status == 200
    assert User("u", base64.b64decode(value["ok"]), hashing_algorithm=sha512).accepts(b"secret")


def test_a_password_in_a_path_may_be_any_octets(desk: Desk) -> None:
    status, value = desk.get("/api/auth/hash_password/%FF")
    assert status == 200
    assert User("u", base64.b64decode(value["ok"])).accepts(b"\xff")


def test_the_form_of_a_login_is_checked(desk: Desk) -> None:
    assert desk.ask("POST", "/api/login", b"username=guest&password=guest") == (200, "ok")
    for form in (b"username=guest&password=x", b"username=guest"):
        assert desk.ask("POST", "/api/login", form) == (401, "Not_Authorized")
    for form in (b"", b"\xff", b"{}"):
        assert desk.ask("POST", "/api/login", form) == (401, "Not_Authorized")
    request = Request(desk.broker, desk.node, desk.user, body=b"username=guest&password=guest")
    assert logins.log_in(request).headers["Set-Cookie"].startswith("auth=")


def test_login_attempts_are_counted_until_they_are_reset(desk: Desk) -> None:
    desk.broker.logins.attempts["amqp091"] = Attempts(3, 2)
    path = f"/api/auth/attempts/{desk.broker.node}"
    counted = {
        "protocol": "amqp091",
        "auth_attempts": 5,
        "auth_attempts_failed": 2,
        "auth_attempts_succeeded": 3,
    }
    assert counted in desk.get(path)[1]
    assert desk.get(f"{path}/source") == (200, [])
    assert desk.ask("DELETE", path)[0] == 204
    assert desk.get(path) == (200, [])
    assert desk.get("/api/auth/attempts/none") == (404, "Not Found")
    # The counters start again from zero.
    desk.broker.logins.check("guest", b"guest", "127.0.0.1")
    assert desk.broker.logins.attempts["amqp091"] == Attempts(1, 0)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"user": "guest", "password": "secret"}, 204),
        ({"user": "guest", "password": "other"}, 401),
        ({"user": "other", "password": "secret"}, 401),
        ({"user": "guest"}, 400),
        ({"user": 1, "password": "x"}, 400),
    ],
)
def test_a_password_is_checked(given: dict[str, Any], code: int) -> None:
    desk = Desk(default_pass="secret")
    assert desk.ask("POST", "/_broker/authenticate", given)[0] == code
