"""Capturing what is published in a vhost, as a stream that lasts until the client leaves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Final

from aiohttp import web
from msgspec import Struct

from amqp_broker.broker.admin.access import InternalUser
from amqp_broker.broker.admin.globs import exchange_name
from amqp_broker.broker.observe.capture import Capture, CapturedMessage
from amqp_broker.management.documents.capture_file import header_line, message_line, skipped_line
from amqp_broker.management.http.answers import Streamed, no_such
from amqp_broker.management.http.auth import ADMINISTRATOR
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request

CONTENT_TYPE: Final = "application/x-ndjson"
# Seconds between checks that the client is still there, and until a write that does not end fails.
CHECK_S: Final = 1.0
STUCK_S: Final = 30.0
# Messages and octets of their contents that are written at once; one message may be larger.
BATCH: Final = 64
BATCH_BYTES: Final = 256 * 1024

endpoints = Endpoints()


class CaptureQuery(Struct, forbid_unknown_fields=True):
    """The messages to capture; without a criterion, all."""

    exchange: str | None = None
    routing_key: str | None = None


@endpoints.on("GET /_broker/capture/{vhost}", tag=ADMINISTRATOR, query=CaptureQuery)
def capture(request: Request) -> Streamed:
    """Stream what is published in a vhost from now on ([capture and replay](replay.md))."""
    query = request.read_query(CaptureQuery)
    exchange = None if query.exchange is None else exchange_name(query.exchange)
    vhost = request.broker.vhosts.get(request.path["vhost"])
    if vhost is None:
        raise no_such(f"no vhost '{request.path['vhost']}'")
    if exchange is not None and exchange not in vhost.exchanges:
        raise no_such(f"no exchange '{exchange}' in {vhost}")

    async def send(given: web.Request) -> web.StreamResponse:
        return await _send(given, request, exchange, query.routing_key)

    return Streamed(send)


async def _send(
    given: web.Request, request: Request, exchange: str | None, routing_key: str | None
) -> web.StreamResponse:
    """Answer until the client leaves, its user is deleted or changed, or the vhost is deleted."""
    more, vhost, user = asyncio.Event(), request.vhost, request.user
    capture = Capture(vhost, exchange, routing_key, on_more=more.set)

    def goes_on() -> bool:
        is_user = isinstance(user, InternalUser) or user.asks or vhost.broker.users.get(user.name) is user
        is_there = given.transport is not None and not given.transport.is_closing()
        return is_user and is_there and vhost.broker.vhosts.get(vhost.name) is vhost

    response = web.StreamResponse(headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})
    await response.prepare(given)
    capture.start()
    try:
        # This line tells the client that the capture has begun.
        await response.write(header_line(vhost.name, capture.started_at_us // 1000))
        while goes_on():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(more.wait(), CHECK_S)
            more.clear()
            taken, skipped = capture.take()
            for batch in batches(taken):
                await asyncio.wait_for(response.write(b"".join(map(message_line, batch))), STUCK_S)
            if skipped:
                await asyncio.wait_for(response.write(skipped_line(skipped)), STUCK_S)
    except (ConnectionError, TimeoutError):
        pass  # the client has left
    finally:
        capture.stop()
    return response


def batches(messages: list[CapturedMessage]) -> Iterator[list[CapturedMessage]]:
    """Yield messages in groups that take a bounded time to encode."""
    batch: list[CapturedMessage] = []
    octets = 0
    for captured in messages:
        size = len(captured.message.content)
        if batch and (len(batch) == BATCH or octets + size > BATCH_BYTES):
            yield batch
            batch, octets = [], 0
        batch.append(captured)
        octets += size
    if batch:
        yield batch
