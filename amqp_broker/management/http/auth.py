"""Logins and tags: HTTP's basic authentication, and the tag that an endpoint needs.

Source: RabbitMQ, "Management Plugin", "Access and Permissions"; rabbit_web_dispatch_access_control.erl.
"""

from __future__ import annotations

import asyncio
import base64
import re
from typing import TYPE_CHECKING, Final

from amqp_broker.amqp.errors import BadCredentials
from amqp_broker.broker.admin.access import User
from amqp_broker.broker.logins import HTTP
from amqp_broker.management.http.answers import Challenge, Refusal, not_authorised, unauthenticated

if TYPE_CHECKING:
    from amqp_broker.broker.backends.questions import Answers, Unanswered
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

# A token of the scheme Bearer (RFC 6750).
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
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
    return sees_all_vhosts(user) or user.can_open(vhost.name)


def require_vhost(user: User, vhost: VHost, method: str = "GET") -> None:
    """Raise Refusal (401) unless the user sees a vhost or, with another method than GET, may change it."""
    is_allowed = (
        sees_vhost(user, vhost) if method == "GET" else user.can_open(vhost.name) or has_tag(user, ADMINISTRATOR)
    )
    if not is_allowed:
        raise not_authorised("User not authorised to access virtual host")


def require_owner(user: User, owner: User | None, method: str = "GET") -> None:
    """Raise Refusal (401) unless the user may see a connection of `owner` or, with DELETE, close it."""
    if not user.is_same(owner) and not has_tag(user, ADMINISTRATOR if method == "DELETE" else MONITORING):
        raise not_authorised("User not authorised to access object")


def login(broker: Broker, authorization: str | None, tag: str, peer_host: str, answers: Answers | None = None) -> User:
    """Return the user of an Authorization header.

    `answers` are those of remote backends so far. Raise Unanswered for another one, and Refusal: 401 for a missing or a
    wrong header, or a user without the tag, 400 for one that cannot be read.
    """
    if authorization is None:
        raise Challenge
    name, password = _credentials(broker, authorization)
    try:
        user = broker.logins.check(name, password, peer_host, HTTP, answers)
    except BadCredentials as refusal:
        raise login_failed(broker, "User can only log in via localhost" if refusal.is_remote else "") from None
    require_tag(user, MANAGEMENT)
    require_tag(user, tag)
    return user


async def answered(question: Unanswered) -> None:
    """Wait until a remote backend has answered."""
    is_done = asyncio.Event()
    question.ask(is_done.set)
    await is_done.wait()


def login_failed(broker: Broker, reason: str = "") -> Refusal:
    """Return the refusal of credentials in the words of the imitated version; RabbitMQ 3 adds a challenge."""
    if broker.profile.release >= (4, 0):
        return unauthenticated(reason or "Not_Authorized")
    return Challenge(reason or "Login failed")


def _credentials(broker: Broker, authorization: str) -> tuple[str, bytes]:
    """Return name and password of an Authorization header. Raise Refusal for one of another kind.

    RabbitMQ reads those of the schemes Basic, Bearer and Digest; 400 is its empty answer to all others.
    """
    scheme, _, given = authorization.partition(" ")
    scheme, given = scheme.lower(), given.strip(" ")
    if scheme == "bearer" and _TOKEN.fullmatch(given):
        raise login_failed(broker)
    if scheme == "digest" and "=" in given:
        raise Challenge
    try:
        name, colon, password = base64.b64decode(given, validate=True).partition(b":")
    except ValueError:
        colon = b""
    if scheme != "basic" or not colon:
        raise Refusal(400, "bad_request", None)
    return name.decode("utf-8", "surrogateescape"), password
