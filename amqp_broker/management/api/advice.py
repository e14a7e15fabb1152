"""Advice: habits of clients that cause trouble in production."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from amqp_broker.broker.lab.advice import Advice, Advisor
from amqp_broker.broker.lab.habits import HABITS
from amqp_broker.management.documents.values import text_of
from amqp_broker.management.http.answers import NO_CONTENT, Answer, bad_request, no_such
from amqp_broker.management.http.auth import ADMINISTRATOR
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import VHostQuery

# Number of the newest places of a habit that stand for the others.
EXAMPLES: Final = 3

endpoints = Endpoints()


class AdviceQuery(Struct):
    """The name of a vhost and of a habit; without them the request is about all."""

    vhost: str | None = None
    habit: str | None = None


@endpoints.on("GET /_broker/advice", tag=ADMINISTRATOR, query=AdviceQuery)
def all_advice(request: Request) -> list[dict[str, Any]]:
    """List the [advice](advice.md) about clients, oldest first, in one vhost or in all, about one habit or all."""
    habit = request.read_query(AdviceQuery).habit
    if habit is not None and habit not in HABITS:
        raise bad_request(f"no habit '{habit}'; there are: {', '.join(HABITS)}")
    return [advice_row(advice) for advice in _found(request) if habit in (None, advice.habit.name)]


@endpoints.on("GET /_broker/advice-habits", tag=ADMINISTRATOR, query=VHostQuery)
def habits(request: Request) -> list[dict[str, Any]]:
    """List the habits of clients, the latest first, with their numbers of places and their newest places."""
    vhost = request.read_query(VHostQuery).vhost
    by_habit: dict[str, list[Advice]] = {}
    for advice in _found(request):
        by_habit.setdefault(advice.habit.name, []).append(advice)
    rows = [habit_row(given, request.broker.advice, vhost) for given in by_habit.values()]
    return sorted(rows, key=lambda row: -row["first_seen_ms"])


def habit_row(given: Sequence[Advice], advisor: Advisor, vhost: str | None) -> dict[str, Any]:
    """Return the row of a habit, with advice of all its places."""
    habit = given[0].habit
    beyond = sum(
        count for (name, where), count in advisor.beyond.items() if name == habit.name and vhost in (None, where)
    )
    return {
        "habit": habit.name,
        "sentence": habit.sentence,
        "remedy": habit.remedy,
        "link": habit.link,
        "count": sum(advice.count for advice in given) + beyond,
        "messages": sum(advice.messages for advice in given),
        "places": len(given),
        # Occurrences in places beyond those that are kept.
        "beyond": beyond,
        "first_seen_ms": min(advice.first_seen_ms for advice in given),
        "last_seen_ms": max(advice.last_seen_ms for advice in given),
        "examples": [advice_row(advice) for advice in reversed(given[-EXAMPLES:])],
    }


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
        **({"messages": advice.messages} if advice.messages else {}),
        "first_seen_ms": advice.first_seen_ms,
        "last_seen_ms": advice.last_seen_ms,
    }


def _found(request: Request) -> list[Advice]:
    name = _vhost(request)
    advisor = request.broker.advice
    advisor.scan_all()
    return [advice for advice in advisor if name in (None, advice.place.vhost)]


def _vhost(request: Request) -> str | None:
    name = request.read_query(VHostQuery).vhost
    if name is not None and name not in request.broker.vhosts:
        raise no_such(f"no vhost '{name}'")
    return name
