"""Users, their passwords, tags, and permissions per vhost (RabbitMQ, "Access Control")."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from amqp_broker.amqp.errors import AccessRefused, InvalidParameter, NotAllowed
from amqp_broker.broker.admin import patterns
from amqp_broker.broker.admin.limits import Limits, user_limits

if TYPE_CHECKING:
    from amqp_broker.broker.vhost import VHost

IMPERSONATOR: Final = "impersonator"
SALT_BYTES: Final = 4

# Names of hash algorithms in RabbitMQ's definitions. All hash salt and password once.
SHA256: Final = "rabbit_password_hashing_sha256"
MD5: Final = "rabbit_password_hashing_md5"
HASHING_ALGORITHMS: Final[dict[str, Callable[..., Any]]] = {
    SHA256: hashlib.sha256,
    "rabbit_password_hashing_sha512": hashlib.sha512,
    MD5: hashlib.md5,
}


@dataclass(frozen=True)
class Permission:
    """A user's permissions in a vhost: three patterns of resource names, unanchored as in RabbitMQ."""

    configure: str = ".*"
    write: str = ".*"
    read: str = ".*"

    def allows(self, action: str, name: str) -> bool:
        pattern: str = getattr(self, action)
        return bool(pattern) and patterns.permits(pattern, name)

    def check(self) -> None:
        """Raise InvalidParameter for an invalid pattern."""
        for pattern in (self.configure, self.write, self.read):
            patterns.check(pattern)


@dataclass(frozen=True)
class TopicPermission:
    """A user's permissions at a topic exchange: patterns of the routing keys of messages and bindings.

    They may contain the variables `{username}` and `{vhost}`; MQTT's `{client_id}` is plain text in AMQP.
    """

    write: str = ".*"
    read: str = ".*"

    def allows(self, action: str, routing_key: str, user: str, vhost: str) -> bool:
        pattern: str = getattr(self, action)
        for variable, value in (("{username}", user), ("{vhost}", vhost)):
            # Special characters in a name are literal.
            pattern = pattern.replace(variable, patterns.escaped(value))
        return patterns.permits(pattern, routing_key)

    def check(self) -> None:
        """Raise InvalidParameter for an invalid pattern."""
        patterns.check(self.write)
        patterns.check(self.read)


@dataclass
class User:
    """A user. `password_hash` is salt and hash as in RabbitMQ's definitions; if empty, no password is accepted."""

    # Remote backends decide about permissions: every check may raise Unanswered.
    asks: ClassVar[bool] = False
    # The broker's own users decide about permissions, alone or as well.
    is_internal = True

    name: str
    password_hash: bytes = field(default=b"", repr=False)
    tags: tuple[str, ...] = ()
    permissions: dict[str, Permission] = field(default_factory=dict)
    # By vhost and exchange.
    topic_permissions: dict[tuple[str, str], TopicPermission] = field(default_factory=dict)
    limits: Limits = field(default_factory=user_limits)
    hashing_algorithm: str = SHA256

    def accepts(self, password: bytes) -> bool:
        """Return whether this is the user's password; a wrong or missing password takes the same time."""
        salt = self.password_hash[:SALT_BYTES]
        fits = hmac.compare_digest(self.password_hash, hash_password(password, salt, self.hashing_algorithm))
        return fits and bool(password)

    def can_open(self, vhost: str) -> bool:
        """Return whether the user has any permission in a vhost, even one that permits nothing."""
        return vhost in self.permissions

    def require_vhost(self, vhost: str) -> None:
        """Raise NotAllowed unless the user `can_open` a vhost."""
        if not self.can_open(vhost):
            raise NotAllowed(f"access to vhost '{vhost}' refused for user '{self.name}'")

    def is_same(self, other: User | None) -> bool:
        """Return whether another login is of the same user."""
        return other is not None and other.name == self.name

    def require(self, action: str, vhost: str, kind: str, name: str) -> None:
        """Raise AccessRefused unless the user may `configure`, `write` or `read` the exchange or queue."""
        shown = name or "amq.default"
        permission = self.permissions.get(vhost)
        if permission is None or not permission.allows(action, shown):
            raise AccessRefused(
                f"{action} access to {kind} '{shown}' in vhost '{vhost}' refused for user '{self.name}'"
            )

    def may_topic(self, action: str, vhost: str, exchange: str, routing_key: str) -> bool:
        """Return whether the user may `write` or `read` a routing key of a topic exchange; by default, yes."""
        permission = self.topic_permissions.get((vhost, exchange))
        return permission is None or permission.allows(action, routing_key, self.name, vhost)

    def require_topic(self, action: str, vhost: VHost, exchange: str, routing_key: str) -> None:
        """Raise AccessRefused unless `may_topic`."""
        if not self.may_topic(action, vhost.name, exchange, routing_key):
            raise self.topic_refused(action, vhost, exchange, routing_key)

    def topic_refused(
        self, action: str, vhost: VHost, exchange: str, routing_key: str, reason: str = ""
    ) -> AccessRefused:
        """Return the refusal of a topic; `reason` ends its text."""
        access = f"{action} access" if vhost.broker.profile.names_topic_action else "access"
        return AccessRefused(
            f"{access} to topic '{routing_key}' in exchange '{exchange}' in vhost '{vhost.name}' "
            f"refused for user '{self.name}'{reason}"
        )

    def forget_vhost(self, vhost: str) -> None:
        """Remove the permissions in a deleted vhost."""
        self.permissions.pop(vhost, None)
        for key in [key for key in self.topic_permissions if key[0] == vhost]:
            del self.topic_permissions[key]


class InternalUser(User):
    """A user without login who may do everything: the broker's shovels, and clients of the control socket."""

    def __init__(self, name: str) -> None:
        super().__init__(name, tags=("administrator",))

    def can_open(self, vhost: str) -> bool:
        return True

    def require(self, action: str, vhost: str, kind: str, name: str) -> None:
        pass

    def may_topic(self, action: str, vhost: str, exchange: str, routing_key: str) -> bool:
        return True


def hash_password(password: bytes, salt: bytes, algorithm: str = SHA256) -> bytes:
    """Return a password hash as RabbitMQ makes it: the salt, then the hash of salt and password."""
    return salt + bytes(HASHING_ALGORITHMS[algorithm](salt + password).digest())


def encode_hash(password_hash: bytes) -> str:
    """Return a password hash as definitions and the HTTP API have it."""
    return base64.b64encode(password_hash).decode()


def decode_hash(text: str, algorithm: str = SHA256, *, takes_any_length: bool = False) -> bytes:
    """Return a password hash from definitions or the HTTP API; with "", no password is accepted.

    Raises InvalidParameter for an unknown algorithm, for invalid base64, and for a wrong length. With
    `takes_any_length`, a hash of a wrong length is returned, too; it accepts no password.
    """
    hashing = HASHING_ALGORITHMS.get(algorithm)
    if hashing is None:
        raise InvalidParameter(f"hashing algorithm '{algorithm}' is none of {', '.join(HASHING_ALGORITHMS)}")
    try:
        password_hash = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidParameter("password hash is not base64") from None
    expected = SALT_BYTES + hashing().digest_size
    if password_hash and len(password_hash) != expected and not takes_any_length:
        raise InvalidParameter(
            f"password hash has {len(password_hash)} octets; salt and hash of {algorithm} have {expected}"
        )
    return password_hash
