"""Downloading the messages of a queue, as JSON or as a capture. They stay in the queue."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import quote

from aiohttp import web
from msgspec import Meta, Struct, json

from amqp_broker.amqp.errors import AMQPError
from amqp_broker.broker.observe.capture import CapturedMessage
from amqp_broker.broker.queues.backlog_queue import BacklogQueue
from amqp_broker.broker.queues.stream import StreamQueue
from amqp_broker.management.api.messages import channel_refusal, entered_vhost
from amqp_broker.management.api.peeking import seen_row
from amqp_broker.management.documents.capture_file import header_line, message_line
from amqp_broker.management.http.answers import Refusal, Streamed, bad_request
from amqp_broker.management.http.auth import MANAGEMENT
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import one_of

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.durability.journal import Journal
    from amqp_broker.broker.queues.queue import Queue

    Item = tuple[int, Message, bool]

endpoints = Endpoints()

# The downloads of this process.
_running: set[object] = set()

# Messages and octets that are looked at in one turn, and seconds until a write that does not end fails.
BATCH: Final = 64
BATCH_BYTES: Final = 256 * 1024
STUCK_S: Final = 30.0
# Each keeps the journal as it was when it began. They end after this time.
RUNNING_MAX: Final = 4
DURATION_S_MAX: Final = 600.0
TYPES: Final = {"json": "application/json", "capture": "application/x-ndjson"}


class DownloadQuery(Struct, forbid_unknown_fields=True):
    """The format, and the messages: all that are ready, or those at some positions, separated by commas."""

    format: Annotated[str, one_of(*TYPES)] = "json"
    positions: Annotated[str, Meta(extra_json_schema={"pattern": "^[0-9]*(,[0-9]+)*$"})] = ""


@endpoints.on("GET /_broker/queues/{vhost}/{queue}/download", tag=MANAGEMENT, query=DownloadQuery)
def download(request: Request) -> Streamed:
    """Stream the ready messages of a queue with their whole bodies, as JSON or as a [capture](replay.md).

    The answer has the messages that are ready when it begins.
    """
    vhost = entered_vhost(request)
    query = request.read_query(DownloadQuery)
    positions = _positions(query.positions)
    try:
        request.user.require("read", vhost.name, "queue", request.path["queue"])
        queue = vhost.queue(request.path["queue"])
        queue.expire()
    except AMQPError as error:
        raise channel_refusal(error) from None
    if len(_running) >= RUNNING_MAX:
        raise Refusal(503, "too_many", f"{RUNNING_MAX} downloads are running")

    async def send(given: web.Request) -> web.StreamResponse:
        name = f"{quote(queue.name, safe='') or 'queue'}.{query.format if query.format == 'json' else 'jsonl'}"
        headers = {
            "Content-Type": TYPES[query.format],
            "Cache-Control": "no-store",
            "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
        }
        response = web.StreamResponse(headers=headers)
        _running.add(response)
        loop = asyncio.get_running_loop()
        end = loop.time() + DURATION_S_MAX
        try:
            await response.prepare(given)
            with request.broker.journal.frozen() as journal:
                found = _chosen(_items(queue, positions, journal), positions)
                pieces = _json(found) if query.format == "json" else _capture(found, vhost.name, request.broker.now)
                for piece in pieces:
                    if piece:
                        await asyncio.wait_for(response.write(piece), STUCK_S)
                    await asyncio.sleep(0)
                    if loop.time() >= end:
                        raise TimeoutError
        except (ConnectionError, TimeoutError):
            # The client has left, or must not take a part for the whole.
            if given.transport is not None:
                given.transport.abort()
        finally:
            _running.remove(response)
        return response

    return Streamed(send)


def _items(queue: Queue, positions: frozenset[int] | None, journal: Journal) -> Iterator[Item]:
    """Return positions, messages and whether each was delivered before, as they are now."""
    if isinstance(queue, StreamQueue):
        return queue.peek_from(min(positions, default=0) if positions is not None else 0)
    assert isinstance(queue, BacklogQueue)
    items: Iterator[Item] = iter(queue.backlog.frozen(journal).items()) if queue.backlog else iter(())
    return items


def _positions(text: str) -> frozenset[int] | None:
    """Return positions. Raise Refusal."""
    if not text:
        return None
    words = text.split(",")
    if not all(word.isascii() and word.isdecimal() and len(word) <= 18 for word in words):
        raise bad_request("positions must be numbers, separated by commas")
    return frozenset(map(int, words))


def _chosen(items: Iterator[Item], positions: frozenset[int] | None) -> Iterator[list[Item]]:
    """Yield messages in groups that take a bounded time to find and to encode, also empty ones."""
    left = None if positions is None else len(positions)
    while left != 0:
        batch: list[Item] = []
        octets = looked_at = 0
        for item in items:
            looked_at += 1
            if positions is None or item[0] in positions:
                batch.append(item)
                octets += len(item[1].content)
            if looked_at == BATCH or octets >= BATCH_BYTES:
                break
        yield batch
        if not looked_at:
            return
        left = None if left is None else left - len(batch)


def _json(found: Iterator[list[Item]]) -> Iterator[bytes]:
    before = b"["
    for batch in found:
        pieces: list[bytes] = []
        for position, message, redelivered in batch:
            row = seen_row((message, {"position": position, "redelivered": redelivered}))
            pieces += [before, json.encode(row)]
            before = b",\n"
        yield b"".join(pieces)
    yield b"[]\n" if before == b"[" else b"]\n"


def _capture(found: Iterator[list[Item]], vhost: str, now: int) -> Iterator[bytes]:
    yield header_line(vhost, now)
    for batch in found:
        yield b"".join(message_line(CapturedMessage(0, message)) for _, message, _ in batch)
