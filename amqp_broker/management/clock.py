"""The broker's clock, and moving it (docs/clock.md).

GET  /_broker/clock
POST /_broker/clock/advance    {"ms": 1800000} or {"duration": "30m"}
POST /_broker/clock/freeze
POST /_broker/clock/resume
"""

from __future__ import annotations

import re
from typing import Any, Final

from amqp_broker.management.access import ADMINISTRATOR, MONITORING
from amqp_broker.management.request import Request, Resource, bad_request

UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(?:[0-9]{1,15}(?:ms|s|m|h|d)){1,5}")
_PART: Final = re.compile(r"([0-9]+)(ms|s|m|h|d)")


def duration_ms(text: str) -> int:
    """What a duration like 1h30m or 500ms is in milliseconds. Raises ValueError."""
    if not _DURATION.fullmatch(text):
        raise ValueError(f"'{text[:40]}' is no duration; 500ms, 30s, 30m, 1h30m and 2d are some")
    return sum(int(count) * UNITS_MS[unit] for count, unit in _PART.findall(text))


def clock(request: Request) -> dict[str, Any]:
    """GET /_broker/clock: what time it is for the broker, and really."""
    node = request.node
    now, real_now = node.now(), node.real_now()
    return {
        "now_ms": now,
        "real_now_ms": real_now,
        "offset_ms": now - real_now,
        "is_frozen": node.is_frozen(),
    }


def advance(request: Request) -> dict[str, Any]:
    """POST /_broker/clock/advance: let time pass; the answer is the clock afterwards."""
    try:
        request.node.advance(_wanted_ms(request))
    except ValueError as error:
        raise bad_request(str(error)) from None
    return clock(request)


def _wanted_ms(request: Request) -> int:
    given = request.json()
    if set(given) not in ({"ms"}, {"duration"}):
        raise bad_request('either "ms" (a number) or "duration" (such as "30m") must be given, and nothing else')
    if "duration" in given:
        duration = given["duration"]
        if not isinstance(duration, str):
            raise bad_request("duration must be a string")
        return duration_ms(duration)
    milliseconds = given["ms"]
    if not isinstance(milliseconds, int) or isinstance(milliseconds, bool):
        raise bad_request("ms must be a whole number")
    return milliseconds


def freeze(request: Request) -> dict[str, Any]:
    """POST /_broker/clock/freeze: let time stand still; the answer is the clock afterwards."""
    _check_empty(request)
    request.node.freeze()
    return clock(request)


def resume(request: Request) -> dict[str, Any]:
    """POST /_broker/clock/resume: let time run on from where it stands."""
    _check_empty(request)
    request.node.resume()
    return clock(request)


def _check_empty(request: Request) -> None:
    given = request.json()
    if given:
        raise bad_request(f"unknown: {', '.join(sorted(given))}")


RESOURCES = (
    Resource("/_broker/clock", MONITORING, {"GET": clock}),
    Resource("/_broker/clock/advance", ADMINISTRATOR, {"POST": advance}),
    Resource("/_broker/clock/freeze", ADMINISTRATOR, {"POST": freeze}),
    Resource("/_broker/clock/resume", ADMINISTRATOR, {"POST": resume}),
)
