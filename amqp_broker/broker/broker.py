"""The broker as a whole: vhosts, users, connections, and what waits for time to pass.

Nothing here reads a clock or rolls dice: `now` is passed in (ms since the epoch, never decreasing), and so is the
source of random octets.
"""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Final

from amqp_broker.broker import definitions
from amqp_broker.broker.access import SALT_BYTES, SHA256, Permission, TopicPermission, User, hash_password
from amqp_broker.broker.advice import Advisor
from amqp_broker.broker.connection import AwaitsCommit, Connection
from amqp_broker.broker.counters import Counters
from amqp_broker.broker.dead_letter import dead_letter
from amqp_broker.broker.events import EVENT_EXCHANGE, Events, event_exchange
from amqp_broker.broker.faults import Faults
from amqp_broker.broker.journal import Journal, NullJournal
from amqp_broker.broker.limits import MAX_CONNECTIONS
from amqp_broker.broker.logins import AMQP, Logins
from amqp_broker.broker.metadata import Metadata
from amqp_broker.broker.parameters import Component, GlobalParameters
from amqp_broker.broker.record import Records
from amqp_broker.broker.timers import Timers
from amqp_broker.broker.vhost import VHost
from amqp_broker.errors import DoesNotExist, NotAllowed, PreconditionFailed, ProtectedFromDeletion

if TYPE_CHECKING:
    from amqp_broker.broker.channel import Channel
    from amqp_broker.broker.consumer import Consumer
    from amqp_broker.broker.delayed_exchange import DelayedExchange
    from amqp_broker.broker.queue import Queue
    from amqp_broker.broker.waiting import IdleWait
    from amqp_broker.config import Config
    from amqp_broker.message import Message

# Names of global parameters.
CLUSTER_NAME: Final = "cluster_name"
CLUSTER_ID: Final = "internal_cluster_id"
# In the log connections are numbered; before them comes the broker itself.
FIRST_CONNECTION: Final = 2


