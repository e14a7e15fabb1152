"""Peeking: showing the messages of a queue without consuming them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Annotated, Any, Final

from msgspec import Struct

from amqp_broker.amqp import nested
from amqp_broker.amqp.errors import AMQPError
from amqp_broker.amqp.message import Message
from amqp_broker.broker.exchanges.delayed import DelayedExchange
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.queues.quorum import QuorumQueue
from amqp_broker.broker.queues.stream import StreamQueue
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.broker.vhost import VHost
from amqp_broker.management.api.messages import Encoding, channel_refusal, entered_vhost, message_row
from amqp_broker.management.documents.values import LEVELS_MAX, TOO_DEEP
from amqp_broker.management.http.answers import bad_request
from amqp_broker.management.http.auth import MANAGEMENT
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import Count, one_of

endpoints = Endpoints()

COUNT_DEFAULT: Final = 10
# Bounds of one request: messages shown, messages searched, octets of bodies answered.
COUNT_MAX: Final = 1000
SCAN_MAX: Final = 50_000
ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
# The largest distance from the head of a queue; a stream finds any offset.
OFFSET_MAX: Final = 100_000

# A message, and the fields that RabbitMQ's API does not have.
Seen = tuple[Message, dict[str, Any]]


class PeekQuery(Struct):
    """The part of a queue to show: ready messages in the order of delivery, unacked ones, or delayed ones."""

    count: Count = COUNT_DEFAULT
    offset: Count = 0
    state: Annotated[str, one_of("ready", "unacked", "delayed")] = "ready"
    search: str = ""
    truncate: Count | None = None
    encoding: Encoding = "auto"


@endpoints.on("GET /_broker/queues/{vhost}/{queue}/peek", tag=MANAGEMENT, query=PeekQuery)
def peek(request: Request) -> Steps[dict[str, Any]]:
    """Show messages from `offset` on without consuming them; `next` in the answer is null at the end.

    Ready messages have a `position`, which stays the same until they leave, and by which they can be moved and
    returned; those of a quorum queue have a `delivery_count`.
    """
    vhost = entered_vhost(request)
    query = request.read_query(PeekQuery)
    truncate = query.truncate
    try:
        request.user.require("read", vhost.name, "queue", request.path["queue"])
        queue = vhost.queue(request.path["queue"])
    except AMQPError as error:
        raise channel_refusal(error) from None
    walk = yield from _walk_from(vhost, queue, query.state, query.offset)
    first = position = walk.offset
    wanted = query.search.encode("utf-8", "surrogateescape")
    found: list[dict[str, Any]] = []
    answer_bytes, is_end = 0, True
    while (one := walk.next()) is not None:
        message, more = one
        if (
            len(found) >= min(query.count, COUNT_MAX)
            or position - first >= SCAN_MAX
            or answer_bytes >= ANSWER_BYTES_MAX
        ):
            is_end = False
            break
        if not wanted or _has(message, wanted):
            found.append({"offset": position, **seen_row((message, more), query.encoding, truncate)})
            answer_bytes += message.body_bytes if truncate is None else min(message.body_bytes, truncate)
        position += 1
        yield
    return {
        "messages": found,
        "next": None if is_end else position,
        "messages_ready": queue.ready_count,
        "messages_unacknowledged": queue.unacked_count,
    }


def seen_row(seen: Seen, encoding: str = "auto", truncate: int | None = None) -> dict[str, Any]:
    """Return a message as RabbitMQ's API shows it, and its other fields; `truncate` is the longest payload."""
    message, more = seen
    row = message_row(message, more["redelivered"], 0, encoding, truncate)
    del row["message_count"]
    row["properties"] = nested.cut(row["properties"], LEVELS_MAX, TOO_DEEP)
    return {**row, **more}


def _has(message: Message, wanted: bytes) -> bool:
    """Return whether the body, the routing key or the properties contain some octets."""
    key = message.routing_key.encode("utf-8", "surrogateescape")
    return wanted in message.body or wanted in key or wanted in message.property_list


class _Walk:
    """The messages of a part of a queue, from the head on; `offset` is that of the next one."""

    def __init__(self, messages: Callable[[int], Iterator[Seen]], offset: int = 0) -> None:
        """Begin at an offset, from which on `messages` yields them."""
        self.offset = offset
        self._messages = messages
        self._left = messages(offset)

    def next(self) -> Seen | None:
        """Return the next message, or None at the end."""
        try:
            one = next(self._left, None)
        except RuntimeError:
            # The queue has changed since the last step: go on at the same offset.
            self._left = self._messages(self.offset)
            one = next(self._left, None)
        self.offset += one is not None
        return one


def _walk_from(vhost: VHost, queue: Queue, state: str, offset: int) -> Steps[_Walk]:
    """Return a walk from an offset on. Raise Refusal."""
    if state == "ready" and isinstance(queue, StreamQueue):
        first = max(offset, queue.log.first)
        return _Walk(lambda start: _ready(queue.peek_from(start)), first)
    if offset > OFFSET_MAX:
        raise bad_request(f"offset must not exceed {OFFSET_MAX}, except in a stream")
    if state == "ready":
        queue.expire()
        yield from queue.held()
        walk = _Walk(lambda start: islice(_ready(queue.peek()), start, None))
        if isinstance(queue, QuorumQueue):
            walk = _Walk(lambda start: islice(_counted(queue.peek_counted()), start, None))
    elif state == "unacked":
        walk = _Walk(lambda start: islice(_unacked(vhost, queue), start, None))
    else:
        walk = _Walk(lambda start: islice(_delayed(vhost, queue), start, None))
    while walk.offset < offset and walk.next() is not None:
        yield
    walk.offset = offset
    return walk


def _ready(messages: Iterator[tuple[int, Message, bool]]) -> Iterator[Seen]:
    return ((message, {"position": position, "redelivered": old}) for position, message, old in messages)


def _counted(messages: Iterator[tuple[int, Message, bool, int]]) -> Iterator[Seen]:
    for position, message, old, count in messages:
        yield message, {"position": position, "redelivered": old, "delivery_count": count}


def _unacked(vhost: VHost, queue: Queue) -> Iterator[Seen]:
    for connection in vhost.connections:
        for number, channel in connection.channels.items():
            for tag, (source, consumer, _, message) in channel.unacked.deliveries.items():
                if source is queue:
                    yield (
                        message,
                        {
                            "redelivered": False,
                            "connection": connection.name,
                            "channel": number,
                            "delivery_tag": tag,
                            "consumer_tag": None if consumer is None else consumer.tag,
                        },
                    )


def _delayed(vhost: VHost, queue: Queue) -> Iterator[Seen]:
    for exchange in vhost.exchanges.values():
        if isinstance(exchange, DelayedExchange):
            for due_ms, message in exchange.delayed_for(queue, SCAN_MAX):
                yield message, {"redelivered": False, "due_ms": due_ms}
