"""The event log: what happened to messages, to be listed, waited for and asserted.

A wait that fails is a 409, not a 408, which HTTP clients repeat by themselves. Its `reason` is text for people: the
expected and the actual events, and the messages that came closest.
"""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, structs

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.observe.event_log import BYTES_MAX, EVENTS_MAX, Event, EventLog, MessageWait
from amqp_broker.broker.observe.matching import EVENTS, Criteria, failure
from amqp_broker.broker.observe.matching import UNSET as ANY_BODY
from amqp_broker.broker.observe.waiting import IdleWait
from amqp_broker.management.documents.logged_events import event_row
from amqp_broker.management.documents.values import text_of
from amqp_broker.management.http.answers import NO_CONTENT, Answer, Deferred, Refusal, bad_request, no_such
from amqp_broker.management.http.auth import ADMINISTRATOR
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import Count, Integer, Switch, VHostQuery, read_by

endpoints = Endpoints()

LIMIT_DEFAULT: Final = 100
LIMIT_MAX: Final = 1000
TIMEOUT_S_MAX: Final = 600.0
# Octets of bodies in one answer.
ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
# Digits of a message number.
DIGITS_MAX: Final = 18


class LogLimits(Struct):
    """The limits of an event log; older events are dropped."""

    events_max: Integer = EVENTS_MAX
    bytes_max: Integer = BYTES_MAX


