"""Messages over HTTP: publish one, get some, purge.

Source: rabbit_mgmt_wm_exchange_publish.erl, rabbit_mgmt_wm_queue_get.erl, rabbit_mgmt_wm_queue_purge.erl;
rabbit_mgmt_format.erl (basic_properties, to_basic_properties).
"""

from __future__ import annotations

import base64
from typing import Any, Final

from amqp_broker import fields
from amqp_broker.broker.connection import Connection
from amqp_broker.broker.publishing import publish as publish_message
from amqp_broker.broker.queue import Queue
from amqp_broker.broker.vhost import VHost
from amqp_broker.errors import AccessRefused, AMQPError, NotFound, NotImplemented_
from amqp_broker.management import body
from amqp_broker.management.access import MANAGEMENT
from amqp_broker.management.json import to_table
from amqp_broker.management.request import (
    NO_CONTENT,
    Answer,
    Refusal,
    Request,
    Resource,
    bad_request,
    not_authorised,
    not_found,
)
from amqp_broker.management.values import SHORTSTR_BYTES_MAX, json_of, text_of
from amqp_broker.message import PROPERTIES, Message, Properties

# ackmode -> whether messages come back, and whether that counts as rejected; None: they are gone at once.
ACK_MODES: Final[dict[str, bool | None]] = {
    "ack_requeue_true": True,
    "reject_requeue_true": True,
    "ack_requeue_false": None,
    "reject_requeue_false": False,
}
# An answer ends with the message that goes beyond this many octets; who asks again gets those that follow.
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
TIMESTAMP_MAX: Final = (1 << 64) - 1
_NUMBERS: Final = {"octet": 255, "timestamp": TIMESTAMP_MAX}


class Asking(Connection):
    """Who publishes or gets over HTTP, as a trace tells of it; there is no connection of AMQP."""

    def __init__(self, request: Request, vhost: VHost) -> None:
        super().__init__("", 0, "", 0, request.broker.now)
        self.name = f"<{request.broker.node}>"
        self.user, self.vhost = request.user, vhost


def entered_vhost(request: Request) -> VHost:
    """The vhost in the path, which the user may open. Raises Refusal in the words of a connection that failed."""
    if request.path["vhost"] not in request.broker.vhosts:
        raise not_found()
    vhost = request.vhost
    if not request.user.can_open(vhost.name):
        raise not_authorised("Access refused.")
    return vhost


def channel_refusal(error: AMQPError) -> Refusal:
    """The answer to what a channel of AMQP would be closed for."""
    if isinstance(error, NotFound):
        return Refusal(404, "not_found", error.reply_text)
    if isinstance(error, AccessRefused):
        return not_authorised(error.reply_text)
    return bad_request(f"{error.code} {error if isinstance(error, NotImplemented_) else error.reply_text}")


# Publishing


def publish(request: Request) -> dict[str, Any]:
    if request.path["vhost"] not in request.broker.vhosts:
        raise not_authorised("Access refused.")
    vhost = entered_vhost(request)
    given = body.body_of(request, "routing_key", "properties", "payload", "payload_encoding")
    payload = _payload(given["payload"], given["payload_encoding"])
    routing_key = given["routing_key"]
    if not isinstance(routing_key, str) or len(routing_key.encode()) > SHORTSTR_BYTES_MAX:
        raise bad_request(f"routing_key must be a string of at most {SHORTSTR_BYTES_MAX} octets")
    properties = properties_of(given["properties"])
    try:
        published = publish_message(
            vhost, Asking(request, vhost), request.exchange_name(), routing_key, properties, payload
        )
    except AMQPError as error:
        # What RabbitMQ hears of a publish comes as the end of a channel: it is a bad request whatever it is.
        raise bad_request(f"{error.code} {error.reply_text}") from None
    if not published.is_taken:
        raise bad_request("rejected Unable to publish message. Check queue limits.")
    return {"routed": bool(published.queues)}


def _payload(payload: Any, encoding: Any) -> bytes:
    if not isinstance(payload, str):
        raise bad_request("payload_not_string")
    if encoding == "string":
        return payload.encode()
    if encoding == "base64":
        return body.octets(payload)
    raise body.refused_term("unsupported_encoding", encoding)


def properties_of(given: Any) -> Properties:
    """The properties that a JSON object says; what is none of them is passed over. Raises Refusal."""
    if not isinstance(given, dict):
        raise bad_request("properties must be an object")
    values: dict[str, Any] = {}
    for name, _, kind in PROPERTIES:
        if name not in given:
            continue
        value = given[name]
        if kind == "table":
            values[name] = _headers(value)
        elif kind == "shortstr":
            if not isinstance(value, str):
                raise body.refused_term("not_string", name)
            if len(value.encode()) > SHORTSTR_BYTES_MAX:
                raise bad_request(f"{name} is longer than {SHORTSTR_BYTES_MAX} octets")
            values[name] = value
        else:
            if not isinstance(value, int) or isinstance(value, bool):
                raise body.refused_term("not_int", name)
            if not 0 <= value <= _NUMBERS[kind]:
                raise bad_request(f"{name} must be from 0 to {_NUMBERS[kind]}, actually was {value}")
            values[name] = value
    return Properties(**values)


