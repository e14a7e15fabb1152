"""Messages over HTTP: publish one, get some, purge.

Source: rabbit_mgmt_wm_exchange_publish.erl, rabbit_mgmt_wm_queue_get.erl, rabbit_mgmt_wm_queue_purge.erl;
rabbit_mgmt_format.erl (basic_properties, to_basic_properties).
"""

from __future__ import annotations

from collections import deque
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from amqp_broker.amqp.errors import AccessRefused, AMQPError, NotFound, NotImplemented_
from amqp_broker.amqp.message import Message, Properties
from amqp_broker.broker.clients.peer import Peer
from amqp_broker.broker.operations.checked_publish import publishing
from amqp_broker.broker.operations.interceptors import as_sent
from amqp_broker.broker.queues.ownership import check_owner
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.broker.vhost import VHost
from amqp_broker.management.documents.logged_events import encoded
from amqp_broker.management.documents.properties import InvalidProperty, properties_of
from amqp_broker.management.documents.values import SHORTSTR_BYTES_MAX, json_of_table, text_of
from amqp_broker.management.http.answers import (
    NO_CONTENT,
    Answer,
    Refusal,
    bad_request,
    bad_term,
    no_such,
    not_authorised,
    not_found,
)
from amqp_broker.management.http.auth import MANAGEMENT
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import integer, octets_of_base64, read_by

endpoints = Endpoints()

# ackmode -> True: messages are requeued; False: they are rejected; None: they are acknowledged at once.
ACK_MODES: Final[dict[str, bool | None]] = {
    "ack_requeue_true": True,
    "ack_requeue_false": None,
    "reject_requeue_true": True,
    "reject_requeue_false": False,
}
# An answer ends with the message that goes beyond this many octets; the next request continues there.
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
# Messages that come back in one step.
RETURNED_MAX: Final = 1024


# Shapes of bodies


def _properties(name: str, value: Any) -> Properties:
    try:
        return properties_of(value)
    except InvalidProperty as error:
        raise Refusal(400, "bad_request", error.reason) from None


def _payload_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise bad_request("payload_not_string")
    return value


def _routing_key(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value.encode()) > SHORTSTR_BYTES_MAX:
        raise bad_request(f"{name} must be a string of at most {SHORTSTR_BYTES_MAX} octets")
    return value


def _ack_mode(name: str, value: Any) -> str:
    if not isinstance(value, str) or value not in ACK_MODES:
        shown = chr(value) if isinstance(value, int) and 0 <= value < 128 else value
        raise bad_request(f"Invalid ackmode value: {shown}. Valid values are: {', '.join(ACK_MODES)}")
    return value


def read_encoding(name: str, value: Any) -> str:
    """Return `auto` or `base64`. Raise Refusal, in RabbitMQ's words, for anything else."""
    if value not in ("auto", "base64"):
        raise bad_request("Unsupported encoding. Please use auto or base64.")
    return str(value)


def _truncate(name: str, value: Any) -> int | None:
    length = None if value is None else integer(name, value)
    if length is not None and length < 0:
        raise bad_request("truncate must not be negative")
    return length


_TEXTS: Final = ("content_type", "correlation_id", "expiration", "message_id", "reply_to", "type", "user_id")
_PROPERTIES_SCHEMA: Final = {
    "headers": {"type": "object"},
    **{name: {"type": "integer", "minimum": 0, "maximum": 255} for name in ("delivery_mode", "priority")},
    "timestamp": {"type": "integer", "minimum": 0},
    **{name: {"type": "string", "maxLength": 63} for name in _TEXTS},
}

Encoding = Annotated[str, read_by(read_encoding, enum=["auto", "base64"])]


class NewMessage(Struct):
    """A message to publish; its properties have the names of AMQP."""

    routing_key: Annotated[str, read_by(_routing_key, maxLength=63)]
    properties: Annotated[Any, read_by(_properties, type="object", properties=_PROPERTIES_SCHEMA)]
    payload: Annotated[str, read_by(_payload_text)]
    payload_encoding: Annotated[Any, Meta(extra_json_schema={"enum": ["string", "base64"]})]


class GetOptions(Struct):
    """The number of messages to get, and how they are settled."""

    ackmode: Annotated[str, read_by(_ack_mode, enum=list(ACK_MODES))]
    count: Annotated[int, read_by(integer)]
    encoding: Encoding
    truncate: Annotated[int | None, read_by(_truncate, type="integer", minimum=0)] = None


