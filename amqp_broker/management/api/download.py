"""Downloading the messages of a queue, as JSON or as a capture. They stay in the queue."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Annotated, Final
from urllib.parse import quote

from aiohttp import web
from msgspec import Meta, Struct, json

from amqp_broker.amqp.errors import AMQPError
from amqp_broker.broker.observe.capture import CapturedMessage
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.management.api.messages import channel_refusal, entered_vhost
from amqp_broker.management.api.peeking import Seen, Walk, seen_row, walk_from
from amqp_broker.management.documents.capture_file import header_line, message_line, skipped_line
from amqp_broker.management.http.answers import Streamed, bad_request
from amqp_broker.management.http.auth import MANAGEMENT
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import one_of

endpoints = Endpoints()

# Messages of one download.
MESSAGES_MAX: Final = 100_000
# Messages and octets that are encoded in one turn, and seconds until a write that does not end fails.
BATCH: Final = 64
BATCH_BYTES: Final = 256 * 1024
STUCK_S: Final = 30.0
TYPES: Final = {"json": "application/json", "capture": "application/x-ndjson"}


class DownloadQuery(Struct, forbid_unknown_fields=True):
    """The format, and the messages: all that are ready, or those at some positions, separated by commas."""

    format: Annotated[str, one_of(*TYPES)] = "json"
    positions: Annotated[str, Meta(extra_json_schema={"pattern": "^[0-9]*(,[0-9]+)*$"})] = ""


@endpoints.on("GET /_broker/queues/{vhost}/{queue}/download", tag=MANAGEMENT, query=DownloadQuery)
def download(request: Request) -> Steps[Streamed]:
    """Stream the ready messages of a queue with their whole bodies, as JSON or as a [capture](replay.md).

    Messages that come or leave meanwhile may be missing.
    """
    vhost = entered_vhost(request)
    query = request.read_query(DownloadQuery)
    positions = _positions(query.positions)
    try:
        request.user.require("read", vhost.name, "queue", request.path["queue"])
        queue = vhost.queue(request.path["queue"])
    except AMQPError as error:
        raise channel_refusal(error) from None
    walk = yield from walk_from(vhost, queue, "ready", 0)
    found = _chosen(walk, positions)

    async def send(given: web.Request) -> web.StreamResponse:
        name = f"{quote(queue.name, safe='') or 'queue'}.{query.format if query.format == 'json' else 'jsonl'}"
        headers = {
            "Content-Type": TYPES[query.format],
            "Cache-Control": "no-store",
            "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
        }
        response = web.StreamResponse(headers=headers)
        await response.prepare(given)
        pieces = _json(found) if query.format == "json" else _capture(found, queue.ready_count, vhost.name, request)
        try:
            for piece in pieces:
                if piece:
                    await asyncio.wait_for(response.write(piece), STUCK_S)
                await asyncio.sleep(0)
        except (ConnectionError, TimeoutError):
            pass  # the client has left
        return response

    return Streamed(send)


def _positions(text: str) -> frozenset[int] | None:
    """Return positions. Raise Refusal."""
    if not text:
        return None
    words = text.split(",")
    if not all(word.isascii() and word.isdecimal() and len(word) <= 18 for word in words):
        raise bad_request("positions must be numbers, separated by commas")
    return frozenset(map(int, words))


def _chosen(walk: Walk, positions: frozenset[int] | None) -> Iterator[list[Seen]]:
    """Yield messages in groups that take a bounded time to find and to encode, also empty ones."""
    left = MESSAGES_MAX
    while left:
        batch: list[Seen] = []
        octets = 0
        for _ in range(min(BATCH, left)):
            seen = walk.next()
            if seen is None:
                yield batch
                return
            left -= 1
            if positions is None or seen[1]["position"] in positions:
                batch.append(seen)
                octets += len(seen[0].content)
            if octets >= BATCH_BYTES:
                break
        yield batch


def _json(found: Iterator[list[Seen]]) -> Iterator[bytes]:
    before = b"["
    for batch in found:
        pieces: list[bytes] = []
        for seen in batch:
            pieces += [before, json.encode(seen_row(seen))]
            before = b",\n"
        yield b"".join(pieces)
    yield b"[]\n" if before == b"[" else b"]\n"


def _capture(found: Iterator[list[Seen]], expected: int, vhost: str, request: Request) -> Iterator[bytes]:
    yield header_line(vhost, request.broker.now)
    for batch in found:
        yield b"".join(message_line(CapturedMessage(0, message)) for message, _ in batch)
    if expected > MESSAGES_MAX:
        yield skipped_line(expected - MESSAGES_MAX)
