"""Users: who there is, with tags, limits and password hash.

Source: rabbit_mgmt_wm_user.erl, rabbit_mgmt_wm_users_bulk_delete.erl; rabbit_auth_backend_internal.erl, put_user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amqp_broker.broker.access import SALT_BYTES, SHA256, decode_hash, hash_password
from amqp_broker.management import body
from amqp_broker.management.access import ADMINISTRATOR
from amqp_broker.management.definitions import user_row
from amqp_broker.management.listing import listed
from amqp_broker.management.request import CREATED, NO_CONTENT, Answer, Request, Resource, bad_request


def users(request: Request) -> Any:
    return listed(request, [user_row(user) for _, user in sorted(request.broker.users.items())])


def without_permissions(request: Request) -> Any:
    return listed(request, [user_row(user) for _, user in sorted(request.broker.users.items()) if not user.permissions])


def one(request: Request) -> dict[str, Any]:
    return user_row(request.broker.user(request.path["user"]))


def put(request: Request) -> Answer:
    name, broker = request.path["user"], request.broker
    given = body.body_of(request)
    if "tags" not in given:
        raise bad_request("tags_not_present")
    tags = body.tags(given)
    is_new = name not in broker.users
    password_hash, algorithm = _password_hash(request, given)
    broker.put_user(name, password_hash, algorithm, tags)
    return CREATED if is_new else NO_CONTENT


def _password_hash(request: Request, given: Mapping[str, Any]) -> tuple[bytes, str]:
    """The hash that a user is to have, and how it was made; of a user without a password it is empty."""
    algorithm = body.text(given, "hashing_algorithm", SHA256)
    if "password" in given and "password_hash" in given:
        raise bad_request("both_password_and_password_hash_are_provided")
    if "password_hash" in given:
        encoded = body.text(given, "password_hash")
        body.octets(encoded)
        return decode_hash(encoded, algorithm), algorithm
    password = body.text(given, "password")
    if not password:
        return b"", algorithm
    return hash_password(password.encode(), request.broker.entropy(SALT_BYTES)), SHA256


def delete(request: Request) -> Answer:
    request.broker.delete_user(request.path["user"])
    return NO_CONTENT


def bulk_delete(request: Request) -> Answer:
    """Delete users one after the other; one who is not there ends it."""
    names = body.body_of(request, "users")["users"]
    if not isinstance(names, list):
        raise bad_request("users must be a list of names")
    for name in names:
        if not isinstance(name, str) or name not in request.broker.users:
            raise body.refused_term("no_such_user", name)
        request.broker.delete_user(name)
    return NO_CONTENT


RESOURCES = (
    Resource("/api/users", ADMINISTRATOR, {"GET": users}),
    Resource("/api/users/without-permissions", ADMINISTRATOR, {"GET": without_permissions}),
    Resource("/api/users/bulk-delete", ADMINISTRATOR, {"POST": bulk_delete}),
    Resource("/api/users/{user}", ADMINISTRATOR, {"GET": one, "PUT": put, "DELETE": delete}),
)
