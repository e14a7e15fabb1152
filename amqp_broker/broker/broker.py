"""The broker as a whole: vhosts, users, connections, and timers.

No code here reads a clock or makes random numbers: `now` (ms since the epoch, never decreasing) and the source of
random octets are passed in.
"""

from __future__ import annotations

import base64
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.amqp.errors import (
    DoesNotExist,
    InternalError,
    NotAllowed,
    PreconditionFailed,
    ProtectedFromDeletion,
)
from amqp_broker.broker import journal_entries
from amqp_broker.broker.admin.access import Permission, User
from amqp_broker.broker.admin.limits import MAX_CONNECTIONS
from amqp_broker.broker.admin.metadata import Metadata
from amqp_broker.broker.clients.awaiting_login import AwaitingLogin
from amqp_broker.broker.clients.client_connection import AwaitsCommit, Connection
from amqp_broker.broker.counting.counters import Counters
from amqp_broker.broker.durability.journal import Journal, NullJournal
from amqp_broker.broker.lab.advice import Advisor
from amqp_broker.broker.lab.fault_injector import FaultInjector
from amqp_broker.broker.logins import Logins
from amqp_broker.broker.observe.event_log import EventLogs
from amqp_broker.broker.observe.events import Events, internal_exchanges
from amqp_broker.broker.observe.incidents import Incidents
from amqp_broker.broker.observe.recorder import MessageNumbers
from amqp_broker.broker.queues.backlog_queue import FREED_MAX
from amqp_broker.broker.queues.classic import ClassicQueue
from amqp_broker.broker.routing.dead_lettering import DeadLettering
from amqp_broker.broker.runtime_parameters import Component, GlobalParameters
from amqp_broker.broker.scheduling.portions import WORK_MAX, Steps, finished
from amqp_broker.broker.scheduling.timers import Timers
from amqp_broker.broker.users import Users
from amqp_broker.broker.vhost import VHost

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.clients.client_channel import ClientChannel
    from amqp_broker.broker.observe.waiting import QueueWait
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.kept_dead_letters import KeptDeadLetter
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.settings.settings import Settings

# Short steps, of some microseconds each, that are done at once.
PORTION_STEPS: Final = 250
# Names of global parameters.
CLUSTER_NAME: Final = "cluster_name"
CLUSTER_ID: Final = "internal_cluster_id"
CLUSTER_TAGS: Final = "cluster_tags"
# Connections are numbered in the log; the broker itself is number 1.
FIRST_CONNECTION: Final = 2


