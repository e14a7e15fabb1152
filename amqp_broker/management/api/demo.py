"""The confirm demo at this broker: its figures, start and stop."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct

from amqp_broker.management.http.answers import Answer, Refusal, bad_request
from amqp_broker.management.http.auth import ADMINISTRATOR, MONITORING
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request

NO_DEMO: Final = "only a broker that `amqp-broker serve` has started runs the demo"

endpoints = Endpoints()

_Count = Annotated[Any, Meta(extra_json_schema={"type": "integer", "minimum": 0})]


class NewDemo(Struct):
    """The choices for a demo; `demo/demo_choices.py` reads and checks them."""

    strategy: Annotated[Any, Meta(extra_json_schema={"type": "string"})] = UNSET
    messages: _Count = UNSET
    rate: _Count = UNSET
    window: _Count = UNSET
    seed: _Count = UNSET
    faults: Annotated[Any, Meta(extra_json_schema={"type": "array", "items": {"type": "string"}})] = UNSET


@endpoints.on("GET /_broker/demo", tag=MONITORING)
def demo(request: Request) -> dict[str, Any]:
    """Return the state of the [demo](demo.md), its figures (null before the first), and what can be chosen."""
    given = request.node.demo
    return {"state": "none", "reason": "", "choices": None, "figures": None} if given is None else given.status()


@endpoints.on("POST /_broker/demo", tag=ADMINISTRATOR, body=NewDemo, statuses=(202,))
def start(request: Request) -> Answer:
    """Start the demo in a virtual host of its own; 409 while one runs."""
    given = request.json()
    if request.node.demo is None:
        raise Refusal(409, "no_demo", NO_DEMO)
    try:
        request.node.demo.start(given)
    except ValueError as error:
        raise bad_request(str(error)) from None
    except RuntimeError as error:
        raise Refusal(409, "cannot_start", str(error)) from None
    return Answer(202, request.node.demo.status())


@endpoints.on("DELETE /_broker/demo", tag=ADMINISTRATOR, statuses=(202,))
def stop(request: Request) -> Answer:
    """Stop the demo, and remove its virtual host."""
    if request.node.demo is not None:
        request.node.demo.stop()
    return Answer(202, demo(request))
