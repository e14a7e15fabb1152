"""Logins: methods, attempts, and the hashing of passwords.

Source: rabbit_mgmt_wm_auth.erl, rabbit_mgmt_wm_auth_attempts.erl, rabbit_mgmt_wm_hash_password.erl,
rabbit_mgmt_wm_login.erl.
"""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import parse_qs

from msgspec import Struct

from amqp_broker.broker.admin.access import encode_hash
from amqp_broker.management.http.answers import NO_CONTENT, Answer, not_authorised, not_found
from amqp_broker.management.http.auth import ADMINISTRATOR, MANAGEMENT, MONITORING, PUBLIC, login, login_failed
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.names import octets_of
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import String

endpoints = Endpoints()


class PasswordToHash(Struct):
    """A password to hash."""

    password: String


class Credentials(Struct):
    """A user with a password to check."""

    user: String
    password: String


@endpoints.on("GET /api/auth", tag=PUBLIC)
def login_methods(request: Request) -> dict[str, Any]:
    """Return the login methods of the web page, which exclude OAuth (404 as RabbitMQ 4.3)."""
    if request.broker.profile.release >= (4, 3):
        raise not_found()
    return {"oauth_enabled": False}


@endpoints.on("POST /api/login", tag=PUBLIC, statuses=(200,))
def log_in(request: Request) -> Answer:
    """Check the login form of RabbitMQ's page, and return its cookie."""
    try:
        form = parse_qs(request.body.decode())
    except (UnicodeDecodeError, ValueError):
        form = {}
    name, password = form.get("username", [""])[0], form.get("password", [""])[0]
    if not name:
        raise login_failed(request.broker)
    credentials = base64.b64encode(f"{name}:{password}".encode()).decode()
    login(request.broker, f"Basic {credentials}", MANAGEMENT, "")
    return Answer(200, "ok", {"Set-Cookie": f"auth={credentials}; Version=1"})


@endpoints.on("DELETE /api/login", tag=PUBLIC)
def log_out(request: Request) -> Answer:
    """Do nothing: there is no session that could end."""
    return NO_CONTENT


def _hashed(request: Request, password: bytes) -> dict[str, str]:
    return {"ok": encode_hash(request.broker.users.hash(password))}


@endpoints.on("GET /api/auth/hash_password/{password}", tag=ADMINISTRATOR)
def hash_in_path(request: Request) -> dict[str, str]:
    """Return the hash of the password in the path."""
    return _hashed(request, octets_of(request.path["password"]))


@endpoints.on("POST /api/auth/hash_password", tag=ADMINISTRATOR, body=PasswordToHash, statuses=(200,))
def hash_in_body(request: Request) -> dict[str, str]:
    """Return the hash of the password in the body; unlike a path, a body does not appear in logs."""
    return _hashed(request, request.read(PasswordToHash).password.encode())


@endpoints.on("GET /api/auth/attempts/{node}", tag=MONITORING)
def attempts(request: Request) -> list[dict[str, Any]]:
    """List the numbers of successful and failed logins by protocol."""
    request.require_node()
    return [
        {
            "protocol": protocol,
            "auth_attempts": counted.succeeded + counted.failed,
            "auth_attempts_failed": counted.failed,
            "auth_attempts_succeeded": counted.succeeded,
        }
        for protocol, counted in sorted(request.broker.logins.attempts.items())
    ]


@endpoints.on("GET /api/auth/attempts/{node}/source", tag=MONITORING)
def attempts_by_source(request: Request) -> list[dict[str, Any]]:
    """List login attempts by address: always empty, as in a RabbitMQ that is not configured to count them."""
    request.require_node()
    return []


@endpoints.on("DELETE /api/auth/attempts/{node}", "DELETE /api/auth/attempts/{node}/source", tag=MONITORING)
def reset_attempts(request: Request) -> Answer:
    """Reset the counters of login attempts."""
    request.require_node()
    request.broker.logins.attempts.clear()
    return NO_CONTENT


@endpoints.on("POST /_broker/authenticate", tag=ADMINISTRATOR, body=Credentials)
def authenticate(request: Request) -> Answer:
    """Check the password of a user: 204, or 401 for a wrong one."""
    given = request.read(Credentials)
    user = request.broker.users.get(given.user)
    if user is None or not user.accepts(given.password.encode()):
        raise not_authorised("Login failed")
    return NO_CONTENT
