"""Permissions of users in vhosts, and at topic exchanges.

Source: rabbit_mgmt_wm_permission.erl, rabbit_mgmt_wm_topic_permission.erl and their lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from msgspec import Struct

from amqp_broker.broker.admin import patterns
from amqp_broker.broker.admin.access import Permission, TopicPermission, User
from amqp_broker.broker.vhost import VHost
from amqp_broker.management.documents.exporting import permission_row, topic_permission_row
from amqp_broker.management.documents.values import text_of
from amqp_broker.management.http.answers import CREATED, NO_CONTENT, Answer, bad_request, bad_term, not_found
from amqp_broker.management.http.auth import ADMINISTRATOR, MANAGEMENT
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.listing import ListQuery, listed_rows
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import String, read_by, string

endpoints = Endpoints()

Row = dict[str, Any]


def _pattern(name: str, value: Any) -> str:
    pattern = string(name, value)
    if problem := patterns.problem_of(pattern):
        raise bad_term("invalid_regexp", pattern, problem)
    return pattern


Pattern = Annotated[str, read_by(_pattern, description="a regular expression")]


class NewPermission(Struct):
    """Patterns for the names of queues and exchanges that a user may configure, write to and read from."""

    configure: Pattern
    write: Pattern
    read: Pattern


class NewTopicPermission(Struct):
    """Patterns for the routing keys that a user may use at a topic exchange."""

    exchange: String
    write: Pattern
    read: Pattern


def _permissions(users: Iterable[User]) -> Iterator[Row]:
    for user in users:
        for vhost, permission in sorted(user.permissions.items()):
            yield permission_row(user, vhost, permission)


def _topic_permissions(users: Iterable[User]) -> Iterator[Row]:
    for user in users:
        for (vhost, exchange), permission in sorted(user.topic_permissions.items()):
            yield topic_permission_row(user, vhost, exchange, permission)


def _users(request: Request) -> list[User]:
    return [user for _, user in sorted(request.broker.users.items())]


def _in_vhost(request: Request, rows: Iterable[Row]) -> list[Row]:
    name = request.vhost.name
    return [row for row in rows if row["vhost"] == name]


def _user_and_vhost(request: Request) -> tuple[User, VHost]:
    """Return the user and the vhost in the path. Raise DoesNotExist."""
    return request.broker.users.named(request.path["user"]), request.broker.vhost(request.path["vhost"])


def _user_and_vhost_to_change(request: Request) -> tuple[User, VHost]:
    """Return the user and the vhost in the path of a change. Raise Refusal, in RabbitMQ's words for a change."""
    user = request.broker.users.get(request.path["user"])
    vhost = request.broker.vhosts.get(request.path["vhost"])
    if user is None or vhost is None:
        raise bad_request("vhost_or_user_not_found")
    return user, vhost


@endpoints.on("GET /_broker/permissions", tag=MANAGEMENT)
def own_permissions(request: Request) -> dict[str, Row]:
    """Return the permissions of the user who asks, by the names of vhosts."""
    return {text_of(row["vhost"]): row for row in _permissions([request.user])}


@endpoints.on("GET /api/permissions", tag=ADMINISTRATOR, query=ListQuery)
def permissions(request: Request) -> Any:
    """List permissions."""
    return listed_rows(request, _permissions(_users(request)))


@endpoints.on("GET /api/users/{user}/permissions", tag=ADMINISTRATOR, query=ListQuery)
def permissions_of_user(request: Request) -> Any:
    """List the permissions of a user."""
    return listed_rows(request, _permissions([request.broker.users.named(request.path["user"])]))


@endpoints.on("GET /api/vhosts/{vhost}/permissions", tag=ADMINISTRATOR, query=ListQuery)
def permissions_in_vhost(request: Request) -> Any:
    """List the permissions in a vhost."""
    return listed_rows(request, _in_vhost(request, _permissions(_users(request))))


@endpoints.on("GET /api/permissions/{vhost}/{user}", tag=ADMINISTRATOR)
def permission(request: Request) -> Row:
    """Return the permission of a user in a vhost."""
    user, vhost = _user_and_vhost(request)
    found = user.permissions.get(vhost.name)
    if found is None:
        raise not_found()
    return permission_row(user, vhost.name, found)


