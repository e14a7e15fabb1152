"""Limits of vhosts and of users. Source: rabbit_mgmt_wm_limit.erl, rabbit_mgmt_wm_user_limit.erl and their lists."""

from __future__ import annotations

from typing import Any

from amqp_broker.broker.vhost import VHost
from amqp_broker.errors import InvalidParameter
from amqp_broker.management import body
from amqp_broker.management.access import ADMINISTRATOR, MANAGEMENT
from amqp_broker.management.listing import listed
from amqp_broker.management.request import NO_CONTENT, Answer, Request, Resource, bad_request
from amqp_broker.management.vhosts import changed_vhost, named_vhosts


def validation_failed(error: InvalidParameter) -> Exception:
    """The refusal of what is kept as a runtime parameter."""
    return bad_request(f"Validation failed\n\n{error}\n")


def of_vhosts(request: Request) -> Any:
    vhosts: list[VHost] = named_vhosts(request)
    return listed(
        request, [{"vhost": vhost.name, "value": dict(vhost.limits.given)} for vhost in vhosts if vhost.limits.given]
    )


def put_of_vhost(request: Request) -> Answer:
    vhost = changed_vhost(request)
    try:
        vhost.set_limit(request.path["name"], body.body_of(request, "value")["value"])
    except InvalidParameter as error:
        raise validation_failed(error) from None
    return NO_CONTENT


def delete_of_vhost(request: Request) -> Answer:
    vhost = changed_vhost(request)
    if request.path["name"] in vhost.limits.given:
        vhost.clear_limit(request.path["name"])
    return NO_CONTENT


def of_users(request: Request) -> Any:
    users = sorted(request.broker.users.items())
    if "user" in request.path:
        users = [("", request.broker.user(request.path["user"]))]
    return listed(
        request, [{"user": user.name, "value": dict(user.limits.given)} for _, user in users if user.limits.given]
    )


def put_of_user(request: Request) -> Answer:
    user = request.broker.users.get(request.path["user"])
    value = body.body_of(request, "value")["value"]
    if user is None:
        raise body.refused_term("no_such_user", request.path["user"])
    request.broker.set_user_limit(user, request.path["name"], value)
    return NO_CONTENT


def delete_of_user(request: Request) -> Answer:
    user = request.broker.user(request.path["user"])
    if request.path["name"] in user.limits.given:
        request.broker.clear_user_limit(user, request.path["name"])
    return NO_CONTENT


RESOURCES = (
    Resource("/api/vhost-limits", MANAGEMENT, {"GET": of_vhosts}),
    Resource("/api/vhost-limits/{vhost}", MANAGEMENT, {"GET": of_vhosts}),
    Resource("/api/vhost-limits/{vhost}/{name}", ADMINISTRATOR, {"PUT": put_of_vhost, "DELETE": delete_of_vhost}),
    Resource("/api/user-limits", MANAGEMENT, {"GET": of_users}),
    Resource("/api/user-limits/{user}", MANAGEMENT, {"GET": of_users}),
    Resource("/api/user-limits/{user}/{name}", ADMINISTRATOR, {"PUT": put_of_user, "DELETE": delete_of_user}),
)
