"""The nemesis of a vhost, and the check of the history of its messages."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, structs

from amqp_broker.broker.lab.nemesis import CHOICES, DURATION_MS, PACE_MS
from amqp_broker.broker.observe.history_check import HistoryCheck
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.management.documents.values import shown
from amqp_broker.management.http.answers import NO_CONTENT, Answer, bad_request, no_such
from amqp_broker.management.http.auth import ADMINISTRATOR
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request

endpoints = Endpoints()

_Number = Annotated[int, Meta(description="a whole number", extra_json_schema={"minimum": 0})]
_Actions = Annotated[
    list[str],
    Meta(description="a list of actions", extra_json_schema={"items": {"type": "string", "enum": list(CHOICES)}}),
]


class NewNemesis(Struct, forbid_unknown_fields=True):
    """A nemesis; without a seed, the broker chooses one, and without actions, it draws from all."""

    seed: _Number | None = None
    duration_ms: _Number = DURATION_MS
    pace_ms: _Number = PACE_MS
    actions: _Actions = []


@endpoints.on("POST /_broker/nemesis/{vhost}", tag=ADMINISTRATOR, body=NewNemesis, statuses=(201,))
def begin(request: Request) -> Answer:
    """Begin a [nemesis](nemesis.md) in a vhost, which gets an event log if it has none."""
    vhost = request.vhost
    nemesis = request.broker.faults.begin_nemesis(vhost, **structs.asdict(request.read(NewNemesis)))
    if request.broker.event_logs.of(vhost) is None:
        request.broker.event_logs.start(vhost)
    return Answer(201, shown(nemesis.as_dict()))


@endpoints.on("GET /_broker/nemesis/{vhost}", tag=ADMINISTRATOR)
def state(request: Request) -> Any:
    """Return the last nemesis of a vhost, with its strokes and their hits."""
    nemesis = request.broker.faults.nemeses.get(request.vhost.name)
    if nemesis is None:
        raise no_such(f"no nemesis in {request.vhost}")
    return shown(nemesis.as_dict())


@endpoints.on("DELETE /_broker/nemesis/{vhost}", tag=ADMINISTRATOR)
def end(request: Request) -> Answer:
    """End the nemesis of a vhost, and its fault."""
    nemesis = request.broker.faults.nemeses.get(request.vhost.name)
    if nemesis is None:
        raise no_such(f"no nemesis in {request.vhost}")
    nemesis.end()
    return NO_CONTENT


@endpoints.on("GET /_broker/history/{vhost}", tag=ADMINISTRATOR)
def history(request: Request) -> Steps[Any]:
    """Count what happened to the messages in the event log, and [check](nemesis.md#the-check) where they are."""
    log = request.broker.event_logs.of(request.vhost)
    if log is None:
        raise bad_request(f"{request.vhost} has no event log: start one by PUT /_broker/event-log")
    result = yield from HistoryCheck(log).run()
    return shown(result)
