"""The rows of logged events: what the API and reports show of an event and its message."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from amqp_broker.broker.observe.matching import ROUTED
from amqp_broker.management.documents.values import json_of, shown, text_of

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.observe.event_log import Event


def event_row(event: Event, message: Message | None = None, truncate: int | None = None) -> dict[str, Any]:
    """Return the row of an event, with its message if that is known."""
    row: dict[str, Any] = {
        "sequence": event.sequence,
        "event": event.kind,
        "time_us": int(event.time_us),
        "message_number": int(event.number),
        "vhost": text_of(event.vhost),
        "exchange": text_of(event.exchange),
        "routing_key": text_of(event.routing_keys[0]) if event.routing_keys else "",
        "routing_keys": json_of(event.routing_keys),
        "queue": None if event.queue is None else text_of(event.queue),
        **{name: shown(value) for name, value in event.more.items()},
    }
    if event.kind in ROUTED:
        row["routed_queues"] = json_of(event.queues)
    message = event.message if message is None else message
    if message is not None:
        octets = message.body
        payload, encoding = encoded(octets if truncate is None else _cut(octets, truncate), "auto")
        row["properties"] = shown(message.properties().as_dict())
        row |= {"payload_bytes": len(octets), "payload": payload, "payload_encoding": encoding}
    return row


def _cut(octets: bytes, size: int) -> bytes:
    """Return the first octets of a body, without a part of a letter at their end."""
    part = octets[:size]
    try:
        part.decode()
    except UnicodeDecodeError as error:
        # Of UTF-8, the last letter may have up to three octets here.
        if len(octets) > size and error.end == len(part) and error.start >= len(part) - 3:
            return part[: error.start]
    return part


def encoded(octets: bytes, encoding: str) -> tuple[str, str]:
    """Return octets as text, and its encoding: `string` for UTF-8 if `encoding` is `auto`, else `base64`."""
    if encoding == "auto":
        try:
            return octets.decode(), "string"
        except UnicodeDecodeError:
            pass
    return base64.b64encode(octets).decode(), "base64"