class Broker:
    """The state of a node.

    `undrained` has a call for each backlog that waits for its next portion: the ready messages of a queue, the due
    messages of a delayed exchange, purged messages that are still to be freed, or bindings of a deleted object.
    """

    def __init__(self, settings: Settings, entropy: Callable[[int], bytes], journal: Journal | None = None) -> None:
        self.settings = settings.resolved()
        self.profile = settings.profile
        self.entropy = entropy
        self.journal = journal or NullJournal()
        # In the order in which they began to wait.
        self.awaiting_commit: dict[AwaitsCommit, None] = {}
        self.timers: Timers = Timers()
        self.vhosts: dict[str, VHost] = {}
        self.users = Users(self)
        self.logins = Logins(self.users, self.settings.local_users, lambda: self.now)
        self.faults: FaultInjector = FaultInjector(self)
        self.connections: set[Connection] = set()
        self.awaiting_login = AwaitingLogin()
        self.undrained: list[Callable[[], None]] = []
        # Consumers that may take again, since messages were settled: resumed at the end of the read, or before what
        # depends on their taking. The list is never replaced: sessions share it.
        self.freed_consumers: list[Consumer] = []
        # The work of this turn of the loop, as far as it is counted. From `WORK_MAX` on, others are served before more.
        self.work = 0
        # The work of finding queues that no session has counted yet.
        self.routing_work = 0
        # The time that the server last passed in (ms since the epoch).
        self.now: int = 0
        # The current time in µs, for traces; a server with a clock replaces it.
        self.now_us: Callable[[], int] = lambda: self.now * 1000
        # Real time; a server whose clock can be moved replaces both.
        self.real_timers = self.timers
        self.real_now: Callable[[], int] = lambda: self.now
        # The target of an advance of the clock that is under way (ms since the epoch).
        self.advancing_to_ms: int | None = None
        self.node = "rabbit@localhost"
        self.events: Events = Events(self)
        self.global_parameters = GlobalParameters(self)
        # Feature flags that an administrator has enabled.
        self.feature_flags: set[str] = set()
        # By the name of the component.
        self.components: dict[str, Component] = {}
        self.counters: Counters = Counters()
        # Queues whose counts or lengths have changed since their last samples. A deleted one is removed at once.
        self.changed_queues: OrderedDict[Queue, None] = OrderedDict()
        self.advice: Advisor = Advisor(self)
        self.incidents = Incidents(self)
        self.event_logs = EventLogs(self)
        self.queue_waits: list[QueueWait] = []
        self.connection_numbers = count(FIRST_CONNECTION)
        self.message_numbers = MessageNumbers(lambda: self.now_us())
        # To call when the current turn of the loop ends.
        self.turn_ends: list[Callable[[], None]] = []
        self.dead_lettering: DeadLettering = DeadLettering(self)
        # A message waits for a consumer whose socket is full; the server then slows the publisher down.
        self.is_congested = False
        self.alarms: set[str] = set()  # the resources that the node is short of: "memory", "disk"
        # Transient queues that continue in the journal because memory was short.
        self._paging: list[ClassicQueue] = []

    def unique_name(self, prefix: str) -> str:
        """Return a unique name: `prefix` and 22 characters, as RabbitMQ makes them."""
        return prefix + base64.urlsafe_b64encode(self.entropy(16)).decode().rstrip("=")

    @property
    def message_count(self) -> int:
        """Number of messages that traces have numbered."""
        return self.message_numbers.count

    def end_turn(self) -> None:
        """Do what is due at the end of a turn of the loop."""
        self.work = 0
        if self.turn_ends:
            ends, self.turn_ends = self.turn_ends, []
            for end in ends:
                end()

    def tick(self, now: int) -> None:
        """Set the time, and run timers that are due; the rest stays due if there are many."""
        self.now = now
        self.timers.run_due(now)

    def set_alarm(self, resource: str, is_on: bool) -> None:
        """Raise or clear the alarm of a resource; while any is on, connections that publish are blocked."""
        if is_on is (resource in self.alarms):
            return
        self.alarms ^= {resource}
        self.events.emit("alarm.set" if is_on else "alarm.cleared", node=self.node, source=resource)
        self.do_in_portions(self._following_alarms())

    def _following_alarms(self) -> Steps[None]:
        for connection in list(self.connections):
            connection.follow_alarms()
            yield

    @property
    def is_paging(self) -> bool:
        """True while transient queues continue in the journal."""
        return bool(self._paging)

    def page(self, is_short: bool) -> None:
        """Continue long transient queues in the journal while memory is short, and end that when it is not."""
        if not self.journal.is_durable:
            return
        if is_short:
            for vhost in self.vhosts.values():
                queues = [queue for queue in vhost.queues.values() if isinstance(queue, ClassicQueue)]
                self._paging += [queue for queue in queues if queue.page()]
        elif self._paging:
            self._paging = [queue for queue in self._paging if not queue.end_paging()]

    def on_committed(self) -> None:
        """Resume the readers, connections and requests that waited for the committed batch."""
        logs, self.journal.advanced_logs = self.journal.advanced_logs, []
        for log in logs:
            log.readers.on_committed()
        for waiting in list(self.awaiting_commit):
            if not waiting.on_committed(self.journal.committed):
                del self.awaiting_commit[waiting]

    # Vhosts

    def add_vhost(self, name: str, metadata: Metadata | None = None) -> VHost:
        """Return the vhost of that name, created if it is missing. Raises InvalidParameter for invalid metadata."""
        if name not in self.vhosts:
            vhost = VHost(self, name)
            if metadata is not None:
                metadata.check()
                vhost.metadata = vhost.noted(metadata)
            self.vhosts[name] = vhost
            self.event_logs.on_vhost_created(vhost)
            if name == self.settings.default_vhost:
                vhost.exchanges.update(internal_exchanges(name, self.profile))
            vhost.remember()
            self.events.vhost_created(vhost)
        return self.vhosts[name]

    def vhost(self, name: str) -> VHost:
        """Return the vhost of that name. Raises DoesNotExist."""
        vhost = self.vhosts.get(name)
        if vhost is None:
            raise DoesNotExist(f"Virtual host '{name}' does not exist")
        return vhost

    def delete_vhost(self, name: str) -> None:
        """Delete a vhost with its contents, and close the connections to it.

        Raises DoesNotExist, and ProtectedFromDeletion if its metadata forbid it.
        """
        finished(self.deleting_vhost(name))

    def deleting_vhost(self, name: str) -> Steps[None]:
        """Delete a vhost in steps. It refuses clients from the first step on and is removed by the last.

        If the caller stops early, the rest is done at once.
        """
        vhost = self.vhost(name)
        if vhost.metadata.is_protected_from_deletion:
            raise ProtectedFromDeletion(
                f"Refusing to delete virtual host '{name}' because it is protected from deletion"
            )
        with vhost.down():
            try:
                yield from self.closing(vhost.connections, f"{vhost} is deleted")
                yield from vhost.removing_queues()
                yield from vhost.removing_exchanges()
            finally:
                finished(self.closing(vhost.connections, f"{vhost} is deleted"))
                finished(vhost.removing_queues())
                finished(vhost.removing_exchanges())
                if self.vhosts.get(name) is vhost:
                    self._remove_vhost(vhost)

    def _remove_vhost(self, vhost: VHost) -> None:
        """Remove a vhost that has no queues and exchanges any more."""
        name = vhost.name
        self.faults.clear(name)
        vhost.forget()
        self.event_logs.stop(vhost)
        vhost.tracing.stop_recording()
        self.advice.on_vhost_deleted(vhost)
        del self.vhosts[name]
        self.users.on_vhost_deleted(name)
        self.events.emit_action("vhost.deleted", name=name)

    @property
    def cluster_name(self) -> str:
        """The name set by an administrator, else that of the settings, else that of the node."""
        return str(self.global_parameters.values.get(CLUSTER_NAME) or self.settings.cluster_name or self.node)

    @property
    def cluster_id(self) -> str:
        """A unique ID that lasts as long as the store; it is made at the first request."""
        values = self.global_parameters.values
        if CLUSTER_ID not in values:
            self.global_parameters.set(CLUSTER_ID, self.unique_name("rabbitmq-cluster-id-"))
        return str(values[CLUSTER_ID])

    def enable_feature(self, name: str) -> None:
        """Enable a feature flag of RabbitMQ's, also for later starts; it is shown, and has no other effect."""
        self.feature_flags.add(name)
        self.journal.define(*journal_entries.of_feature(name))

    def check_exchange_limit(self, resource: str) -> None:
        """Raise PreconditionFailed if the limit of exchanges is reached.

        As in RabbitMQ (4.1), the limit holds for all vhosts together and includes the predeclared exchanges.
        """
        limit = self.settings.exchange_max
        if limit is not None and sum(len(vhost.exchanges) for vhost in self.vhosts.values()) >= limit:
            raise PreconditionFailed(f"cannot declare {resource}: exchange limit of {limit} is reached")

    def add_defaults(self) -> None:
        """Add the vhost and the administrator of a new broker, with the names that the settings give."""
        settings = self.settings
        self.add_vhost(settings.default_vhost, Metadata("Default virtual host"))
        tags = tuple(settings.default_user_tags.split())
        user = self.users.add(settings.default_user, settings.default_pass, tags=tags)
        permission = Permission(
            settings.default_permissions_configure,
            settings.default_permissions_write,
            settings.default_permissions_read,
        )
        self.users.set_permission(user, settings.default_vhost, permission)

    # Connections

    def admit(self, connection: Connection, user: User, vhost_name: str) -> VHost:
        """Let a logged-in connection into a vhost and count it.

        Raises NotAllowed, in RabbitMQ's order of checks, and InternalError while the vhost is down.
        """
        name, limit = user.name, self.settings.connection_max
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
        if self._has_reached_limit(user):
            user_limit = user.limits[MAX_CONNECTIONS]
            raise NotAllowed(f"connection refused for user '{name}': user connection limit ({user_limit}) is reached")
        user.require_vhost(vhost_name)
        if vhost.is_down:
            raise InternalError(
                f"access to vhost '{vhost_name}' refused for user '{name}': vhost '{vhost_name}' is down"
            )
        connection.vhost = vhost
        vhost.connections.add(connection)
        self.connections.add(connection)
        self.counters.connections_created += 1
        return vhost

    def _has_reached_limit(self, user: User) -> bool:
        limit = user.limits[MAX_CONNECTIONS]
        return limit is not None and sum(other.user is user for other in self.connections) >= limit

    def has_reached_limit(self, user: User, vhost: VHost) -> bool:
        """Return whether no connection more may open: RabbitMQ's HTTP API opens one (rabbit_direct.erl)."""
        return vhost.limits.is_reached(MAX_CONNECTIONS, len(vhost.connections)) or self._has_reached_limit(user)

    def dismiss(self, connection: Connection) -> None:
        """Remove a closed connection and its exclusive queues; it no longer counts towards limits."""
        was_here = connection in self.connections
        self.connections.discard(connection)
        vhost = self.vhosts.get(connection.vhost.name) if connection.vhost is not None else None
        if vhost is not None:
            vhost.connections.discard(connection)
            if connection.exclusive_queues:
                self.do_in_portions(vhost.deletions.of_exclusive(connection.exclusive_queues))
        if was_here:
            self.advice.on_connection_closed(connection)
            self.incidents.on_connection_closed(connection)
            self.counters.connections_closed += 1
            self.events.connection_closed(connection)

    def closing(self, connections: Iterable[Connection], explanation: str) -> Steps[None]:
        """Close connections in steps, with connection.close and an explanation."""
        for connection in list(connections):
            if connection in self.connections:
                connection.force_close(explanation, self.now)
                yield

    def collect_counts(self) -> None:
        """Bring all counts up to date; this takes some microseconds per open channel and per route in use."""
        finished(self.collecting_counts())

    def collecting_counts(self) -> Steps[None]:
        """Do `collect_counts` in steps; each count is that of its step."""
        for connection in list(self.connections):
            for channel in list(connection.channels.values()):
                channel.collect()
                yield
        for vhost in list(self.vhosts.values()):
            yield from vhost.counts.collecting()
            yield

    def channels(self) -> Iterator[ClientChannel]:
        """Yield all open channels."""
        for connection in self.connections:
            yield from connection.channels.values()

    # Dead letters

    def dead_letter(
        self, queue: Queue, message: Message, reason: str, kept: KeptDeadLetter | None = None, is_refused: bool = False
    ) -> None:
        """Dead-letter a message, and then those that it displaces from its targets, without recursion."""
        self.dead_lettering.add(queue, message, reason, kept, is_refused)

    @property
    def is_routing_dead_letters(self) -> bool:
        """True while a dead letter goes to its targets, which may give up messages, too."""
        return self.dead_lettering.is_routing

    def dead_letters_held(self, *, serves_freed: bool = True) -> AbstractContextManager[None]:
        """Hold dead letters until the end of the block, and until freed consumers have been served.

        In RabbitMQ they reach a queue when it has done all that a publish or a settlement brings about.
        """
        return self.dead_lettering.held(serves_freed=serves_freed)

    # Backlogs

    def free_later(self, messages: deque[Any]) -> None:
        """Free messages that no queue has any more in portions, between which the sockets are served."""

        def free_next_portion() -> None:
            for _ in range(min(FREED_MAX, len(messages))):
                messages.popleft()
            if messages:
                self.undrained.append(free_next_portion)

        self.undrained.append(free_next_portion)

    def do_in_portions(self, steps: Steps[None], on_done: Callable[[], object] | None = None) -> bool:
        """Do short steps in portions, the first one now, between which the sockets are served.

        Return whether the first portion was the last; `on_done` is called after a later one.
        """
        for _ in range(PORTION_STEPS):
            try:
                next(steps)
            except StopIteration:
                return True
            if self.work >= WORK_MAX:
                break

        def do_next_portion() -> None:
            if self.do_in_portions(steps, on_done) and on_done is not None:
                on_done()

        self.undrained.append(do_next_portion)
        return False

    def resume_freed_consumers(self) -> None:
        """Deliver once for all that was settled."""
        consumers = self.freed_consumers.copy()
        self.freed_consumers.clear()
        for consumer in consumers:
            if consumer.limit is not None:
                consumer.limit.resume()
            elif not consumer.is_taking and (consumer.can_take() or consumer.queue.is_quiescing):
                consumer.queue.resume(consumer)

    def drain_on(self) -> bool:
        """Do the next portion of each backlog, as far as this turn has time; return whether any is left."""
        undrained, self.undrained, self.work = iter(self.undrained), [], 0
        try:
            for drain_next_portion in undrained:
                drain_next_portion()
                if self.work >= WORK_MAX:
                    break
        finally:
            # The others come first in the next turn, also after an error.
            self.undrained[:0] = undrained
        return bool(self.undrained)