def _octets(name: str, value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise bad_request(f"{name} is not base64") from None


def _json(name: str, value: str) -> Any:
    try:
        return msgspec.json.decode(value.encode("utf-8", "surrogateescape"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise bad_request(f"{name} is not JSON") from None


def _object(name: str, value: str) -> dict[str, Any]:
    decoded = _json(name, value)
    if not isinstance(decoded, dict):
        raise bad_request(f"{name} must be a JSON object")
    return decoded


JSONText = Annotated[Any, read_by(_json, type="string")]
JSONObject = Annotated[Any, read_by(_object, type="string")]
Timeout = Annotated[float, Meta(ge=0, le=TIMEOUT_S_MAX, description=f"a number from 0 to {TIMEOUT_S_MAX:.0f}")]


class EventQuery(Struct, forbid_unknown_fields=True):
    """Criteria of events; a request waits up to `timeout_s` for `count` of them, or for `none` to occur."""

    vhost: str | None = None
    exchange: str | None = None
    routing_key: str | None = None
    queue: str | None = None
    event: Annotated[str, Meta(extra_json_schema={"enum": [*EVENTS, "any"]})] = "publish"
    body: str | None = None
    body_base64: Annotated[bytes, read_by(_octets, type="string")] | None = None
    body_json: JSONText = UNSET
    body_regex: str | None = None
    headers: JSONObject = {}
    properties: JSONObject = {}
    since: Count = 0
    count: Count | None = None
    none: Switch = False
    timeout_s: Timeout = 0.0
    limit: Count = LIMIT_DEFAULT
    truncate: Count | None = None
    columns: str = ""


class IdleQuery(Struct):
    """A vhost or a queue, and how long to wait for it."""

    vhost: str | None = None
    queue: str | None = None
    timeout_s: Timeout = 0.0


@endpoints.on("GET /_broker/event-log", tag=ADMINISTRATOR)
def event_logs(request: Request) -> list[dict[str, Any]]:
    """List the event logs of all vhosts, with their sizes."""
    return [
        {
            "vhost": log.vhost.name,
            "events": len(log.events),
            "skipped": log.skipped,
            **beginning_of(log),
            "events_max": log.events_max,
            "bytes_max": log.bytes_max,
        }
        for log in request.broker.event_logs
    ]


@endpoints.on("PUT /_broker/event-log", tag=ADMINISTRATOR, statuses=(204,))
def start_all(request: Request) -> Answer:
    """Log the events of all vhosts, present and future."""
    request.broker.event_logs.start_all()
    return NO_CONTENT


@endpoints.on("DELETE /_broker/event-log", tag=ADMINISTRATOR)
def stop_all(request: Request) -> Answer:
    """Stop all event logs and discard their events."""
    request.broker.event_logs.stop_all()
    return NO_CONTENT


@endpoints.on("PUT /_broker/event-log/{vhost}", tag=ADMINISTRATOR, body=LogLimits, statuses=(204,))
def start(request: Request) -> Answer:
    """Log the events of a vhost."""
    limits = structs.asdict(request.read(LogLimits))
    for name, value in limits.items():
        if value < 1:
            raise bad_request(f"{name} must be positive")
    request.broker.event_logs.start(request.vhost, **limits)
    return NO_CONTENT


@endpoints.on("DELETE /_broker/event-log/{vhost}", tag=ADMINISTRATOR)
def stop(request: Request) -> Answer:
    """Stop the event log of a vhost and discard its events."""
    request.broker.event_logs.stop(request.vhost)
    return NO_CONTENT


@endpoints.on("GET /_broker/messages", tag=ADMINISTRATOR, query=EventQuery)
def messages(request: Request) -> Any:
    """List the events of [messages](messages.md), at once or when enough of them match."""
    query = request.read_query(EventQuery)
    log, criteria = _log(request, query.vhost), _criteria(query)
    if query.count is None and not query.none:
        return _page(log, criteria, query)
    if query.none and query.count is not None:
        raise bad_request("count and none exclude each other")
    count = query.count or 0
    if count > log.events_max:
        raise bad_request(f"count must not exceed {log.events_max}, the capacity of the event log")
    wait = MessageWait(log, criteria, count, none=query.none)

    def answer() -> dict[str, Any]:
        if not wait.is_met:
            wanted = "none" if query.none else f"{count}"
            raise Refusal(409, "not_met", failure(log, criteria, wanted))
        return _page(log, criteria, query)

    return answer() if wait.is_done or not query.timeout_s else Deferred(wait, query.timeout_s, answer)


@endpoints.on("DELETE /_broker/messages", tag=ADMINISTRATOR, query=VHostQuery)
def clear(request: Request) -> Answer:
    """Discard the events of one vhost or of all."""
    vhost = request.read_query(VHostQuery).vhost
    if vhost is not None:
        _log(request, vhost).clear()
    else:
        for log in request.broker.event_logs:
            log.clear()
    return NO_CONTENT


@endpoints.on("GET /_broker/messages/{number}", tag=ADMINISTRATOR)
def timeline(request: Request) -> dict[str, Any]:
    """Return all events of a message, and of the dead letters that it became."""
    events = timeline_of(request)
    rows = [event_row(event) for event in events]
    number = int(request.path["number"])
    return {"message_number": number, "vhost": text_of(events[0].vhost), "events": rows}


def timeline_of(request: Request) -> list[Event]:
    """Return all events of the message of a path. Raise Refusal."""
    text = request.path["number"]
    if not text.isascii() or not text.isdigit() or len(text) > DIGITS_MAX:
        raise bad_request("the number of a message must be a whole number")
    events = request.broker.event_logs.timeline(int(text))
    if not events:
        raise no_such(f"no message {text} in the event logs")
    return events


@endpoints.on("GET /_broker/idle", tag=ADMINISTRATOR, query=IdleQuery)
def idle(request: Request) -> Any:
    """Wait until no message is ready or unacked, in a vhost or in a queue."""
    query = request.read_query(IdleQuery)
    name = request.broker.settings.default_vhost if query.vhost is None else query.vhost
    queue, timeout_s = query.queue, query.timeout_s
    vhost = request.broker.vhosts.get(name)
    if vhost is None or (queue is not None and queue not in vhost.queues):
        raise no_such(f"no vhost '{name}'" if vhost is None else f"no queue '{queue}' in {vhost}")
    wait = IdleWait(vhost, queue)

    def answer() -> dict[str, Any]:
        if not wait.is_done:
            busy = [f"queue '{one.queue}' has {one.ready} ready and {one.unacked} unacked" for one in wait.busy()]
            raise Refusal(409, "not_idle", "\n".join(busy))
        return {"is_idle": True}

    return answer() if wait.is_done or not timeout_s else Deferred(wait, timeout_s, answer)


# Reading and answering


def _log(request: Request, name: str | None) -> EventLog:
    """Return the event log of a vhost, or of the default vhost. Raise Refusal."""
    name = request.broker.settings.default_vhost if name is None else name
    vhost = request.broker.vhosts.get(name)
    if vhost is None:
        raise no_such(f"no vhost '{name}'")
    log = request.broker.event_logs.of(vhost)
    if log is None:
        raise bad_request(
            f"{vhost} has no event log: start the broker with --event-log, or a log now by PUT /_broker/event-log"
        )
    return log


def _criteria(query: EventQuery) -> Criteria:
    if query.body is not None and query.body_base64 is not None:
        raise bad_request("body and body_base64 exclude each other")
    body = None if query.body is None else query.body.encode("utf-8", "surrogateescape")
    try:
        return Criteria(
            event=None if query.event == "any" else query.event.replace("-", "_"),
            exchange=query.exchange,
            routing_key=query.routing_key,
            queue=query.queue,
            body=body if query.body_base64 is None else query.body_base64,
            body_json=ANY_BODY if query.body_json is UNSET else query.body_json,
            body_regex=query.body_regex,
            headers=query.headers,
            properties=query.properties,
            since=query.since,
        )
    except InvalidParameter as error:
        raise bad_request(str(error)) from None


def _page(log: EventLog, criteria: Criteria, query: EventQuery) -> dict[str, Any]:
    """Return the `count` of matching events, a page of them, and `next`, the `since` of the next page."""
    matching = log.matching(criteria)
    shown: list[dict[str, Any]] = []
    octets, last = 0, criteria.since
    for event in matching[: min(query.limit, LIMIT_MAX)]:
        if octets >= ANSWER_BYTES_MAX:
            break
        message = log.message_of(event)
        shown.append(event_row(event, message, query.truncate))
        octets += 0 if message is None else message.body_bytes
        last = event.sequence
    if len(shown) == len(matching) and log.events:
        last = max(last, log.events[-1].sequence)
    answer = {"count": len(matching), "messages": shown, "next": last, "skipped": log.skipped}
    return answer | beginning_of(log)


def beginning_of(log: EventLog) -> dict[str, int]:
    """Return when a log began (the broker's time), and how many messages were published before."""
    return {"began_at_us": log.began_at_us, "published_before": log.published_before}