class HTTPPeer(Peer):
    """The publisher or consumer over HTTP as a trace shows it, without an AMQP connection."""

    def __init__(self, request: Request, vhost: VHost) -> None:
        super().__init__("", 0, "", 0, request.broker.now)
        self.name = f"<{request.broker.node}>"
        self.user = request.user


def entered_vhost(request: Request) -> VHost:
    """Return the vhost in the path, which the user may open. Raise Refusal, in the words of a failed connection."""
    if request.path["vhost"] not in request.broker.vhosts:
        raise not_found()
    vhost = request.vhost
    if not request.user.can_open(vhost.name):
        raise not_authorised("Access refused.")
    return vhost


def check_limits(request: Request, vhost: VHost) -> None:
    """Raise Refusal if one more connection, which RabbitMQ opens for the request, would be too many."""
    if request.broker.has_reached_limit(request.user, vhost):
        raise not_authorised("Access refused.")


def channel_refusal(error: AMQPError) -> Refusal:
    """Return the refusal of an error that would close an AMQP channel."""
    if isinstance(error, NotFound):
        return Refusal(404, "not_found", error.reply_text)
    if isinstance(error, AccessRefused):
        return not_authorised(error.reply_text)
    return bad_request(f"{error.code} {error if isinstance(error, NotImplemented_) else error.reply_text}")


# Publishing


@endpoints.on("POST /api/exchanges/{vhost}/{name}/publish", tag=MANAGEMENT, body=NewMessage, statuses=(200,))
def publish(request: Request) -> Steps[dict[str, Any]]:
    """Publish a message; `routed` in the answer says whether it reached a queue."""
    broker, is_newer = request.broker, request.broker.profile.release >= (4, 0)
    if request.path["vhost"] not in broker.vhosts:
        raise no_such("vhost_not_found") if is_newer else not_authorised("Access refused.")
    vhost = entered_vhost(request)
    if is_newer and request.exchange_name() not in vhost.exchanges:
        raise no_such("exchange_not_found")
    check_limits(request, vhost)
    given = request.read(NewMessage)
    payload = _payload(given.payload, given.payload_encoding)
    try:
        published = yield from publishing(
            vhost, HTTPPeer(request, vhost), request.exchange_name(), given.routing_key, given.properties, payload
        )
    except AMQPError as error:
        # RabbitMQ answers any error that closes its channel as a bad request.
        raise bad_request(f"{error.code} {error.reply_text}") from None
    if not published.is_taken:
        raise bad_request("rejected Unable to publish message. Check queue limits.")
    return {"routed": bool(published.queues)}


def _payload(payload: str, encoding: Any) -> bytes:
    if encoding == "string":
        return payload.encode()
    if encoding == "base64":
        return octets_of_base64(payload)
    raise bad_term("unsupported_encoding", encoding)


# Getting


def message_row(
    message: Message, redelivered: bool, message_count: int, encoding: str, truncate: int | None
) -> dict[str, Any]:
    """Return a message as RabbitMQ's API shows it; `truncate` is the longest payload in octets."""
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
        "properties": {name: json_of_table(value) for name, value in properties.items()} if properties else [],
        "payload": payload,
        "payload_encoding": used,
    }


@endpoints.on("POST /api/queues/{vhost}/{queue}/get", tag=MANAGEMENT, body=GetOptions, statuses=(200,))
def get(request: Request) -> Steps[list[dict[str, Any]]]:
    """Get messages, and requeue, reject or acknowledge them as `ackmode` says."""
    vhost = entered_vhost(request)
    name = request.path["queue"]
    if name not in vhost.queues and request.broker.profile.release >= (4, 0):
        raise no_such("queue_not_found")
    check_limits(request, vhost)
    given = request.read(GetOptions)
    if given.count == 0:
        # Before 4.0, the queue need not be there.
        return []
    try:
        request.user.require("read", vhost.name, "queue", name)
        queue = vhost.queue(name)
        return (yield from _get(vhost, HTTPPeer(request, vhost), queue, given))
    except AMQPError as error:
        raise channel_refusal(error) from None


