"""The users of a broker: creating, changing and deleting them, and their permissions in each vhost.

A change counts at once, for open connections as well. Permissions are checked in RabbitMQ's order: first the patterns,
then the user, then the vhost (rabbit_auth_backend_internal.erl, set_permissions).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from amqp_broker.amqp.errors import DoesNotExist
from amqp_broker.broker import journal_entries
from amqp_broker.broker.admin.access import SALT_BYTES, Permission, TopicPermission, User, hash_password

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker


class Users(Mapping[str, User]):
    """The users of a broker by name."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._by_name: dict[str, User] = {}
        # Of passwords; definitions may have hashes of another algorithm.
        self.hashing_algorithm = broker.settings.password_hashing_module

    def __getitem__(self, name: str) -> User:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def named(self, name: str) -> User:
        """Return the user of that name. Raises DoesNotExist."""
        user = self._by_name.get(name)
        if user is None:
            raise DoesNotExist(f"User '{name}' does not exist")
        return user

    def add(self, name: str, password: str, *, tags: tuple[str, ...] = ()) -> User:
        """Create or replace a user; the new one has no permissions."""
        user = User(name, self.hash(password.encode()), tags, hashing_algorithm=self.hashing_algorithm)
        if name in self._by_name:
            self._undefine_permissions(self._by_name[name])
        self._by_name[name] = user
        self._remember(user)
        self._broker.events.user_created(user)
        return user

    def put(self, name: str, password_hash: bytes, algorithm: str, tags: Iterable[str]) -> User:
        """Create a user, or change the password and tags of an existing one."""
        is_new = name not in self._by_name
        user = self._by_name.setdefault(name, User(name))
        user.password_hash, user.hashing_algorithm = password_hash, algorithm
        if not is_new:
            self._broker.events.emit_action("user.password.changed", name=name)
            self.set_tags(user, tags)
            return user
        user.tags = tuple(tag.strip() for tag in tags)
        self._remember(user)
        self._broker.events.user_created(user)
        return user

    def restore(self, user: User) -> None:
        """Add a user from the journal."""
        self._by_name[user.name] = user

    def delete(self, name: str) -> None:
        """Delete a user and close the connections of that user. Raises DoesNotExist."""
        broker, user = self._broker, self.named(name)
        del self._by_name[name]
        broker.journal.undefine(("user", name))
        self._undefine_permissions(user)
        # A login in progress must not find an open vhost any more.
        user.permissions.clear()
        connections = [connection for connection in broker.connections if connection.user is user]
        broker.do_in_portions(broker.closing(connections, f"user '{name}' is deleted"))
        self._permissions_changed()
        broker.events.emit_action("user.deleted", name=name)

    def hash(self, password: bytes) -> bytes:
        """Return a new salt and the hash of a password, by `hashing_algorithm`."""
        return hash_password(password, self._broker.entropy(SALT_BYTES), self.hashing_algorithm)

    def change_password(self, user: User, password: str) -> None:
        """Change the password; open connections stay open."""
        self.set_password_hash(user, self.hash(password.encode()), self.hashing_algorithm)

    def set_password_hash(self, user: User, password_hash: bytes, algorithm: str) -> None:
        """Set a hash made elsewhere (see `access.decode_hash`); with b"" no password is accepted."""
        user.password_hash, user.hashing_algorithm = password_hash, algorithm
        self._remember(user)
        self._broker.events.emit_action(
            "user.password.changed" if password_hash else "user.password.cleared", name=user.name
        )

    def set_tags(self, user: User, tags: Iterable[str]) -> None:
        """Set the tags: `administrator`, `monitoring`, `policymaker`, `management`, `impersonator`, or any other."""
        user.tags = tuple(tag.strip() for tag in tags)
        self._remember(user)
        self._broker.events.emit_action("user.tags.set", name=user.name, tags=list(user.tags))

    # Limits

    def set_limit(self, user: User, name: str, value: object) -> None:
        """Set `max-connections` or `max-channels`; a negative value means no limit. Raises InvalidParameter."""
        user.limits.set(name, value)
        self._limits_set(user)

    def set_limits(self, user: User, limits: Mapping[str, object]) -> None:
        """Replace all limits. Raises InvalidParameter, and changes nothing then."""
        user.limits.replace(limits)
        self._limits_set(user)

    def clear_limit(self, user: User, name: str) -> None:
        """Remove a limit, if it is set."""
        user.limits.clear(name)
        self._remember(user)
        self._broker.events.emit_action("user.limits.cleared", name="limits", username=user.name)

    def _limits_set(self, user: User) -> None:
        self._remember(user)
        self._broker.events.emit_action("user.limits.set", name="limits", username=user.name, **user.limits.given)

    # Permissions

    def set_permission(self, user: User, vhost: str, permission: Permission) -> None:
        """Set a user's permissions in a vhost.

        Raises InvalidParameter for an invalid pattern, and DoesNotExist for an unknown user or vhost.
        """
        permission.check()
        self._require(user, vhost)
        user.permissions[vhost] = permission
        self._broker.journal.define(*journal_entries.of_permission(user, vhost, permission))
        self._permissions_changed()
        self._broker.events.permission_created(user, vhost, permission)

    def clear_permission(self, user: User, vhost: str) -> None:
        """Remove a user's permission in a vhost; open connections stay open. Raises DoesNotExist."""
        self._require(user, vhost)
        if user.permissions.pop(vhost, None) is not None:
            self._broker.journal.undefine(("permission", user.name, vhost))
        self._permissions_changed()
        self._broker.events.emit_action("permission.deleted", user=user.name, vhost=vhost)

    def set_topic_permission(self, user: User, vhost: str, exchange: str, permission: TopicPermission) -> None:
        """Set which topics a user may use at an exchange, which need not exist. Raises as `set_permission` does."""
        permission.check()
        self._require(user, vhost)
        user.topic_permissions[vhost, exchange] = permission
        self._broker.journal.define(*journal_entries.of_topic_permission(user, vhost, exchange, permission))
        self._permissions_changed()
        self._broker.events.emit_action(
            "topic.permission.created",
            user=user.name,
            vhost=vhost,
            exchange=exchange,
            write=permission.write,
            read=permission.read,
        )

    def clear_topic_permission(self, user: User, vhost: str, exchange: str | None = None) -> None:
        """Remove the topic permission for an exchange, or (None) all those in a vhost. Raises DoesNotExist."""
        self._require(user, vhost)
        for key in list(user.topic_permissions):
            if key[0] == vhost and exchange in (key[1], None):
                del user.topic_permissions[key]
                self._broker.journal.undefine(("topic_permission", user.name, *key))
        self._permissions_changed()
        self._broker.events.emit_action("topic.permission.deleted", user=user.name, vhost=vhost)

    def on_vhost_deleted(self, vhost: str) -> None:
        """Remove all permissions in a vhost that has been deleted."""
        for user in self._by_name.values():
            self._undefine_permissions(user, vhost)
            user.forget_vhost(vhost)

    def on_exchange_deleted(self, vhost: str, exchange: str) -> None:
        """Remove the topic permissions at a deleted exchange, as RabbitMQ 4.3 does, where they belong to it."""
        for user in self._by_name.values():
            if user.topic_permissions.pop((vhost, exchange), None) is not None:
                self._broker.journal.undefine(("topic_permission", user.name, vhost, exchange))

    def _remember(self, user: User) -> None:
        self._broker.journal.define(*journal_entries.of_user(user))

    def _undefine_permissions(self, user: User, vhost: str | None = None) -> None:
        """Remove from the journal the permissions in a vhost, or (None) in all."""
        for name in user.permissions:
            if vhost in (name, None):
                self._broker.journal.undefine(("permission", user.name, name))
        for key in user.topic_permissions:
            if vhost in (key[0], None):
                self._broker.journal.undefine(("topic_permission", user.name, *key))

    def _require(self, user: User, vhost: str) -> None:
        self.named(user.name)
        self._broker.vhost(vhost)

    def _permissions_changed(self) -> None:
        for vhost in self._broker.vhosts.values():
            vhost.topology_changed()