def _headers(given: Any) -> fields.Table:
    if not isinstance(given, (dict, list)) or (isinstance(given, list) and given):
        raise bad_request("headers must be an object")
    return to_table(given)


# Getting


def described(
    message: Message, redelivered: bool, message_count: int, encoding: str, truncate: int | None
) -> dict[str, Any]:
    """A message in the words of RabbitMQ's API."""
    octets = message.body
    shown = octets if truncate is None else octets[:truncate]
    payload, used = encoded(shown, encoding)
    properties = message.properties().as_dict()
    return {
        "payload_bytes": len(octets),
        "redelivered": redelivered,
        "exchange": text_of(message.exchange),
        "routing_key": text_of(message.routing_key),
        "message_count": message_count,
        "properties": {name: json_of(value) for name, value in properties.items()} if properties else [],
        "payload": payload,
        "payload_encoding": used,
    }


def encoded(octets: bytes, encoding: str) -> tuple[str, str]:
    """Octets as text and how that is to be read: `string` if they are UTF-8 and that is wanted (`auto`)."""
    if encoding == "auto":
        try:
            return octets.decode(), "string"
        except UnicodeDecodeError:
            pass
    return base64.b64encode(octets).decode(), "base64"


def get(request: Request) -> list[dict[str, Any]]:
    vhost = entered_vhost(request)
    given = body.body_of(request, "ackmode", "count", "encoding")
    ack_mode, encoding = given["ackmode"], given["encoding"]
    if not isinstance(ack_mode, str) or ack_mode not in ACK_MODES:
        raise bad_request(f"Unsupported ackmode. Please use {', '.join(ACK_MODES)}.")
    # A negative count is all there is.
    count = body.integer(given, "count")
    if encoding not in ("auto", "base64"):
        raise bad_request("Unsupported encoding. Please use auto or base64.")
    truncate = body.integer(given, "truncate") if given.get("truncate") is not None else None
    if truncate is not None and truncate < 0:
        raise bad_request("truncate must not be negative")
    name = request.path["queue"]
    try:
        request.user.require("read", vhost.name, "queue", name)
        queue = vhost.queue(name)
        return _get(Asking(request, vhost), queue, ACK_MODES[ack_mode], count, encoding, truncate)
    except AMQPError as error:
        raise channel_refusal(error) from None


def _get(
    connection: Connection, queue: Queue, requeue: bool | None, count: int, encoding: str, truncate: int | None
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    taken: list[tuple[int, Message]] = []
    answer_bytes, trace = 0, queue.vhost.trace
    while len(found) != count and answer_bytes < ANSWER_BYTES_MAX:
        queue.use()
        pulled = queue.pull()
        if pulled is None:
            if not found:
                for counts in queue.delivery_counts:
                    counts.get_empty += 1
            break
        message, position, redelivered = pulled
        for counts in queue.delivery_counts:
            counts.get_no_ack += requeue is None
            counts.get += requeue is not None
            counts.redeliver += redelivered
        delivered = queue.as_delivered(message, position)
        found.append(described(delivered, redelivered, queue.ready_count, encoding, truncate))
        answer_bytes += len(message.content)
        if requeue is None:
            queue.forget(position, message)
        else:
            queue.unacked_count += 1
            taken.append((position, delivered))
        if trace is not None:
            trace.delivered(queue, delivered, redelivered, connection, 1, requeue is None)
    if requeue is not None:
        for position, message in taken:
            _settle(connection, queue, position, message, requeue)
        queue.drain()
    return found


def _settle(connection: Connection, queue: Queue, position: int, message: Message, requeue: bool) -> None:
    if queue.vhost.trace is not None:
        queue.vhost.trace.nacked(queue, message, requeue, connection, 1)
    if requeue:
        queue.note_failure(position)
        queue.requeue(position, message)
    else:
        queue.reject(position, message)


def purge(request: Request) -> Answer:
    vhost = request.vhost
    queue = vhost.queues.get(request.path["queue"])
    if queue is None:
        raise not_found()
    request.user.require("read", vhost.name, "queue", queue.name)
    queue.check_owner(None)
    try:
        queue.purge()
    except NotImplemented_ as error:
        raise bad_request(str(error)) from None
    return NO_CONTENT


RESOURCES = (
    Resource("/api/exchanges/{vhost}/{name}/publish", MANAGEMENT, {"POST": publish}),
    Resource("/api/queues/{vhost}/{queue}/get", MANAGEMENT, {"POST": get}),
    Resource("/api/queues/{vhost}/{queue}/contents", MANAGEMENT, {"DELETE": purge}),
)
