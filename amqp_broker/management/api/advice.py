"""Advice: habits of clients that cause trouble in production."""

from __future__ import annotations

from typing import Any

from amqp_broker.lab.advice import Advice
from amqp_broker.management.documents.values import text_of
from amqp_broker.management.http.answers import NO_CONTENT, Answer, no_such
from amqp_broker.management.http.auth import ADMINISTRATOR
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import VHostQuery

endpoints = Endpoints()


@endpoints.on("GET /_broker/advice", tag=ADMINISTRATOR, query=VHostQuery)
def all_advice(request: Request) -> list[dict[str, Any]]:
    """List the [advice](advice.md) about clients, oldest first, in one vhost or in all."""
    name = _vhost(request)
    advisor = request.broker.advice
    advisor.scan_all()
    return [advice_row(advice) for advice in advisor if name in (None, advice.place.vhost)]


@endpoints.on("DELETE /_broker/advice", tag=ADMINISTRATOR, query=VHostQuery)
def clear(request: Request) -> Answer:
    """Forget the advice about clients in one vhost or in all."""
    request.broker.advice.clear(_vhost(request))
    return NO_CONTENT


def advice_row(advice: Advice) -> dict[str, Any]:
    """Return the row of an advice, without empty values."""
    habit, place = advice.habit, advice.place
    details: dict[str, Any] = {
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
            for name, value in details.items()
            if value not in ("", None)
        },
        "count": advice.count,
        "first_seen_ms": advice.first_seen_ms,
        "last_seen_ms": advice.last_seen_ms,
    }


def _vhost(request: Request) -> str | None:
    name = request.read_query(VHostQuery).vhost
    if name is not None and name not in request.broker.vhosts:
        raise no_such(f"no vhost '{name}'")
    return name
