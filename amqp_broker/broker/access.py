"""Who may do what: users, their passwords, tags, and permissions per vhost (RabbitMQ, "Access Control")."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import Final

from amqp_broker.errors import AccessRefused

IMPERSONATOR: Final = "impersonator"
SALT_BYTES: Final = 4


@dataclass(frozen=True)
class Permission:
    """What a user may do in one vhost: three patterns over resource names, unanchored as in RabbitMQ."""

    configure: str = ".*"
    write: str = ".*"
    read: str = ".*"

    def allows(self, action: str, name: str) -> bool:
        pattern: str = getattr(self, action)
        # The empty pattern permits nothing (it would match everything).
        return bool(pattern) and (pattern == ".*" or re.search(pattern, name) is not None)


@dataclass
class User:
    """A user. `password_hash` is salt and SHA-256 as in RabbitMQ's definitions, or empty: no password fits."""

    name: str
    password_hash: bytes = b""
    tags: frozenset[str] = frozenset()
    permissions: dict[str, Permission] = field(default_factory=dict)
    connection_max: int | None = None
    channel_max: int | None = None

    def accepts(self, password: bytes) -> bool:
        if not self.password_hash or not password:
            return False
        return hmac.compare_digest(self.password_hash, hash_password(password, self.password_hash[:SALT_BYTES]))

    def can_open(self, vhost: str) -> bool:
        """Whether the user has any permission in a vhost, even one that permits nothing."""
        return vhost in self.permissions

    def require(self, action: str, vhost: str, kind: str, name: str) -> None:
        """Raise AccessRefused unless the user may `configure`, `write` or `read` the exchange or queue."""
        shown = name or "amq.default"
        permission = self.permissions.get(vhost)
        if permission is None or not permission.allows(action, shown):
            raise AccessRefused(
                f"{action} access to {kind} '{shown}' in vhost '{vhost}' refused for user '{self.name}'"
            )


def hash_password(password: bytes, salt: bytes) -> bytes:
    """RabbitMQ's default password hash: salt, then SHA-256 of salt and password."""
    return salt + hashlib.sha256(salt + password).digest()
