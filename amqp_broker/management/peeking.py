"""Looking at the messages of a queue without touching them, and moving them.

    GET  /_broker/queues/{vhost}/{queue}/peek?count=&offset=&state=&search=&truncate=&encoding=
    POST /_broker/queues/{vhost}/{queue}/move    {"destination": {"queue": …} or {"exchange": …}, "count": …}

`state` is ready (as they will be delivered; of a stream from the offset on), unacked or delayed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from amqp_broker.broker.delayed_exchange import DelayedExchange
from amqp_broker.broker.moving import move_to_exchange, move_to_queue
from amqp_broker.broker.queue import Queue
from amqp_broker.broker.stream_queue import StreamQueue
from amqp_broker.errors import AMQPError
from amqp_broker.management import body
from amqp_broker.management.access import MANAGEMENT
from amqp_broker.management.messages import channel_refusal, described, entered_vhost
from amqp_broker.management.request import DEFAULT_EXCHANGE_NAME, Request, Resource, bad_request
from amqp_broker.message import Message

COUNT_DEFAULT: Final = 10
# What one request may show, look through, and answer (octets of bodies).
COUNT_MAX: Final = 1000
SCAN_MAX: Final = 50_000
ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
# How far from its head a queue can be looked into; of a stream any offset can be found.
OFFSET_MAX: Final = 100_000
INTEGER_DIGITS_MAX: Final = 18

# A message, and what is known of it beyond RabbitMQ's fields.
Seen = tuple[Message, dict[str, Any]]


def peek(request: Request) -> dict[str, Any]:
    """Some messages from `offset` on, and `next`, where to go on; that is null at the end."""
    vhost = entered_vhost(request)
    count, offset = _number(request, "count", COUNT_DEFAULT), _number(request, "offset", 0)
    truncate = _number(request, "truncate", -1)
    encoding = request.query.get("encoding", "auto")
    if encoding not in ("auto", "base64"):
        raise bad_request("Unsupported encoding. Please use auto or base64.")
    try:
        request.user.require("read", vhost.name, "queue", request.path["queue"])
        queue = vhost.queue(request.path["queue"])
    except AMQPError as error:
        raise channel_refusal(error) from None
    first, seen = _seen(queue, request.query.get("state", "ready"), offset)
    wanted = request.query.get("search", "").encode("utf-8", "surrogateescape")
    found: list[dict[str, Any]] = []
    answer_bytes, position, is_end = 0, first, True
    for message, more in seen:
        if len(found) >= min(count, COUNT_MAX) or position - first >= SCAN_MAX or answer_bytes >= ANSWER_BYTES_MAX:
            is_end = False
            break
        if not wanted or _has(message, wanted):
            told = described(message, more["redelivered"], 0, encoding, truncate if truncate >= 0 else None)
            del told["message_count"]
            found.append({"offset": position, **told, **more})
            answer_bytes += min(message.body_bytes, truncate) if truncate >= 0 else message.body_bytes
        position += 1
    return {
        "messages": found,
        "next": None if is_end else position,
        "messages_ready": queue.ready_count,
        "messages_unacknowledged": queue.unacked_count,
    }


def _number(request: Request, name: str, default: int) -> int:
    text = request.query.get(name, "")
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > INTEGER_DIGITS_MAX:
        raise bad_request(f"{name} must be a whole number from 0 on")
    return int(text)


def _has(message: Message, wanted: bytes) -> bool:
    """Whether what is looked for stands in the body, the routing key or the properties."""
    key = message.routing_key.encode("utf-8", "surrogateescape")
    return wanted in message.body or wanted in key or wanted in message.property_list


def _seen(queue: Queue, state: str, offset: int) -> tuple[int, Iterator[Seen]]:
    """The offset of the first message, and the messages from there on."""
    if state == "ready" and isinstance(queue, StreamQueue):
        first = max(offset, queue.log.first)
        return first, _ready(queue.peek_from(first))
    if offset > OFFSET_MAX:
        raise bad_request(f"offset must not be beyond {OFFSET_MAX}, but for streams")
    if state == "ready":
        if queue.deadlines:
            queue.expire()
        return offset, islice(_ready(queue.peek()), offset, None)
    if state == "unacked":
        return offset, islice(_unacked(queue), offset, None)
    if state == "delayed":
        return offset, islice(_delayed(queue), offset, None)
    raise bad_request("state must be ready, unacked or delayed")


def _ready(messages: Iterator[tuple[Message, bool]]) -> Iterator[Seen]:
    return ((message, {"redelivered": redelivered}) for message, redelivered in messages)


def _unacked(queue: Queue) -> Iterator[Seen]:
    for connection in queue.vhost.connections:
        for number, channel in connection.channels.items():
            for tag, (source, consumer, _, message) in channel.unacked.items():
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


def _delayed(queue: Queue) -> Iterator[Seen]:
    for exchange in queue.vhost.exchanges.values():
        if isinstance(exchange, DelayedExchange):
            for due_ms, message in exchange.delayed_for(queue, SCAN_MAX):
                yield message, {"redelivered": False, "due_ms": due_ms}


def move(request: Request) -> dict[str, Any]:
    """How many messages were moved, how many are left, and why no more were."""
    vhost, broker, user = entered_vhost(request), request.broker, request.user
    given = body.body_of(request, "destination")
    destination = given["destination"]
    if not isinstance(destination, dict) or ("queue" in destination) is ("exchange" in destination):
        raise bad_request("destination must be an object with either queue or exchange")
    there_name = body.text(destination, "vhost", vhost.name)
    there = broker.vhosts.get(there_name)
    if there is None or not user.can_open(there_name):
        raise bad_request(f"vhost '{there_name}' is none that you can open")
    try:
        user.require("read", vhost.name, "queue", request.path["queue"])
        source = vhost.queue(request.path["queue"])
        count = body.integer(given, "count", source.ready_count)
        if count < 0:
            raise bad_request("count must not be negative")
        if "queue" in destination:
            user.require("write", there.name, "exchange", "")
            target = there.queue(body.text(destination, "queue"))
            if target is source:
                raise bad_request("destination must be another queue")
            moved = move_to_queue(source, count, target)
        else:
            name = body.text(destination, "exchange")
            name = "" if name == DEFAULT_EXCHANGE_NAME else name
            user.require("write", there.name, "exchange", name)
            moved = move_to_exchange(source, count, there, there.exchange(name))
    except AMQPError as error:
        raise channel_refusal(error) from None
    return {"moved": moved.messages, "messages_ready": source.ready_count, "reason": moved.reason or None}


RESOURCES = (
    Resource("/_broker/queues/{vhost}/{queue}/peek", MANAGEMENT, {"GET": peek}),
    Resource("/_broker/queues/{vhost}/{queue}/move", MANAGEMENT, {"POST": move}),
)