def _get(vhost: VHost, connection: Peer, queue: Queue, options: GetOptions) -> Steps[list[dict[str, Any]]]:
    requeue = ACK_MODES[options.ackmode]
    found: list[dict[str, Any]] = []
    taken: deque[tuple[int, Message]] = deque()
    answer_bytes = 0
    # A negative count gets all messages, but not those that arrive meanwhile.
    count = options.count if options.count >= 0 else max(queue.ready_count, 1)
    try:
        while len(found) != count and answer_bytes < ANSWER_BYTES_MAX:
            yield from queue.held()
            with vhost.broker.dead_letters_held(serves_freed=False):
                queue.expire()
                if queue.holds and not queue.is_deleted:
                    continue
                pulled = pull(vhost, connection, queue, requeue, is_first=not found)
                left = queue.ready_count
                queue.expire()
            if pulled is None:
                break
            position, message, redelivered = pulled
            sent = as_sent(vhost.broker, message)
            found.append(message_row(sent, redelivered, left, options.encoding, options.truncate))
            answer_bytes += len(message.content)
            if requeue is not None:
                taken.append((position, message))
            yield
        if options.ackmode == "ack_requeue_true" and vhost.broker.profile.release < (4, 0):
            yield from _return_as_lost(vhost, connection, queue, taken)
        while taken:
            _settle(vhost, connection, queue, *taken.popleft(), options.ackmode)
            yield
    finally:
        # If the request is given up, nothing stays unacked.
        while taken:
            _settle(vhost, connection, queue, *taken.popleft(), options.ackmode)
    return found


def pull(
    vhost: VHost, connection: Peer, queue: Queue, requeue: bool | None, *, is_first: bool
) -> tuple[int, Message, bool] | None:
    """Take a message; return its position, the message as delivered, and whether it was delivered before."""
    queue.use()
    pulled = queue.pull(no_ack=requeue is None)
    if pulled is None:
        for counts in queue.statistics.delivery_counts:
            counts.get_empty += is_first
        return None
    message, position, redelivered = pulled
    for counts in queue.statistics.delivery_counts:
        counts.get_no_ack += requeue is None
        counts.get += requeue is not None
        counts.redeliver += redelivered
    delivered = queue.as_delivered(message, position)
    if requeue is None:
        queue.forget(position, message)
    else:
        queue.unacked_count += 1
    if vhost.trace is not None:
        vhost.trace.delivered(queue, delivered, redelivered, connection, 1, requeue is None)
    return position, delivered, redelivered


def _settle(vhost: VHost, connection: Peer, queue: Queue, position: int, message: Message, ackmode: str) -> None:
    """Requeue or reject a message. A consumer that is ready gets it at once."""
    requeue = bool(ACK_MODES[ackmode])
    if ackmode.startswith("reject"):
        queue.note_failure(position)
    if vhost.trace is not None:
        vhost.trace.nacked(queue, message, requeue, connection, 1)
    if requeue:
        queue.requeue(position, message)
        queue.serve_returned()
    else:
        queue.reject(position, message)


def _return_as_lost(vhost: VHost, connection: Peer, queue: Queue, taken: deque[tuple[int, Message]]) -> Steps[None]:
    """Return messages as the end of a channel does: before 4.0, RabbitMQ leaves them to that.

    They come back by the text of their delivery tags, 10 before 9, and are delivered when all are back.
    """
    by_tag = [message for _, message in sorted(enumerate(taken, 1), key=lambda numbered: str(numbered[0]))]
    taken.clear()
    taken.extend(by_tag)
    queue.hold()
    try:
        while taken:
            portion = [taken.popleft() for _ in range(min(RETURNED_MAX, len(taken)))]
            if vhost.trace is not None:
                for _, message in portion:
                    vhost.trace.nacked(queue, message, True, connection, 1)
            queue.requeue_all(portion, has_failed=True, is_lost=True)
            yield
    finally:
        queue.end_hold()
        queue.serve_returned()


@endpoints.on("DELETE /api/queues/{vhost}/{queue}/contents", tag=MANAGEMENT)
def purge(request: Request) -> Answer:
    """Remove all ready messages from a queue."""
    vhost = request.vhost
    queue = vhost.queues.get(request.path["queue"])
    if queue is None:
        raise not_found()
    request.user.require("read", vhost.name, "queue", queue.name)
    check_owner(queue, None)
    try:
        queue.purge()
    except NotImplemented_ as error:
        raise bad_request(str(error)) from None
    return NO_CONTENT
