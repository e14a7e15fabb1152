"""The broker's clock, which tests may move."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from amqp_broker.broker.lab.durations import duration_ms
from amqp_broker.management.http.answers import bad_request
from amqp_broker.management.http.auth import ADMINISTRATOR, MONITORING
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import Nothing

endpoints = Endpoints()


class Advance(Struct, forbid_unknown_fields=True):
    """The time to pass, in one of two forms."""

    ms: (
        Annotated[int, Meta(description="a whole number", extra_json_schema={"minimum": 0, "maximum": 10**12})] | None
    ) = None
    duration: (
        Annotated[str, Meta(description="a string", extra_json_schema={"pattern": "^[0-9]{1,6}(ms|s|m|h)$"})] | None
    ) = None


@endpoints.on("GET /_broker/clock", tag=MONITORING)
def clock(request: Request) -> dict[str, Any]:
    """Return the time of the broker's [clock](clock.md) and the real time."""
    node = request.node
    now, offset = node.now(), node.clock_offset()
    return {
        "now_ms": now,
        "real_now_ms": now - offset,
        "offset_ms": offset,
        "is_frozen": node.is_frozen(),
    }


@endpoints.on("POST /_broker/clock/advance", tag=ADMINISTRATOR, body=Advance, statuses=(200,))
def advance(request: Request) -> dict[str, Any]:
    """Advance the clock by `ms` or `duration`, through everything that is due in between."""
    try:
        request.node.advance(_wanted_ms(request))
    except ValueError as error:
        raise bad_request(str(error)) from None
    return clock(request)


def _wanted_ms(request: Request) -> int:
    given = request.read(Advance)
    if given.ms is not None and given.duration is None:
        return given.ms
    if given.duration is not None and given.ms is None:
        return duration_ms(given.duration)
    raise bad_request('either "ms" (a number) or "duration" (such as "30m") must be given')


@endpoints.on("POST /_broker/clock/freeze", tag=ADMINISTRATOR, body=Nothing, statuses=(200,))
def freeze(request: Request) -> dict[str, Any]:
    """Stop the clock."""
    request.read(Nothing)
    request.node.freeze()
    return clock(request)


@endpoints.on("POST /_broker/clock/resume", tag=ADMINISTRATOR, body=Nothing, statuses=(200,))
def resume(request: Request) -> dict[str, Any]:
    """Let the clock run again from its current time."""
    request.read(Nothing)
    request.node.resume()
    return clock(request)
