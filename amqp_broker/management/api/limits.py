"""Limits of vhosts and of users. Source: rabbit_mgmt_wm_limit.erl, rabbit_mgmt_wm_user_limit.erl and their lists."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.vhost import VHost
from amqp_broker.management.api.vhosts import changed_vhost, named_vhosts
from amqp_broker.management.http.answers import NO_CONTENT, Answer, bad_term, no_such, not_found, validation_failed
from amqp_broker.management.http.auth import ADMINISTRATOR, MANAGEMENT, require_tag
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.listing import ListQuery, listed_rows
from amqp_broker.management.http.request import Request

endpoints = Endpoints()


class Limit(Struct):
    """A limit; a negative value means no limit."""

    value: Annotated[Any, Meta(extra_json_schema={"type": "integer"})]


@endpoints.on("GET /api/vhost-limits", "GET /api/vhost-limits/{vhost}", tag=MANAGEMENT, query=ListQuery)
def of_vhosts(request: Request) -> Any:
    """List the limits of vhosts."""
    vhosts: list[VHost] = named_vhosts(request)
    none: dict[str, int] | list[int] = {} if request.broker.profile.release >= (4, 0) else []
    return listed_rows(
        request,
        [
            {"vhost": vhost.name, "value": dict(vhost.limits.given) or none}
            for vhost in vhosts
            if vhost.limits.is_listed
        ],
    )


@endpoints.on("PUT /api/vhost-limits/{vhost}/{name}", tag=ADMINISTRATOR, body=Limit, statuses=(204,))
def put_of_vhost(request: Request) -> Answer:
    """Set a limit of a vhost: `max-connections` or `max-queues`."""
    vhost = changed_vhost(request)
    try:
        vhost.limits.set(request.path["name"], request.read(Limit).value)
    except InvalidParameter as error:
        raise validation_failed(error) from None
    return NO_CONTENT


@endpoints.on("DELETE /api/vhost-limits/{vhost}/{name}", tag=ADMINISTRATOR)
def delete_of_vhost(request: Request) -> Answer:
    """Remove a limit of a vhost."""
    vhost = changed_vhost(request)
    vhost.limits.clear(request.path["name"])
    return NO_CONTENT


@endpoints.on("GET /api/user-limits", "GET /api/user-limits/{user}", tag=MANAGEMENT, query=ListQuery)
def of_users(request: Request) -> Any:
    """List the limits of users."""
    if request.broker.profile.release >= (4, 3):
        require_tag(request.user, ADMINISTRATOR)
    users = sorted(request.broker.users.items())
    if "user" in request.path:
        users = [("", request.broker.users.named(request.path["user"]))]
    return listed_rows(
        request, [{"user": user.name, "value": dict(user.limits.given)} for _, user in users if user.limits.given]
    )


@endpoints.on("PUT /api/user-limits/{user}/{name}", tag=ADMINISTRATOR, body=Limit, statuses=(204,))
def put_of_user(request: Request) -> Answer:
    """Set a limit of a user: `max-connections` or `max-channels`."""
    user = request.broker.users.get(request.path["user"])
    value = request.read(Limit).value
    if user is None:
        raise bad_term("no_such_user", request.path["user"])
    request.broker.users.set_limit(user, request.path["name"], value)
    return NO_CONTENT


@endpoints.on("DELETE /api/user-limits/{user}/{name}", tag=ADMINISTRATOR)
def delete_of_user(request: Request) -> Answer:
    """Remove a limit of a user."""
    user = request.broker.users.get(request.path["user"])
    if user is None:
        raise no_such("vhost_not_found") if request.broker.profile.release >= (4, 0) else not_found()
    if request.path["name"] in user.limits.given:
        request.broker.users.clear_limit(user, request.path["name"])
    return NO_CONTENT
