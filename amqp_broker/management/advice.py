"""/_broker/advice: habits that bite in production, as the broker noticed them (docs/advice.md)."""

from __future__ import annotations

from typing import Any

from amqp_broker.broker.advice import Advice
from amqp_broker.management.access import ADMINISTRATOR
from amqp_broker.management.request import NO_CONTENT, Answer, Refusal, Request, Resource
from amqp_broker.management.values import text_of


def listed(request: Request) -> list[dict[str, Any]]:
    """GET: what there is to say by now, oldest first; of one vhost if the query names it."""
    name = _vhost(request)
    advisor = request.broker.advice
    advisor.look_at_all()
    return [told(advice) for advice in advisor if name in (None, advice.place.vhost)]


def clear(request: Request) -> Answer:
    """DELETE: forget what was said, of all or of the vhost that the query names."""
    request.broker.advice.clear(_vhost(request))
    return NO_CONTENT


def told(advice: Advice) -> dict[str, Any]:
    """Advice in JSON; places that are none are left out."""
    habit, place = advice.habit, advice.place
    where: dict[str, Any] = {
        "vhost": place.vhost,
        "user": place.user,
        "client": place.client,
        "exchange": place.exchange,
        "queue": place.queue,
        "connection": advice.connection,
        "channel": advice.channel,
        "detail": advice.detail,
    }
    return {
        "habit": habit.name,
        "sentence": habit.sentence,
        "remedy": habit.remedy,
        "link": habit.link,
        **{
            name: text_of(value) if isinstance(value, str) else value
            for name, value in where.items()
            if value not in ("", None)
        },
        "count": advice.count,
        "first_seen_ms": advice.first_seen_ms,
        "last_seen_ms": advice.last_seen_ms,
    }


def _vhost(request: Request) -> str | None:
    name = request.query.get("vhost")
    if name is not None and name not in request.broker.vhosts:
        raise Refusal(404, "not_found", f"no vhost '{name}'")
    return name


RESOURCES = (Resource("/_broker/advice", ADMINISTRATOR, {"GET": listed, "DELETE": clear}),)
