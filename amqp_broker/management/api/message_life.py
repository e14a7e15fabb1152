"""The lives of messages from the view of a queue: why a message is in it, or why not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from amqp_broker.amqp.errors import NotFound
from amqp_broker.amqp.message import Message
from amqp_broker.broker.observe.event_log import Event, EventLog
from amqp_broker.broker.observe.message_fate import fate
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.broker.vhost import VHost
from amqp_broker.management.api.event_log import beginning_of, timeline_of
from amqp_broker.management.documents.logged_events import event_row
from amqp_broker.management.documents.pytest_text import pytest_text
from amqp_broker.management.documents.reported_lives import keys_of
from amqp_broker.management.documents.values import text_of
from amqp_broker.management.http.answers import bad_request
from amqp_broker.management.http.auth import ADMINISTRATOR
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request

# Messages in an answer, the newest; events of each; octets of the bodies shown, and searched.
MESSAGES_MAX: Final = 20
EVENTS_MAX: Final = 100
SHOWN_BYTES: Final = 200
SEARCHED_BYTES: Final = 64 * 1024
# Messages that are looked at in one step.
STEP: Final = 200

endpoints = Endpoints()


class LifeQuery(Struct):
    """A text in the message id, the correlation id, a routing key or the body, or a message number."""

    search: str = ""


@endpoints.on("GET /_broker/queues/{vhost}/{queue}/lives", tag=ADMINISTRATOR, query=LifeQuery)
def lives(request: Request) -> Steps[dict[str, Any]]:
    """Find messages by a text, or the newest of a queue, and say why each is in the queue or not.

    `since_ms` is the time of the oldest event that the log has.
    """
    wanted = request.read_query(LifeQuery).search
    queue = _queue(request)
    log = request.broker.event_logs.of(request.vhost)
    rows: list[dict[str, Any]] = []
    if log is None:
        return {"has_log": False, "skipped": 0, "since_ms": None, "published_before": 0, "messages": rows}
    for event, message, life in (yield from _found(log, queue.name, wanted)):
        rows.append(_row(event, message, life, queue))
        yield
    since_ms = log.events[0].time_us // 1000 if log.events else None
    return {"has_log": True, "skipped": log.skipped, "since_ms": since_ms, **beginning_of(log), "messages": rows}


@endpoints.on("GET /_broker/queues/{vhost}/{queue}/pytest", tag=ADMINISTRATOR, query=LifeQuery)
def pytest_of_queue(request: Request) -> Steps[dict[str, Any]]:
    """Return a [test](messages.md#a-test-of-what-was-seen) that repeats what happened to the messages of `lives`."""
    wanted = request.read_query(LifeQuery).search
    queue = _queue(request)
    log = _log(request, request.vhost)
    found = yield from _found(log, queue.name, wanted)
    lives = [life for _, _, life in found if life[0].kind != "dead_letter"]
    return {"text": text_of(pytest_text(lives, request.vhost, log))}


@endpoints.on("GET /_broker/messages/{number}/pytest", tag=ADMINISTRATOR)
def pytest_of_message(request: Request) -> dict[str, Any]:
    """Return a [test](messages.md#a-test-of-what-was-seen) that repeats what happened to a message."""
    life = timeline_of(request)
    vhost = request.broker.vhosts[life[0].vhost]
    return {"text": text_of(pytest_text([life], vhost, _log(request, vhost)))}


def _queue(request: Request) -> Queue:
    """Return the queue of a path. Raise NotFound."""
    queue = request.vhost.queues.get(request.path["queue"])
    if queue is None:
        raise NotFound(f"no queue '{request.path['queue']}' in {request.vhost}")
    return queue


def _log(request: Request, vhost: VHost) -> EventLog:
    log = request.broker.event_logs.of(vhost)
    if log is None:
        raise bad_request(f"{vhost} has no event log")
    return log


def _found(log: EventLog, name: str, wanted: str) -> Steps[list[tuple[Event, Message, list[Event]]]]:
    """Return the newest messages of a queue, or those with a text: with just this number, id or key first.

    Each is a tuple of its first event, the message and all its events.
    """
    exact: list[tuple[Event, Message, list[Event]]] = []
    found: list[tuple[Event, Message, list[Event]]] = []
    for count, event in enumerate(reversed(list(log.events)), 1):
        if count % STEP == 0:
            yield
        message = log.message_of(event)
        if message is None or not log.is_first(event) or _is_letter(event, log):
            continue
        names = _names(event, message)
        is_exact = wanted.removeprefix("#") == names[0] or wanted in names[1:]
        rows = exact if wanted and is_exact else found
        if len(rows) == MESSAGES_MAX or (wanted and not is_exact and not _has(names, message, wanted)):
            continue
        life = log.timeline(event.number)
        if wanted or any(name == one.queue or name in one.queues for one in life):
            rows.append((event, message, life))
            yield
            # An older message may have just this name, which comes first.
            if len(rows) == MESSAGES_MAX and (rows is exact or not wanted):
                break
    return [*exact, *found][:MESSAGES_MAX]


def _is_letter(event: Event, log: EventLog) -> bool:
    """Return whether this is a dead letter whose origin is in the log: it belongs to the life of that."""
    return event.kind == "dead_letter" and log.has(event.more["from_message_number"])


def _names(event: Event, message: Message) -> list[str]:
    """Return the number of a message, then the message id, correlation id and routing keys that it has."""
    properties = message.properties()
    names = (str(int(event.number)), properties.message_id, properties.correlation_id, *event.routing_keys)
    return [name for name in names if name is not None]


def _has(names: Sequence[str], message: Message, wanted: str) -> bool:
    """Return whether the text is in a name of a message, or in its body."""
    return (
        any(wanted in name for name in names[1:])
        or wanted.encode("utf-8", "surrogateescape") in message.body[:SEARCHED_BYTES]
    )


def _row(event: Event, message: Message, life: Sequence[Event], queue: Queue) -> dict[str, Any]:
    found = fate(life, queue.name, keys_of(queue, event.exchange))
    return {
        **event_row(event, message, SHOWN_BYTES),
        "state": found.state,
        "sentences": [text_of(sentence) for sentence in found.sentences],
        "events": [event_row(one, truncate=0) for one in life[:EVENTS_MAX]],
        "events_skipped": max(0, len(life) - EVENTS_MAX),
    }
