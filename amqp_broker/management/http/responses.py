"""Responses of aiohttp, with the headers that RabbitMQ's have."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.management.http import json
from amqp_broker.management.http.answers import Answer, Challenge, Refusal
from amqp_broker.management.http.auth import CHALLENGE

JSON: Final = "application/json"
METHODS: Final = ("HEAD", "GET", "PUT", "POST", "PATCH", "DELETE", "OPTIONS")
# RabbitMQ's since 4.3; before, it had 'unsafe-eval' and 'unsafe-inline'.
CONTENT_SECURITY_POLICY: Final = "script-src 'self'; object-src 'self'"
SERVER: Final = "Cowboy"
# Octets of a body that are sent at once.
BLOCK_BYTES: Final = 64 * 1024


class LongBody(Payload):
    """A body in parts, sent a block at a time, as the peer takes it; others are served in between."""

    _value: Sequence[bytes]

    @property
    def size(self) -> int:
        return sum(map(len, self._value))

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return b"".join(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        for block in _blocks(self._value):
            await writer.write(block)
            await asyncio.sleep(0)


def _blocks(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield parts joined to blocks of at least BLOCK_BYTES, but for the last."""
    block, size = list[bytes](), 0
    for part in parts:
        block.append(part)
        size += len(part)
        if size >= BLOCK_BYTES:
            yield b"".join(block)
            block, size = [], 0
    if block:
        yield b"".join(block)


def allowed(methods: Iterable[str]) -> str:
    """Return the header Allow of a path with these methods, in RabbitMQ's order."""
    found = {*methods, "OPTIONS"}
    if "GET" in found:
        found.add("HEAD")
    return ", ".join(method for method in METHODS if method in found)


def headers_of(body: object) -> dict[str, str]:
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


def encoded(value: Any) -> Steps[Answer]:
    """Return the answer for the value or the Answer of a handler, its value encoded in steps."""
    answer = value if isinstance(value, Answer) else Answer(200, value)
    value = answer.value
    if value is None:
        return answer
    if isinstance(value, bytes):
        parts = [value[start : start + BLOCK_BYTES] for start in range(0, len(value), BLOCK_BYTES)]
    else:
        parts = yield from json.encoded(value)
    body = LongBody(parts)
    return answer._replace(value=body if body.size > BLOCK_BYTES else b"".join(parts))


def respond(value: Any) -> web.Response:
    """Return the response for the value or the Answer of a handler."""
    answer = value if isinstance(value, Answer) else Answer(200, value)
    body = answer.value
    if body is None:
        return web.Response(status=answer.status, headers={**headers_of(None), **answer.headers})
    length = {}
    if isinstance(body, LongBody):
        length = {"Content-Length": str(body.size)}
    elif not isinstance(body, bytes):
        body = json.encode(body)
    return web.Response(status=answer.status, headers={**headers_of(body), **answer.headers, **length}, body=body)


def refuse(refusal: Refusal, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return the response for a refusal."""
    kept = dict(headers or {})
    if isinstance(refusal, Challenge):
        kept["WWW-Authenticate"] = CHALLENGE
    value = None if refusal.reason is None else {"error": refusal.error, "reason": refusal.reason}
    return respond(Answer(refusal.status, value, kept))
