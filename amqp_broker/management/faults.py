"""/_broker/faults: what the broker does wrong on purpose (broker/faults.py)."""

from __future__ import annotations

from typing import Any

from amqp_broker.broker.fault_rules import Rule
from amqp_broker.management.access import ADMINISTRATOR
from amqp_broker.management.request import NO_CONTENT, Answer, Request, Resource, not_found


def listed(request: Request) -> list[dict[str, Any]]:
    """All faults, with how often they matched and hit."""
    return [rule.as_dict() for rule in request.broker.faults]


def add(request: Request) -> Answer:
    """Have the broker do something wrong from now on, or now; the answer has the fault's id."""
    rule = request.broker.faults.add(Rule.from_mapping(request.json()))
    return Answer(201, rule.as_dict(), {"Location": f"/_broker/faults/{rule.id}"})


def clear(request: Request) -> Answer:
    """Remove all faults, or those of the vhost that the query names."""
    name = request.query.get("vhost")
    if name is not None and name not in request.broker.vhosts:
        raise not_found()
    request.broker.faults.clear(name)
    return NO_CONTENT


def one(request: Request) -> dict[str, Any]:
    """One fault."""
    return request.broker.faults[number_of(request)].as_dict()


def remove(request: Request) -> Answer:
    """Remove a fault; what it does to connections ends, too."""
    request.broker.faults.remove(number_of(request))
    return NO_CONTENT


def number_of(request: Request) -> int:
    """The id in the path. Raises Refusal for what can be none."""
    text = request.path["id"]
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise not_found()
    return int(text)


RESOURCES = (
    Resource("/_broker/faults", ADMINISTRATOR, {"GET": listed, "POST": add, "DELETE": clear}),
    Resource("/_broker/faults/{id}", ADMINISTRATOR, {"GET": one, "DELETE": remove}),
)
