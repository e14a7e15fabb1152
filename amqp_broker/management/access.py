"""Who asks, and what he may see: HTTP's basic authentication and RabbitMQ's tags.

Source: RabbitMQ, "Management Plugin", "Access and Permissions"; rabbit_web_dispatch_access_control.erl.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Final

from amqp_broker.broker.access import User
from amqp_broker.broker.logins import HTTP
from amqp_broker.errors import BadCredentials
from amqp_broker.management.request import not_authorised, unauthenticated

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.vhost import VHost

# What a resource needs: nothing, a login, or a tag of those that include it.
ANYBODY: Final = "anybody"
MANAGEMENT: Final = "management"
POLICYMAKER: Final = "policymaker"
MONITORING: Final = "monitoring"
ADMINISTRATOR: Final = "administrator"

_TAGS: Final[dict[str, frozenset[str]]] = {
    MANAGEMENT: frozenset({"management", "policymaker", "monitoring", "administrator"}),
    POLICYMAKER: frozenset({"policymaker", "administrator"}),
    MONITORING: frozenset({"monitoring", "administrator"}),
    ADMINISTRATOR: frozenset({"administrator"}),
}

# What who lacks a tag is told.
_LACKS: Final = {
    POLICYMAKER: "User not authorised to access object",
    MONITORING: "Not monitor user",
    ADMINISTRATOR: "Not administrator user",
}

CHALLENGE: Final = 'Basic realm="RabbitMQ Management"'


def may(user: User, needs: str) -> bool:
    """Whether a user has a tag that is enough."""
    return needs == ANYBODY or not _TAGS[needs].isdisjoint(user.tags)


def sees_all_vhosts(user: User) -> bool:
    return may(user, MONITORING)


def sees_vhost(user: User, vhost: VHost) -> bool:
    return user.can_open(vhost.name) or sees_all_vhosts(user)


def require_vhost(user: User, vhost: VHost, method: str = "GET") -> None:
    """Raise Refusal unless the user may see a vhost, or be it that he wants to change something, is one who may."""
    is_allowed = sees_vhost(user, vhost) if method == "GET" else user.can_open(vhost.name) or may(user, ADMINISTRATOR)
    if not is_allowed:
        raise not_authorised("User not authorised to access virtual host")


def require_owner(user: User, owner: User | None, method: str = "GET") -> None:
    """Raise Refusal unless the user may see a connection of `owner`, or with method DELETE close it."""
    if user is not owner and not may(user, ADMINISTRATOR if method == "DELETE" else MONITORING):
        raise not_authorised("User not authorised to access object")


def login(broker: Broker, authorization: str | None, needs: str, peer_host: str) -> User:
    """The user of an Authorization header, if he may do what `needs` says. Raises Refusal (401)."""
    name, password = _credentials(authorization)
    try:
        user = broker.login(name, password, peer_host, HTTP)
    except BadCredentials as refusal:
        raise unauthenticated("User can only log in via localhost" if refusal.is_remote else "Login failed") from None
    if not may(user, MANAGEMENT):
        raise not_authorised("Not management user")
    if not may(user, needs):
        raise not_authorised(_LACKS[needs])
    return user


def _credentials(authorization: str | None) -> tuple[str, bytes]:
    scheme, _, encoded = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        raise unauthenticated("Login failed")
    try:
        name, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
    except binascii.Error:
        raise unauthenticated("Login failed") from None
    if not colon:
        raise unauthenticated("Login failed")
    return name.decode("utf-8", "surrogateescape"), password