@endpoints.on("PUT /api/permissions/{vhost}/{user}", tag=ADMINISTRATOR, body=NewPermission)
def put_permission(request: Request) -> Answer:
    """Set the permission of a user in a vhost: three regular expressions."""
    given = request.read(NewPermission)
    user, vhost = _user_and_vhost_to_change(request)
    is_new = vhost.name not in user.permissions
    permission = Permission(given.configure, given.write, given.read)
    request.broker.users.set_permission(user, vhost.name, permission)
    return CREATED if is_new else NO_CONTENT


@endpoints.on("DELETE /api/permissions/{vhost}/{user}", tag=ADMINISTRATOR)
def delete_permission(request: Request) -> Answer:
    """Remove the permission of a user in a vhost."""
    user, vhost = _user_and_vhost(request)
    if vhost.name not in user.permissions:
        raise not_found()
    request.broker.users.clear_permission(user, vhost.name)
    return NO_CONTENT


# Topic permissions


@endpoints.on("GET /api/topic-permissions", tag=ADMINISTRATOR, query=ListQuery)
def topic_permissions(request: Request) -> Any:
    """List topic permissions."""
    return listed_rows(request, _topic_permissions(_users(request)))


@endpoints.on("GET /api/users/{user}/topic-permissions", tag=ADMINISTRATOR, query=ListQuery)
def topic_permissions_of_user(request: Request) -> Any:
    """List the topic permissions of a user."""
    return listed_rows(request, _topic_permissions([request.broker.users.named(request.path["user"])]))


@endpoints.on("GET /api/vhosts/{vhost}/topic-permissions", tag=ADMINISTRATOR, query=ListQuery)
def topic_permissions_in_vhost(request: Request) -> Any:
    """List the topic permissions in a vhost."""
    return listed_rows(request, _in_vhost(request, _topic_permissions(_users(request))))


def _topic_permissions_there(user: User, vhost: VHost) -> list[Row]:
    """Return a user's topic permissions in a vhost. Raise Refusal (404) if there are none."""
    found = [row for row in _topic_permissions([user]) if row["vhost"] == vhost.name]
    if not found:
        raise not_found()
    return found


@endpoints.on(
    "GET /api/topic-permissions/{vhost}/{user}",
    "GET /api/topic-permissions/{vhost}/{user}/{exchange}",
    tag=ADMINISTRATOR,
)
def topic_permission(request: Request) -> Any:
    """Return the topic permissions of a user in a vhost, at all exchanges, whichever the path names."""
    return listed_rows(request, _topic_permissions_there(*_user_and_vhost(request)))


@endpoints.on(
    "PUT /api/topic-permissions/{vhost}/{user}",
    "PUT /api/topic-permissions/{vhost}/{user}/{exchange}",
    tag=ADMINISTRATOR,
    body=NewTopicPermission,
)
def put_topic_permission(request: Request) -> Answer:
    """Set the topic permission of a user at the exchange that the body names."""
    given = request.read(NewTopicPermission)
    user, vhost = _user_and_vhost_to_change(request)
    if given.exchange not in vhost.exchanges and request.broker.profile.release >= (4, 3):
        raise bad_term("no_such_exchange", given.exchange)
    is_new = all(name != vhost.name for name, _ in user.topic_permissions)
    permission = TopicPermission(given.write, given.read)
    request.broker.users.set_topic_permission(user, vhost.name, given.exchange, permission)
    return CREATED if is_new else NO_CONTENT


@endpoints.on(
    "DELETE /api/topic-permissions/{vhost}/{user}",
    "DELETE /api/topic-permissions/{vhost}/{user}/{exchange}",
    tag=ADMINISTRATOR,
)
def delete_topic_permission(request: Request) -> Answer:
    """Remove the topic permissions of a user in a vhost, at one exchange or at all."""
    user, vhost = _user_and_vhost(request)
    _topic_permissions_there(user, vhost)
    request.broker.users.clear_topic_permission(user, vhost.name, request.path.get("exchange"))
    return NO_CONTENT
