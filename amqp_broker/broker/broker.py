"""The broker as a whole: vhosts, users, connections, and what waits for time to pass.

Nothing here reads a clock or rolls dice: `now` is passed in (ms since the epoch, never decreasing), and so is the
source of random octets.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING

from amqp_broker.broker.access import SALT_BYTES, Permission, User, hash_password
from amqp_broker.broker.connection import Connection
from amqp_broker.broker.journal import Journal, NullJournal
from amqp_broker.broker.timers import Timers
from amqp_broker.broker.vhost import VHost
from amqp_broker.errors import NotAllowed

if TYPE_CHECKING:
    from amqp_broker.broker.queue import Queue
    from amqp_broker.config import Config


class Broker:
    """Everything that a node of RabbitMQ knows.

    `undrained` are the queues whose ready messages wait for the next portion of a drain.
    """

    def __init__(self, config: Config, entropy: Callable[[int], bytes], journal: Journal | None = None) -> None:
        self.config = config
        self.entropy = entropy
        self.journal = journal or NullJournal()
        self.is_durable = journal is not None
        self.timers = Timers()
        self.vhosts: dict[str, VHost] = {}
        self.users: dict[str, User] = {}
        self.connections: set[Connection] = set()
        self.undrained: list[Queue] = []
        # Set when a message had to wait for a consumer's socket, though the consumer would have taken it; the shell
        # then slows its publisher down.
        self.is_congested = False

    def unique_name(self, prefix: str) -> str:
        """A name that no other has: `prefix` and 22 characters, as RabbitMQ makes them."""
        return prefix + base64.urlsafe_b64encode(self.entropy(16)).decode().rstrip("=")

    # Users and vhosts

    def add_vhost(self, name: str) -> VHost:
        """The vhost of that name, created if there is none."""
        if name not in self.vhosts:
            self.vhosts[name] = VHost(self, name)
        return self.vhosts[name]

    def add_user(self, name: str, password: str, *, tags: frozenset[str] = frozenset()) -> User:
        """Create or replace a user, who has no permissions yet."""
        user = User(name, hash_password(password.encode(), self.entropy(SALT_BYTES)), tags)
        self.users[name] = user
        return user

    def set_permission(self, user: User, vhost: str, permission: Permission) -> None:
        user.permissions[vhost] = permission
        if vhost in self.vhosts:
            self.vhosts[vhost].topology_changed()

    def add_defaults(self) -> None:
        """The vhost and the administrator that a fresh RabbitMQ has, named as the configuration says."""
        config = self.config
        self.add_vhost(config.default_vhost)
        user = self.add_user(config.default_user, config.default_pass, tags=frozenset({"administrator"}))
        self.set_permission(user, config.default_vhost, Permission())

    # Connections

    def admit(self, connection: Connection, user: User, vhost_name: str) -> VHost:
        """Let a logged-in connection into a vhost and count it. Raises NotAllowed, in RabbitMQ's order of checks."""
        name, limit = user.name, self.config.connection_max
        if limit is not None and len(self.connections) >= limit:
            raise NotAllowed(f"connection refused: node connection limit ({limit}) is reached")
        vhost = self.vhosts.get(vhost_name)
        if vhost is not None and vhost.connection_max is not None and len(vhost.connections) >= vhost.connection_max:
            raise NotAllowed(
                f"access to vhost '{vhost_name}' refused for user '{name}': "
                f"connection limit ({vhost.connection_max}) is reached"
            )
        if vhost is None:
            raise NotAllowed(f"vhost {vhost_name} not found")
        if user.connection_max is not None:
            count = sum(other.user is user for other in self.connections)
            if count >= user.connection_max:
                raise NotAllowed(
                    f"connection refused for user '{name}': user connection limit ({user.connection_max}) is reached"
                )
        if not user.can_open(vhost_name):
            raise NotAllowed(f"access to vhost '{vhost_name}' refused for user '{name}'")
        connection.vhost = vhost
        vhost.connections.add(connection)
        self.connections.add(connection)
        return vhost

    def dismiss(self, connection: Connection) -> None:
        """A connection is over: what lives with it goes, what it counted for is free again."""
        self.connections.discard(connection)
        if connection.vhost is not None:
            connection.vhost.connections.discard(connection)
            for queue in list(connection.exclusive_queues):
                connection.vhost.remove_queue(queue)

    # Work that was put off

    def drain_on(self) -> bool:
        """Hand out the next portion of each backlog; returns whether there is more to come."""
        queues, self.undrained = self.undrained, []
        for queue in queues:
            queue.drain_on()
        return bool(self.undrained)
