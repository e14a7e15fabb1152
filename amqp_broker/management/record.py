"""What happened to messages, asked for, waited for and asserted (docs/messages.md).

    PUT    /_broker/record, /_broker/record/{vhost}      record all vhosts, or one; DELETE ends it
    GET    /_broker/messages?vhost=&exchange=&…          the events that match, oldest first
           …&count=5&timeout_s=10                        wait until so many match
           …&none=true&timeout_s=1                       wait whether none does
    DELETE /_broker/messages?vhost=                      forget what was recorded
    GET    /_broker/messages/{number}                    the life of one message
    GET    /_broker/idle?vhost=&queue=&timeout_s=        wait until nothing is ready or unacked

What is waited for and does not come true is a 409, not a 408, which clients of HTTP repeat by themselves. Its `reason`
is text for people: what was wanted, what is there, and which messages came closest.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

import msgspec

from amqp_broker.broker.matching import UNSET, Criteria, failure
from amqp_broker.broker.record import BYTES_MAX, EVENTS_MAX, Event, MessageWait, Record
from amqp_broker.broker.waiting import IdleWait
from amqp_broker.errors import InvalidParameter
from amqp_broker.management import body
from amqp_broker.management.access import ADMINISTRATOR
from amqp_broker.management.messages import encoded
from amqp_broker.management.request import (
    DEFAULT_EXCHANGE_NAME,
    NO_CONTENT,
    Answer,
    Deferred,
    Refusal,
    Request,
    Resource,
    bad_request,
)
from amqp_broker.management.values import json_of, text_of

LIMIT_DEFAULT: Final = 100
LIMIT_MAX: Final = 1000
TIMEOUT_S_MAX: Final = 600.0
# Octets of bodies in one answer.
ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
INTEGER_DIGITS_MAX: Final = 18
QUERY: Final = frozenset(
    {
        *("vhost", "exchange", "routing_key", "queue", "event", "since", "body", "body_base64", "body_json"),
        *("body_regex", "headers", "properties", "count", "none", "timeout_s", "limit", "truncate", "columns"),
    }
)


def records(request: Request) -> list[dict[str, Any]]:
    """GET /_broker/record: which vhosts are recorded, and how much of each there is."""
    return [
        {
            "vhost": record.vhost.name,
            "events": len(record.events),
            "skipped": record.skipped,
            "events_max": record.events_max,
            "bytes_max": record.bytes_max,
        }
        for record in request.broker.records
    ]


def start_all(request: Request) -> Answer:
    """PUT /_broker/record: record all vhosts from now on, also those that come."""
    request.broker.records.start_all()
    return NO_CONTENT


def stop_all(request: Request) -> Answer:
    """DELETE /_broker/record: record nothing any more, and forget what was recorded."""
    request.broker.records.stop_all()
    return NO_CONTENT


def start(request: Request) -> Answer:
    """PUT /_broker/record/{vhost}: record a vhost from now on."""
    given = request.json()
    limits = {name: body.integer(given, name, most) for name, most in _LIMITS.items()}
    for name, value in limits.items():
        if value < 1:
            raise bad_request(f"{name} must be positive")
    request.broker.records.start(request.vhost, **limits)
    return NO_CONTENT


_LIMITS: Final = {"events_max": EVENTS_MAX, "bytes_max": BYTES_MAX}


def stop(request: Request) -> Answer:
    """DELETE /_broker/record/{vhost}: record a vhost no more, and forget what was recorded."""
    request.broker.records.stop(request.vhost)
    return NO_CONTENT


def messages(request: Request) -> Any:
    """GET /_broker/messages: the recorded events that match, at once or when enough of them do."""
    unknown = set(request.query) - QUERY
    if unknown:
        raise bad_request(f"unknown: {', '.join(sorted(unknown))}")
    record, criteria = _record(request), _criteria(request)
    limit = min(_number(request, "limit", LIMIT_DEFAULT), LIMIT_MAX)
    truncate = _number(request, "truncate", -1)
    timeout_s, is_none = _timeout_s(request), request.query.get("none") == "true"
    if "count" not in request.query and not is_none:
        return _told(record, criteria, limit, truncate)
    if is_none and "count" in request.query:
        raise bad_request("count and none exclude each other")
    count = _number(request, "count", 0)
    if count > record.events_max:
        raise bad_request(f"count must not be beyond {record.events_max}, what the record holds")
    wait = MessageWait(record, criteria, count, none=is_none)

    def answer() -> dict[str, Any]:
        if not wait.is_met:
            wanted = "none" if is_none else f"{count}"
            raise Refusal(409, "not_met", failure(record, criteria, wanted))
        return _told(record, criteria, limit, truncate)

    return answer() if wait.is_done or not timeout_s else Deferred(wait, timeout_s, answer)


def clear(request: Request) -> Answer:
    """DELETE /_broker/messages: forget what was recorded, in one vhost or in all."""
    if "vhost" in request.query:
        _record(request).clear()
    else:
        for record in request.broker.records:
            record.clear()
    return NO_CONTENT


def timeline(request: Request) -> dict[str, Any]:
    """GET /_broker/messages/{number}: all that happened to a message, also as what it became when it died."""
    text = request.path["number"]
    if not text.isascii() or not text.isdigit() or len(text) > INTEGER_DIGITS_MAX:
        raise bad_request("the number of a message is a whole number")
    events = request.broker.records.timeline(int(text))
    if not events:
        raise Refusal(404, "not_found", f"no message {text} is recorded")
    told = [event_as_json(event) for event in events]
    return {"message_number": int(text), "vhost": text_of(events[0].vhost), "events": told}


def idle(request: Request) -> Any:
    """GET /_broker/idle: wait until no message is ready or unacked in a vhost, or in one queue of it."""
    name = request.query.get("vhost", request.broker.config.default_vhost)
    vhost = request.broker.vhosts.get(name)
    queue = request.query.get("queue")
    if vhost is None or (queue is not None and queue not in vhost.queues):
        raise Refusal(404, "not_found", f"no vhost '{name}'" if vhost is None else f"no queue '{queue}' in {vhost}")
    wait, timeout_s = IdleWait(vhost, queue), _timeout_s(request)

    def answer() -> dict[str, Any]:
        if not wait.is_done:
            busy = [f"queue '{one.queue}' has {one.ready} ready and {one.unacked} unacked" for one in wait.busy()]
            raise Refusal(409, "not_idle", "\n".join(busy))
        return {"is_idle": True}

    return answer() if wait.is_done or not timeout_s else Deferred(wait, timeout_s, answer)


# What is asked for


def _record(request: Request) -> Record:
    name = request.query.get("vhost", request.broker.config.default_vhost)
    vhost = request.broker.vhosts.get(name)
    if vhost is None:
        raise Refusal(404, "not_found", f"no vhost '{name}'")
    record = request.broker.records.of(vhost)
    if record is None:
        raise bad_request(f"{vhost} is not recorded: PUT /_broker/record begins that, as does the setting record")
    return record


def _criteria(request: Request) -> Criteria:
    query = request.query
    event, octets = query.get("event", "publish"), query.get("body")
    exchange = query.get("exchange")
    if "body" in query and "body_base64" in query:
        raise bad_request("body and body_base64 exclude each other")
    criteria = Criteria(
        event=None if event == "any" else event.replace("-", "_"),
        exchange="" if exchange == DEFAULT_EXCHANGE_NAME else exchange,
        routing_key=query.get("routing_key"),
        queue=query.get("queue"),
        body=_octets(query["body_base64"]) if "body_base64" in query else (None if octets is None else _utf8(octets)),
        body_json=_json(query["body_json"], "body_json") if "body_json" in query else UNSET,
        body_regex=query.get("body_regex"),
        headers=_object(request, "headers"),
        properties=_object(request, "properties"),
        since=_number(request, "since", 0),
    )
    try:
        criteria.check()
    except InvalidParameter as error:
        raise bad_request(str(error)) from None
    return criteria


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _octets(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise bad_request("body_base64 is no base64") from None


def _json(text: str, name: str) -> Any:
    try:
        return msgspec.json.decode(_utf8(text))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise bad_request(f"{name} is no JSON") from None


def _object(request: Request, name: str) -> dict[str, Any]:
    if name not in request.query:
        return {}
    value = _json(request.query[name], name)
    if not isinstance(value, dict):
        raise bad_request(f"{name} must be an object of JSON")
    return value


def _number(request: Request, name: str, default: int) -> int:
    text = request.query.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > INTEGER_DIGITS_MAX:
        raise bad_request(f"{name} must be a whole number from 0 on")
    return int(text)


def _timeout_s(request: Request) -> float:
    text = request.query.get("timeout_s", "0")
    try:
        timeout_s = float(text)
    except ValueError:
        timeout_s = -1.0
    if not 0 <= timeout_s <= TIMEOUT_S_MAX:
        raise bad_request(f"timeout_s must be a number from 0 to {TIMEOUT_S_MAX:.0f}")
    return timeout_s


# What is told


def _told(record: Record, criteria: Criteria, limit: int, truncate: int) -> dict[str, Any]:
    """The answer: exact `count` of what matches, the first events, and `next`, to go on `since` there."""
    matching = record.matching(criteria)
    shown: list[dict[str, Any]] = []
    octets, last = 0, criteria.since
    for event in matching[:limit]:
        if octets >= ANSWER_BYTES_MAX:
            break
        message = record.message_of(event)
        shown.append(event_as_json(event, message, truncate))
        octets += 0 if message is None else message.body_bytes
        last = event.sequence
    if len(shown) == len(matching) and record.events:
        last = max(last, record.events[-1].sequence)
    return {"count": len(matching), "messages": shown, "next": last, "skipped": record.skipped}


def event_as_json(event: Event, message: Any = None, truncate: int = -1) -> dict[str, Any]:
    """An event, and its message where that is known."""
    told: dict[str, Any] = {
        "sequence": event.sequence,
        "event": event.kind,
        "time_us": int(event.time_us),
        "message_number": int(event.number),
        "vhost": text_of(event.vhost),
        "exchange": text_of(event.exchange),
        "routing_key": text_of(event.routing_keys[0]),
        "routing_keys": json_of(event.routing_keys),
        "queue": None if event.queue is None else text_of(event.queue),
        **{name: json_of(value) for name, value in event.more.items()},
    }
    if event.kind in ("publish", "dead_letter"):
        told["routed_queues"] = json_of(event.queues)
    message = event.message if message is None else message
    if message is not None:
        octets = message.body
        payload, encoding = encoded(octets if truncate < 0 else octets[:truncate], "auto")
        told["properties"] = json_of(message.properties().as_dict())
        told |= {"payload_bytes": len(octets), "payload": payload, "payload_encoding": encoding}
    return told


RESOURCES = (
    Resource("/_broker/record", ADMINISTRATOR, {"GET": records, "PUT": start_all, "DELETE": stop_all}),
    Resource("/_broker/record/{vhost}", ADMINISTRATOR, {"PUT": start, "DELETE": stop}),
    Resource("/_broker/messages", ADMINISTRATOR, {"GET": messages, "DELETE": clear}),
    Resource("/_broker/messages/{number}", ADMINISTRATOR, {"GET": timeline}),
    Resource("/_broker/idle", ADMINISTRATOR, {"GET": idle}),
)
