"""Fault rules (`broker/lab/fault_rules.py`)."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct

from amqp_broker.broker.lab.fault_rules import ACTIONS, DIRECTIONS, KNOWN, REPLIES, Rule, known_fields
from amqp_broker.management.http.answers import NO_CONTENT, Answer, not_found
from amqp_broker.management.http.auth import ADMINISTRATOR
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import VHostQuery

endpoints = Endpoints()

_Text = Annotated[Any, Meta(extra_json_schema={"type": "string"})]
_Count = Annotated[Any, Meta(extra_json_schema={"type": "integer", "minimum": 0})]
_Flag = Annotated[Any, Meta(extra_json_schema={"type": "boolean"})]


class NewFault(Struct):
    """A fault rule; `broker/lab/fault_rules.py` reads and checks it."""

    action: Annotated[Any, Meta(extra_json_schema={"enum": list(ACTIONS)})]
    on: Annotated[Any, Meta(extra_json_schema={"enum": list(KNOWN)})] = UNSET
    vhost: _Text = UNSET
    exchange: _Text = UNSET
    routing_key: _Text = UNSET
    queue: _Text = UNSET
    method: _Text = UNSET
    user: _Text = UNSET
    connection: _Text = UNSET
    text: _Text = UNSET
    client_property: Annotated[
        Any, Meta(extra_json_schema={"type": "object", "additionalProperties": {"type": "string"}})
    ] = UNSET
    times: Annotated[Any, Meta(extra_json_schema={"type": "integer", "minimum": 1})] = UNSET
    after: _Count = UNSET
    seed: _Count = UNSET
    delay_ms: _Count = UNSET
    jitter_ms: _Count = UNSET
    duration_ms: _Count = UNSET
    bytes_per_s: _Count = UNSET
    direction: Annotated[Any, Meta(extra_json_schema={"enum": list(DIRECTIONS)})] = UNSET
    code: _Count = UNSET
    probability: Annotated[Any, Meta(extra_json_schema={"type": "number", "exclusiveMinimum": 0, "maximum": 1})] = UNSET
    is_routed: _Flag = UNSET
    is_mid_frame: _Flag = UNSET
    then: Annotated[Any, Meta(extra_json_schema={"type": "array", "items": {"type": "object"}})] = UNSET


class Release(Struct, forbid_unknown_fields=True):
    """How many deliveries are made."""

    count: Annotated[int, Meta(description="a whole number", extra_json_schema={"minimum": 1})] = 1


@endpoints.on("GET /_broker/faults", tag=ADMINISTRATOR)
def all_rules(request: Request) -> list[dict[str, Any]]:
    """List [fault rules](faults.md), with the counts of their matches and hits."""
    return [rule.as_dict() for rule in request.broker.faults]


@endpoints.on("GET /_broker/fault-actions", tag=ADMINISTRATOR)
def actions(request: Request) -> list[dict[str, Any]]:
    """List the actions of faults: their moments, what a rule can match at each, and their parameters."""
    return [
        {
            "action": name,
            "on": {moment: list(known_fields(name, moment)) for moment in action.on},
            "needs": list(action.needs),
            "may_have": list(action.may_have),
            "code": REPLIES[name][0] if name in REPLIES else None,
        }
        for name, action in ACTIONS.items()
    ]


@endpoints.on("POST /_broker/faults", tag=ADMINISTRATOR, body=NewFault, statuses=(201,))
def add(request: Request) -> Answer:
    """Add a fault rule, and those of `then` that follow it; the answer has the id of the first."""
    rule = request.broker.faults.add(Rule.from_mapping(request.json()))
    return Answer(201, rule.as_dict(), {"Location": f"/_broker/faults/{rule.id}"})


@endpoints.on("DELETE /_broker/faults", tag=ADMINISTRATOR, query=VHostQuery)
def clear(request: Request) -> Answer:
    """Remove the fault rules of one vhost or of all."""
    name = request.read_query(VHostQuery).vhost
    if name is not None and name not in request.broker.vhosts:
        raise not_found()
    request.broker.faults.clear(name)
    return NO_CONTENT


@endpoints.on("GET /_broker/faults/{id}", tag=ADMINISTRATOR)
def one(request: Request) -> dict[str, Any]:
    """Return a fault rule."""
    return request.broker.faults[_id(request)].as_dict()


@endpoints.on("DELETE /_broker/faults/{id}", tag=ADMINISTRATOR)
def remove(request: Request) -> Answer:
    """Remove a fault rule and those that follow it, and end their effects on connections."""
    request.broker.faults.remove(_id(request))
    return NO_CONTENT


@endpoints.on("POST /_broker/faults/{id}/release", tag=ADMINISTRATOR, body=Release, statuses=(200,))
def release(request: Request) -> dict[str, int]:
    """Make the oldest deliveries that a rule `hold_delivery` holds: one, or `count`; return how many it held."""
    return {"released": request.broker.faults.release(_id(request), request.read(Release).count)}


def _id(request: Request) -> int:
    """Return the id in the path. Raise Refusal for an invalid one."""
    text = request.path["id"]
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise not_found()
    return int(text)
