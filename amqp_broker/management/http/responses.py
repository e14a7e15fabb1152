"""Responses of aiohttp, with the headers that RabbitMQ's have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from aiohttp import web

from amqp_broker.management.http import json
from amqp_broker.management.http.answers import Answer, Refusal
from amqp_broker.management.http.auth import CHALLENGE

JSON: Final = "application/json"
METHODS: Final = ("HEAD", "GET", "PUT", "POST", "PATCH", "DELETE", "OPTIONS")
# RabbitMQ's since 4.3; before, it had 'unsafe-eval' and 'unsafe-inline'.
CONTENT_SECURITY_POLICY: Final = "script-src 'self'; object-src 'self'"
SERVER: Final = "Cowboy"


def allowed(methods: Iterable[str]) -> str:
    """Return the header Allow of a path with these methods, in RabbitMQ's order."""
    found = {*methods, "OPTIONS"}
    if "GET" in found:
        found.add("HEAD")
    return ", ".join(method for method in METHODS if method in found)


def headers_of(body: bytes | None) -> dict[str, str]:
    """Return RabbitMQ's headers of an answer."""
    if body is None:
        return {"Vary": "origin", "Content-Security-Policy": CONTENT_SECURITY_POLICY, "Server": SERVER}
    return {
        "Content-Type": JSON,
        "Cache-Control": "no-cache",
        "Vary": "accept, accept-encoding, origin",
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "Server": SERVER,
    }


def respond(value: Any) -> web.Response:
    """Return the response for the value or the Answer of a handler."""
    answer = value if isinstance(value, Answer) else Answer(200, value)
    if answer.value is None:
        return web.Response(status=answer.status, headers={**headers_of(None), **answer.headers})
    body = answer.value if isinstance(answer.value, bytes) else json.encode(answer.value)
    return web.Response(status=answer.status, headers={**headers_of(body), **answer.headers}, body=body)


def refuse(refusal: Refusal, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return the response for a refusal."""
    kept = dict(headers or {})
    if refusal.status == 401 and refusal.error == "not_authorized":
        kept["WWW-Authenticate"] = CHALLENGE
    return respond(Answer(refusal.status, {"error": refusal.error, "reason": refusal.reason}, kept))
