"""Users, with their tags, limits and password hashes.

Source: rabbit_mgmt_wm_user.erl, rabbit_mgmt_wm_users_bulk_delete.erl; rabbit_auth_backend_internal.erl, put_user.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Struct

from amqp_broker.broker.admin.access import InternalUser, decode_hash
from amqp_broker.management.documents.exporting import user_row
from amqp_broker.management.http.answers import CREATED, NO_CONTENT, Answer, bad_request, bad_term
from amqp_broker.management.http.auth import ADMINISTRATOR
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.listing import ListQuery, listed_rows
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import Tags, Text, octets_of_base64, read_by

endpoints = Endpoints()

# Tag of users whose password and tags cannot be changed over HTTP, and the first version that heeds it. Permissions,
# limits and imported definitions are not concerned.
PROTECTED: Final = "protected"
PROTECTED_SINCE: Final = (4, 2)


class NewUser(Struct):
    """A user with a password, or with its hash in base64."""

    # It is required, but RabbitMQ has other words for a missing one than for other keys.
    tags: Tags | None = None
    # Without it, the algorithm is that of the settings.
    hashing_algorithm: Text = ""
    password: Text | None = None
    password_hash: Text | None = None


def _names(name: str, value: Any) -> Any:
    if not isinstance(value, list):
        raise bad_request(f"{name} must be a list of names")
    return value


class UsersToDelete(Struct):
    """Names of users."""

    users: Annotated[list[Any], read_by(_names, items={"type": "string"})]


@endpoints.on("GET /api/users", tag=ADMINISTRATOR, query=ListQuery)
def users(request: Request) -> Any:
    """List users."""
    return listed_rows(request, [user_row(user) for _, user in sorted(request.broker.users.items())], has_pages=True)


@endpoints.on("GET /api/users/without-permissions", tag=ADMINISTRATOR, query=ListQuery)
def without_permissions(request: Request) -> Any:
    """List the users without a permission in any vhost."""
    users_without = [user_row(user) for _, user in sorted(request.broker.users.items()) if not user.permissions]
    return listed_rows(request, users_without, has_pages=True)


@endpoints.on("GET /api/users/{user}", tag=ADMINISTRATOR)
def one(request: Request) -> dict[str, Any]:
    """Return a user."""
    return user_row(request.broker.users.named(request.path["user"]))


@endpoints.on("PUT /api/users/{user}", tag=ADMINISTRATOR, body=NewUser)
def put(request: Request) -> Answer:
    """Create or change a user; with an empty `password_hash` the user cannot log in with a password."""
    name, broker = request.path["user"], request.broker
    _require_changeable(request)
    given = request.read(NewUser)
    if given.tags is None:
        raise bad_request("tags_not_present")
    is_new = name not in broker.users
    password_hash, algorithm = _password_hash(request, given)
    broker.users.put(name, password_hash, algorithm, given.tags)
    return CREATED if is_new else NO_CONTENT


def _is_protected(request: Request, name: str) -> bool:
    """Return whether this request must leave a user as it is. Commands on this machine may change any user."""
    user = request.broker.users.get(name)
    is_known = request.broker.profile.release >= PROTECTED_SINCE
    return is_known and user is not None and PROTECTED in user.tags and not isinstance(request.user, InternalUser)


def _require_changeable(request: Request) -> None:
    """Raise Refusal if the user in the path is protected, whatever the body is."""
    if _is_protected(request, request.path["user"]):
        raise bad_request("Protected users cannot be modified via the HTTP API")


def _password_hash(request: Request, given: NewUser) -> tuple[bytes, str]:
    """Return the hash of a new user and its algorithm; without a password the hash is empty."""
    users = request.broker.users
    algorithm = given.hashing_algorithm or users.hashing_algorithm
    if given.password is not None and given.password_hash is not None:
        raise bad_request("both_password_and_password_hash_are_provided")
    if given.password_hash is not None:
        octets_of_base64(given.password_hash)
        is_newer = request.broker.profile.release >= (4, 0)
        return decode_hash(given.password_hash, algorithm, takes_any_length=is_newer), algorithm
    if not given.password:
        return b"", algorithm
    return users.hash(given.password.encode()), users.hashing_algorithm


@endpoints.on("DELETE /api/users/{user}", tag=ADMINISTRATOR)
def delete(request: Request) -> Answer:
    """Delete a user."""
    _require_changeable(request)
    request.broker.users.delete(request.path["user"])
    return NO_CONTENT


@endpoints.on("POST /api/users/bulk-delete", tag=ADMINISTRATOR, body=UsersToDelete)
def bulk_delete(request: Request) -> Answer:
    """Delete several users, except protected ones; with RabbitMQ 3 up to the first that does not exist."""
    is_newer = request.broker.profile.release >= (4, 0)
    for name in request.read(UsersToDelete).users:
        if isinstance(name, str) and _is_protected(request, name):
            continue
        if is_newer and isinstance(name, str) and name not in request.broker.users:
            continue
        if not isinstance(name, str) or name not in request.broker.users:
            raise bad_term("no_such_user", name)
        request.broker.users.delete(name)
    return NO_CONTENT