class Broker:
    """Everything that a node of RabbitMQ knows.

    `undrained` are the queues whose ready messages wait for the next portion of a drain, and the exchanges whose
    delayed messages do.
    """

    def __init__(self, config: Config, entropy: Callable[[int], bytes], journal: Journal | None = None) -> None:
        self.config = config.resolved()
        self.profile = config.profile
        self.entropy = entropy
        self.journal = journal or NullJournal()
        # Who waits for a commit of the journal.
        self.awaiting_commit: dict[AwaitsCommit, None] = {}
        self.timers = Timers()
        self.vhosts: dict[str, VHost] = {}
        self.users: dict[str, User] = {}
        self.logins = Logins()
        self.faults = Faults(self)
        self.connections: set[Connection] = set()
        self.undrained: list[Queue | DelayedExchange] = []
        # What time it is, as the shell said last (ms since the epoch).
        self.now = 0
        # The same, read as exactly as a trace wants it (µs); a shell with a clock puts its own here.
        self.now_us: Callable[[], int] = lambda: self.now * 1000
        # What is really lived through: a shell whose clock can be moved puts a heap and a time of its own here.
        self.real_timers = self.timers
        self.real_now: Callable[[], int] = lambda: self.now
        # While a shell moves the clock: where to (ms since the epoch).
        self.advancing_to_ms: int | None = None
        self.node = "rabbit@localhost"
        self.events = Events(self)
        self.global_parameters = GlobalParameters(self)
        # Who does what parameters say, by component.
        self.components: dict[str, Component] = {}
        self.counters = Counters(self)
        self.advice = Advisor(self)
        self.records = Records(self)
        self.idle_waits: list[IdleWait] = []
        self.connection_numbers = count(FIRST_CONNECTION)
        self._message_count = 0
        # When the first of them was numbered (µs since the epoch); 0 before.
        self.numbered_since_us = 0
        self._dead_letters: deque[tuple[Queue, Message, str]] = deque()
        self._is_dead_lettering = False
        # Set when a message had to wait for a consumer's socket, though the consumer would have taken it; the shell
        # then slows its publisher down.
        self.is_congested = False
        # What the node is short of: "memory", "disk".
        self.alarms: set[str] = set()
        # Transient queues that go on in the journal because memory was short.
        self._paging: list[Queue] = []

    def unique_name(self, prefix: str) -> str:
        """A name that no other has: `prefix` and 22 characters, as RabbitMQ makes them."""
        return prefix + base64.urlsafe_b64encode(self.entropy(16)).decode().rstrip("=")

    def next_message_number(self) -> int:
        """A number for a message that is traced."""
        if not self._message_count:
            self.numbered_since_us = self.now_us()
        self._message_count += 1
        return self._message_count

    def tick(self, now: int) -> None:
        """Run what is due at `now`."""
        self.now = now
        self.timers.run_due(now)

    def set_alarm(self, resource: str, is_on: bool) -> None:
        """The node is short of memory or disk, or no longer: connections that publish wait meanwhile."""
        if is_on is (resource in self.alarms):
            return
        if is_on:
            self.alarms.add(resource)
        else:
            self.alarms.discard(resource)
        self.events.emit("alarm.set" if is_on else "alarm.cleared", node=self.node, source=resource)
        for connection in list(self.connections):
            connection.follow_alarms()

    @property
    def is_paging(self) -> bool:
        """Whether transient queues go on in the journal."""
        return bool(self._paging)

    def page(self, is_short: bool) -> None:
        """Have long transient queues go on in the journal while memory is short, and come back when it is not."""
        if not self.journal.is_durable:
            return
        if is_short:
            for vhost in self.vhosts.values():
                self._paging += [queue for queue in vhost.queues.values() if queue.page()]
        elif self._paging:
            self._paging = [queue for queue in self._paging if not queue.end_paging()]

    def on_committed(self) -> None:
        """The journal has committed a batch: who waited for it goes on."""
        logs, self.journal.advanced_logs = self.journal.advanced_logs, []
        for log in logs:
            log.queue.on_committed()
        for waiting in list(self.awaiting_commit):
            if not waiting.on_committed(self.journal.committed):
                del self.awaiting_commit[waiting]

    # Users and vhosts

    def add_vhost(self, name: str, metadata: Metadata | None = None) -> VHost:
        """The vhost of that name, created if there is none. Raises InvalidParameter for metadata that cannot be."""
        if name not in self.vhosts:
            vhost = VHost(self, name)
            if metadata is not None:
                metadata.check()
                vhost.metadata = metadata
            self.vhosts[name] = vhost
            self.records.on_vhost_created(vhost)
            if name == self.config.default_vhost:
                vhost.exchanges[EVENT_EXCHANGE] = event_exchange(name)
            self.journal.define(*definitions.of_vhost(vhost))
            self.events.vhost_created(vhost)
        return self.vhosts[name]

    def add_user(self, name: str, password: str, *, tags: frozenset[str] = frozenset()) -> User:
        """Create or replace a user, who has no permissions yet."""
        user = User(name, hash_password(password.encode(), self.entropy(SALT_BYTES)), tags)
        if name in self.users:
            self._forget_permissions(self.users[name])
        self.users[name] = user
        self._remember(user)
        self.events.user_created(user)
        return user

    def put_user(self, name: str, password_hash: bytes, algorithm: str, tags: Iterable[str]) -> User:
        """Create a user, or give the one of that name another password and tags; he keeps permissions and limits."""
        is_new = name not in self.users
        user = self.users.setdefault(name, User(name))
        user.password_hash, user.hashing_algorithm = password_hash, algorithm
        if not is_new:
            self.events.emit_action("user.password.changed", name=name)
            self.set_tags(user, tags)
            return user
        user.tags = frozenset(tag.strip() for tag in tags)
        self._remember(user)
        self.events.user_created(user)
        return user

    def set_user_limits(self, user: User, limits: Mapping[str, object]) -> None:
        """Limit what `limits` says, and nothing else. Raises InvalidParameter, and changes nothing then."""
        user.limits.replace(limits)
        self._remember(user)
        self.events.emit_action("user.limits.set", name="limits", username=user.name, **user.limits.given)

    def vhost(self, name: str) -> VHost:
        """The vhost of that name. Raises DoesNotExist."""
        vhost = self.vhosts.get(name)
        if vhost is None:
            raise DoesNotExist(f"Virtual host '{name}' does not exist")
        return vhost

    def delete_vhost(self, name: str) -> None:
        """Delete a vhost with all that is in it, and close the connections to it.

        Raises DoesNotExist, and ProtectedFromDeletion if its metadata say so.
        """
        vhost = self.vhost(name)
        if vhost.metadata.is_protected_from_deletion:
            raise ProtectedFromDeletion(
                f"Refusing to delete virtual host '{name}' because it is protected from deletion"
            )
        for connection in list(vhost.connections):
            connection.force_close(f"vhost '{name}' is deleted", self.now)
        for queue in list(vhost.queues.values()):
            vhost.remove_queue(queue)
        for exchange in vhost.exchanges.values():
            exchange.close()
        self.faults.clear(name)
        vhost.forget()
        self.records.stop(vhost)
        self.advice.on_vhost_deleted(vhost)
        del self.vhosts[name]
        for user in self.users.values():
            self._forget_permissions(user, name)
            user.forget_vhost(name)
        self.events.emit_action("vhost.deleted", name=name)

    def user(self, name: str) -> User:
        """The user of that name. Raises DoesNotExist."""
        user = self.users.get(name)
        if user is None:
            raise DoesNotExist(f"User '{name}' does not exist")
        return user

    def delete_user(self, name: str) -> None:
        """Delete a user, and close all connections that he has. Raises DoesNotExist."""
        user = self.user(name)
        del self.users[name]
        self.journal.undefine(("user", name))
        self._forget_permissions(user)
        # Who is just logging in finds no vhost open any more.
        user.permissions.clear()
        for connection in [connection for connection in self.connections if connection.user is user]:
            connection.force_close(f"user '{name}' is deleted", self.now)
        self._permissions_changed()
        self.events.emit_action("user.deleted", name=name)

    def change_password(self, user: User, password: str) -> None:
        """Who is logged in stays so."""
        self.set_password_hash(user, hash_password(password.encode(), self.entropy(SALT_BYTES)))

    def set_password_hash(self, user: User, password_hash: bytes, algorithm: str = SHA256) -> None:
        """Set what another broker has hashed (`access.decode_hash` reads it); b"" lets no password fit any more."""
        user.password_hash, user.hashing_algorithm = password_hash, algorithm
        self._remember(user)
        self.events.emit_action("user.password.changed" if password_hash else "user.password.cleared", name=user.name)

    def set_tags(self, user: User, tags: Iterable[str]) -> None:
        """`administrator`, `monitoring`, `policymaker`, `management`, `impersonator`, or what means nothing here."""
        user.tags = frozenset(tag.strip() for tag in tags)
        self._remember(user)
        self.events.emit_action("user.tags.set", name=user.name, tags=sorted(user.tags))

    def set_user_limit(self, user: User, name: str, value: object) -> None:
        """Set `max-connections` or `max-channels`; negative is no limit. Raises InvalidParameter."""
        user.limits.set(name, value)
        self._remember(user)
        self.events.emit_action("user.limits.set", name="limits", username=user.name, **user.limits.given)

    def clear_user_limit(self, user: User, name: str) -> None:
        user.limits.clear(name)
        self._remember(user)
        self.events.emit_action("user.limits.cleared", name="limits", username=user.name)

    def _remember(self, user: User) -> None:
        self.journal.define(*definitions.of_user(user))

    def _forget_permissions(self, user: User, vhost: str | None = None) -> None:
        """Those in a vhost, or all: a vhost for which something is set need not be there."""
        for name in user.permissions:
            if vhost in (name, None):
                self.journal.undefine(("permission", user.name, name))
        for key in user.topic_permissions:
            if vhost in (key[0], None):
                self.journal.undefine(("topic_permission", user.name, *key))

    # Permissions: they count at once, for open connections, too. Patterns are checked first, then the user, then the
    # vhost (rabbit_auth_backend_internal.erl, set_permissions)

    def set_permission(self, user: User, vhost: str, permission: Permission) -> None:
        """Raises InvalidParameter for a pattern that is none, and DoesNotExist for an unknown user or vhost."""
        permission.check()
        self._require(user, vhost)
        user.permissions[vhost] = permission
        self.journal.define(*definitions.of_permission(user, vhost, permission))
        self._permissions_changed()
        self.events.permission_created(user, vhost, permission)

    def clear_permission(self, user: User, vhost: str) -> None:
        """The user may do nothing more in a vhost; his connections stay open. Raises DoesNotExist."""
        self._require(user, vhost)
        if user.permissions.pop(vhost, None) is not None:
            self.journal.undefine(("permission", user.name, vhost))
        self._permissions_changed()
        self.events.emit_action("permission.deleted", user=user.name, vhost=vhost)

    def set_topic_permission(self, user: User, vhost: str, exchange: str, permission: TopicPermission) -> None:
        """As `set_permission`. The exchange need not be there yet."""
        permission.check()
        self._require(user, vhost)
        user.topic_permissions[vhost, exchange] = permission
        self.journal.define(*definitions.of_topic_permission(user, vhost, exchange, permission))
        self._permissions_changed()
        self.events.emit_action(
            "topic.permission.created",
            user=user.name,
            vhost=vhost,
            exchange=exchange,
            write=permission.write,
            read=permission.read,
        )

    def clear_topic_permission(self, user: User, vhost: str, exchange: str | None = None) -> None:
        """Lift what was set for an exchange, or for all of a vhost. Raises DoesNotExist."""
        self._require(user, vhost)
        for key in list(user.topic_permissions):
            if key[0] == vhost and exchange in (key[1], None):
                del user.topic_permissions[key]
                self.journal.undefine(("topic_permission", user.name, *key))
        self._permissions_changed()
        self.events.emit_action("topic.permission.deleted", user=user.name, vhost=vhost)

    def _require(self, user: User, vhost: str) -> None:
        self.user(user.name)
        self.vhost(vhost)

    def _permissions_changed(self) -> None:
        for vhost in self.vhosts.values():
            vhost.topology_changed()

    @property
    def cluster_name(self) -> str:
        """As an administrator set it; otherwise as the settings say, or the name of the node."""
        return str(self.global_parameters.values.get(CLUSTER_NAME) or self.config.cluster_name or self.node)

    @property
    def cluster_id(self) -> str:
        """What tells this broker from all others, for as long as its store lives; made up when somebody first asks."""
        values = self.global_parameters.values
        if CLUSTER_ID not in values:
            self.global_parameters.set(CLUSTER_ID, self.unique_name("rabbitmq-cluster-id-"))
        return str(values[CLUSTER_ID])

    def check_exchange_limit(self, resource: str) -> None:
        """Raise PreconditionFailed if there may be no further exchange.

        RabbitMQ's only limit to them (4.1) is one of the cluster, and counts those that are there from the start.
        """
        limit = self.config.exchange_max
        if limit is not None and sum(len(vhost.exchanges) for vhost in self.vhosts.values()) >= limit:
            raise PreconditionFailed(f"cannot declare {resource}: exchange limit of {limit} is reached")

    def add_defaults(self) -> None:
        """The vhost and the administrator that a fresh RabbitMQ has, named as the configuration says."""
        config = self.config
        self.add_vhost(config.default_vhost, Metadata("Default virtual host"))
        tags = frozenset(config.default_user_tags.split())
        user = self.add_user(config.default_user, config.default_pass, tags=tags)
        permission = Permission(
            config.default_permissions_configure, config.default_permissions_write, config.default_permissions_read
        )
        self.set_permission(user, config.default_vhost, permission)

    # Connections

    def login(self, name: str, password: bytes, peer_host: str, protocol: str = AMQP) -> User:
        """Who logs in with a password, over AMQP or HTTP. Raises BadCredentials; see `Logins.check`."""
        return self.logins.check(self, name, password, peer_host, protocol)

    def login_by_certificate(self, name: str, peer_host: str, protocol: str = AMQP) -> User:
        """Who logs in by a certificate that says his name, and has been verified. Raises BadCredentials."""
        return self.logins.check(self, name, None, peer_host, protocol)

    def admit(self, connection: Connection, user: User, vhost_name: str) -> VHost:
        """Let a logged-in connection into a vhost and count it. Raises NotAllowed, in RabbitMQ's order of checks."""
        name, limit = user.name, self.config.connection_max
        if limit is not None and len(self.connections) >= limit:
            raise NotAllowed(f"connection refused: node connection limit ({limit}) is reached")
        vhost = self.vhosts.get(vhost_name)
        if vhost is not None and vhost.limits.is_reached(MAX_CONNECTIONS, len(vhost.connections)):
            raise NotAllowed(
                f"access to vhost '{vhost_name}' refused for user '{name}': "
                f"connection limit ({vhost.limits[MAX_CONNECTIONS]}) is reached"
            )
        if vhost is None:
            raise NotAllowed(f"vhost {vhost_name} not found")
        user_limit = user.limits[MAX_CONNECTIONS]
        if user_limit is not None and sum(other.user is user for other in self.connections) >= user_limit:
            raise NotAllowed(f"connection refused for user '{name}': user connection limit ({user_limit}) is reached")
        if not user.can_open(vhost_name):
            raise NotAllowed(f"access to vhost '{vhost_name}' refused for user '{name}'")
        connection.vhost = vhost
        vhost.connections.add(connection)
        self.connections.add(connection)
        self.counters.connections_created += 1
        return vhost

    def dismiss(self, connection: Connection) -> None:
        """A connection is over: what lives with it goes, what it counted for is free again."""
        was_here = connection in self.connections
        self.connections.discard(connection)
        if connection.vhost is not None:
            connection.vhost.connections.discard(connection)
            for queue in list(connection.exclusive_queues):
                connection.vhost.remove_queue(queue)
        if was_here:
            self.advice.on_connection_closed(connection)
            self.counters.connections_closed += 1
            self.events.connection_closed(connection)

    def channels(self) -> Iterator[Channel]:
        """All open channels."""
        for connection in self.connections:
            yield from connection.channels.values()

    def consumers(self) -> Iterator[Consumer]:
        """All subscriptions to queues."""
        for vhost in self.vhosts.values():
            for queue in vhost.queues.values():
                yield from queue.consumers

    # Dead letters

    def dead_letter(self, queue: Queue, message: Message, reason: str) -> None:
        """Dead-letter a message, and after it those that die of that in the next queue: no chain is too long."""
        if self._is_dead_lettering:
            self._dead_letters.append((queue, message, reason))
            return
        self._is_dead_lettering = True
        try:
            dead_letter(queue, message, reason, self.now)
            while self._dead_letters:
                dead_letter(*self._dead_letters.popleft(), self.now)
        finally:
            self._is_dead_lettering = False

    # Work that was put off

    def drain_on(self) -> bool:
        """Hand out the next portion of each backlog; returns whether there is more to come."""
        undrained, self.undrained = self.undrained, []
        for backlog in undrained:
            backlog.drain_on()
        return bool(self.undrained)
