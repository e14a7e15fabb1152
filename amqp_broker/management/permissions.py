"""Permissions of users in vhosts, and at topic exchanges.

Source: rabbit_mgmt_wm_permission.erl, rabbit_mgmt_wm_topic_permission.erl and their lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from amqp_broker.broker import patterns
from amqp_broker.broker.access import Permission, TopicPermission, User
from amqp_broker.broker.vhost import VHost
from amqp_broker.management import body
from amqp_broker.management.access import ADMINISTRATOR
from amqp_broker.management.listing import listed
from amqp_broker.management.request import CREATED, NO_CONTENT, Answer, Request, Resource, bad_request, not_found

Described = dict[str, Any]


def of_permission(user: str, vhost: str, permission: Permission) -> Described:
    return {
        "user": user,
        "vhost": vhost,
        "configure": permission.configure,
        "write": permission.write,
        "read": permission.read,
    }


def of_topic_permission(user: str, vhost: str, exchange: str, permission: TopicPermission) -> Described:
    return {"user": user, "vhost": vhost, "exchange": exchange, "write": permission.write, "read": permission.read}


def _permissions(users: Iterable[User]) -> Iterator[Described]:
    for user in users:
        for vhost, permission in sorted(user.permissions.items()):
            yield of_permission(user.name, vhost, permission)


def _topic_permissions(users: Iterable[User]) -> Iterator[Described]:
    for user in users:
        for (vhost, exchange), permission in sorted(user.topic_permissions.items()):
            yield of_topic_permission(user.name, vhost, exchange, permission)


def _everybody(request: Request) -> list[User]:
    return [user for _, user in sorted(request.broker.users.items())]


def _lists(
    describe: Callable[[Iterable[User]], Iterator[Described]],
) -> tuple[Callable[[Request], Any], Callable[[Request], Any], Callable[[Request], Any]]:
    """The lists of all there are, of those of a user, and of those in a vhost."""

    def everywhere(request: Request) -> Any:
        return listed(request, describe(_everybody(request)))

    def of_user(request: Request) -> Any:
        return listed(request, describe([request.broker.user(request.path["user"])]))

    def in_vhost(request: Request) -> Any:
        name = request.vhost.name
        return listed(request, [found for found in describe(_everybody(request)) if found["vhost"] == name])

    return everywhere, of_user, in_vhost


def _concerned(request: Request) -> tuple[User, VHost]:
    """The user and the vhost that a path names; both must be there."""
    return request.broker.user(request.path["user"]), request.broker.vhost(request.path["vhost"])


def _to_be_set(request: Request, *actions: str) -> tuple[User, VHost, dict[str, Any], list[str]]:
    """Whose permission for what a request sets, what it says, and the patterns, which are valid."""
    given = body.body_of(request, *actions)
    found = []
    for action in actions:
        if action == "exchange":
            continue
        pattern = given[action]
        if not isinstance(pattern, str):
            raise bad_request(f"{action} must be a string")
        problem = patterns.problem_of(pattern)
        if problem:
            raise body.refused_term("invalid_regexp", pattern, problem)
        found.append(pattern)
    user = request.broker.users.get(request.path["user"])
    vhost = request.broker.vhosts.get(request.path["vhost"])
    if user is None or vhost is None:
        raise bad_request("vhost_or_user_not_found")
    return user, vhost, given, found


def permission(request: Request) -> Described:
    user, vhost = _concerned(request)
    found = user.permissions.get(vhost.name)
    if found is None:
        raise not_found()
    return of_permission(user.name, vhost.name, found)


def put_permission(request: Request) -> Answer:
    user, vhost, _, found = _to_be_set(request, "configure", "write", "read")
    is_new = vhost.name not in user.permissions
    request.broker.set_permission(user, vhost.name, Permission(*found))
    return CREATED if is_new else NO_CONTENT


def delete_permission(request: Request) -> Answer:
    user, vhost = _concerned(request)
    if vhost.name not in user.permissions:
        raise not_found()
    request.broker.clear_permission(user, vhost.name)
    return NO_CONTENT


def _topic_permissions_there(user: User, vhost: VHost) -> list[Described]:
    """What a user has in a vhost. Raises Refusal (404) if that is nothing."""
    found = [permission for permission in _topic_permissions([user]) if permission["vhost"] == vhost.name]
    if not found:
        raise not_found()
    return found


def topic_permission(request: Request) -> Any:
    found = _topic_permissions_there(*_concerned(request))
    exchange = request.path.get("exchange")
    if exchange is None:
        return listed(request, found)
    return next((permission for permission in found if permission["exchange"] == exchange), found)


def put_topic_permission(request: Request) -> Answer:
    user, vhost, given, found = _to_be_set(request, "exchange", "write", "read")
    exchange = given["exchange"]
    if not isinstance(exchange, str):
        raise bad_request("exchange must be a string")
    is_new = all(name != vhost.name for name, _ in user.topic_permissions)
    request.broker.set_topic_permission(user, vhost.name, exchange, TopicPermission(*found))
    return CREATED if is_new else NO_CONTENT


def delete_topic_permission(request: Request) -> Answer:
    user, vhost = _concerned(request)
    _topic_permissions_there(user, vhost)
    request.broker.clear_topic_permission(user, vhost.name, request.path.get("exchange"))
    return NO_CONTENT


_everywhere, _of_user, _in_vhost = _lists(_permissions)
_topics_everywhere, _topics_of_user, _topics_in_vhost = _lists(_topic_permissions)
_TOPICS = {"GET": topic_permission, "DELETE": delete_topic_permission}

RESOURCES = (
    Resource("/api/permissions", ADMINISTRATOR, {"GET": _everywhere}),
    Resource("/api/users/{user}/permissions", ADMINISTRATOR, {"GET": _of_user}),
    Resource("/api/vhosts/{vhost}/permissions", ADMINISTRATOR, {"GET": _in_vhost}),
    Resource(
        "/api/permissions/{vhost}/{user}",
        ADMINISTRATOR,
        {"GET": permission, "PUT": put_permission, "DELETE": delete_permission},
    ),
    Resource("/api/topic-permissions", ADMINISTRATOR, {"GET": _topics_everywhere}),
    Resource("/api/users/{user}/topic-permissions", ADMINISTRATOR, {"GET": _topics_of_user}),
    Resource("/api/vhosts/{vhost}/topic-permissions", ADMINISTRATOR, {"GET": _topics_in_vhost}),
    Resource("/api/topic-permissions/{vhost}/{user}", ADMINISTRATOR, {**_TOPICS, "PUT": put_topic_permission}),
    Resource("/api/topic-permissions/{vhost}/{user}/{exchange}", ADMINISTRATOR, _TOPICS),
)
