"""Logging in: how, how often it was tried, and what a password hashes to.

Source: rabbit_mgmt_wm_auth.erl, rabbit_mgmt_wm_auth_attempts.erl, rabbit_mgmt_wm_hash_password.erl,
rabbit_mgmt_wm_login.erl.
"""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import parse_qs

from amqp_broker.broker.access import SALT_BYTES, encode_hash, hash_password
from amqp_broker.management import body
from amqp_broker.management.access import ADMINISTRATOR, ANYBODY, MANAGEMENT, MONITORING, login
from amqp_broker.management.request import (
    NO_CONTENT,
    Answer,
    Request,
    Resource,
    bad_request,
    not_found,
    unauthenticated,
)


def how(request: Request) -> dict[str, Any]:
    """What the page has to know to let somebody log in: there is no OAuth."""
    return {"oauth_enabled": False}


def log_in(request: Request) -> Answer:
    """The form of a page that logs in: what it gets is a cookie for the page, no session."""
    try:
        form = parse_qs(request.body.decode())
    except (UnicodeDecodeError, ValueError):
        form = {}
    name, password = form.get("username", [""])[0], form.get("password", [""])[0]
    if not name:
        raise unauthenticated("Login failed")
    credentials = base64.b64encode(f"{name}:{password}".encode()).decode()
    login(request.broker, f"Basic {credentials}", MANAGEMENT, "")
    return Answer(200, "ok", {"Set-Cookie": f"auth={credentials}; Version=1"})


def _hashed(request: Request, password: str) -> dict[str, str]:
    return {"ok": encode_hash(hash_password(password.encode(), request.broker.entropy(SALT_BYTES)))}


def hash_in_path(request: Request) -> dict[str, str]:
    return _hashed(request, request.path["password"])


def hash_in_body(request: Request) -> dict[str, str]:
    """As 4.3 has it: a password in a path ends up in logs."""
    password = body.body_of(request, "password")["password"]
    if not isinstance(password, str):
        raise bad_request("password must be a string")
    return _hashed(request, password)


def _check_node(request: Request) -> None:
    if request.path["node"] != request.broker.node:
        raise not_found()


def attempts(request: Request) -> list[dict[str, Any]]:
    _check_node(request)
    return [
        {
            "protocol": protocol,
            "auth_attempts": counted.succeeded + counted.failed,
            "auth_attempts_failed": counted.failed,
            "auth_attempts_succeeded": counted.succeeded,
        }
        for protocol, counted in sorted(request.broker.logins.attempts.items())
    ]


def attempts_by_source(request: Request) -> list[dict[str, Any]]:
    """Counting by source is off, as it is in RabbitMQ unless it is configured."""
    _check_node(request)
    return []


def reset_attempts(request: Request) -> Answer:
    _check_node(request)
    request.broker.logins.attempts.clear()
    return NO_CONTENT


RESOURCES = (
    Resource("/api/auth", ANYBODY, {"GET": how}),
    Resource("/api/login", ANYBODY, {"POST": log_in}),
    Resource("/api/auth/hash_password", ADMINISTRATOR, {"POST": hash_in_body}),
    Resource("/api/auth/hash_password/{password}", ADMINISTRATOR, {"GET": hash_in_path}),
    Resource("/api/auth/attempts/{node}", MONITORING, {"GET": attempts, "DELETE": reset_attempts}),
    Resource("/api/auth/attempts/{node}/source", MONITORING, {"GET": attempts_by_source, "DELETE": reset_attempts}),
)
