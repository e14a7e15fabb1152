"""Logins and tags: HTTP's basic authentication, and the tag that an endpoint needs.

Source: RabbitMQ, "Management Plugin", "Access and Permissions"; rabbit_web_dispatch_access_control.erl.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

from amqp_broker.amqp.errors import BadCredentials
from amqp_broker.broker.admin.access import User
from amqp_broker.broker.logins import HTTP
from amqp_broker.management.http.answers import Refusal, not_authorised, unauthenticated

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.vhost import VHost

# Requirements of an endpoint: none, or a tag, or another tag that includes it.
PUBLIC: Final = "public"
MANAGEMENT: Final = "management"
POLICYMAKER: Final = "policymaker"
MONITORING: Final = "monitoring"
ADMINISTRATOR: Final = "administrator"

_INCLUDED_IN: Final[dict[str, frozenset[str]]] = {
    MANAGEMENT: frozenset({MANAGEMENT, POLICYMAKER, MONITORING, ADMINISTRATOR}),
    POLICYMAKER: frozenset({POLICYMAKER, ADMINISTRATOR}),
    MONITORING: frozenset({MONITORING, ADMINISTRATOR}),
    ADMINISTRATOR: frozenset({ADMINISTRATOR}),
}
# RabbitMQ's reasons for refusing a user without the tag.
_MISSING: Final = {
    MANAGEMENT: "Not management user",
    POLICYMAKER: "User not authorised to access object",
    MONITORING: "Not monitor user",
    ADMINISTRATOR: "Not administrator user",
}

CHALLENGE: Final = 'Basic realm="RabbitMQ Management"'


def has_tag(user: User, tag: str) -> bool:
    """Return whether a user has a tag, or another one that includes it."""
    return tag == PUBLIC or not _INCLUDED_IN[tag].isdisjoint(user.tags)


def require_tag(user: User, tag: str) -> None:
    """Raise Refusal (401) unless the user has the tag."""
    if not has_tag(user, tag):
        raise not_authorised(_MISSING[tag])


def sees_all_vhosts(user: User) -> bool:
    """Return whether a user sees vhosts without a permission there."""
    return has_tag(user, MONITORING)


def sees_vhost(user: User, vhost: VHost) -> bool:
    """Return whether a user sees the objects of a vhost."""
    return user.can_open(vhost.name) or sees_all_vhosts(user)


def require_vhost(user: User, vhost: VHost, method: str = "GET") -> None:
    """Raise Refusal (401) unless the user sees a vhost or, with another method than GET, may change it."""
    is_allowed = (
        sees_vhost(user, vhost) if method == "GET" else user.can_open(vhost.name) or has_tag(user, ADMINISTRATOR)
    )
    if not is_allowed:
        raise not_authorised("User not authorised to access virtual host")


def require_owner(user: User, owner: User | None, method: str = "GET") -> None:
    """Raise Refusal (401) unless the user may see a connection of `owner` or, with DELETE, close it."""
    if user is not owner and not has_tag(user, ADMINISTRATOR if method == "DELETE" else MONITORING):
        raise not_authorised("User not authorised to access object")


def login(broker: Broker, authorization: str | None, tag: str, peer_host: str) -> User:
    """Return the user of an Authorization header. Raise Refusal (401) for a wrong one, or a user without the tag."""
    credentials = _credentials(authorization)
    if credentials is None:
        raise login_failed(broker)
    try:
        user = broker.logins.check(*credentials, peer_host, HTTP)
    except BadCredentials as refusal:
        if refusal.is_remote:
            raise unauthenticated("User can only log in via localhost") from None
        raise login_failed(broker) from None
    require_tag(user, MANAGEMENT)
    require_tag(user, tag)
    return user


def login_failed(broker: Broker) -> Refusal:
    """Return the refusal of credentials in the words of the imitated version."""
    return unauthenticated("Not_Authorized" if broker.profile.release >= (4, 0) else "Login failed")


def _credentials(authorization: str | None) -> tuple[str, bytes] | None:
    """Return name and password of an Authorization header, or None for a header of another kind."""
    scheme, _, encoded = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
    except ValueError:
        return None
    return (name.decode("utf-8", "surrogateescape"), password) if colon else None
