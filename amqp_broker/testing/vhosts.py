"""A vhost for one test: made when it begins, looked into at any time, deleted when it ends; and what is open then."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amqp_broker.broker.access import Permission
from amqp_broker.fields import printable
from amqp_broker.server.messages import Messages
from amqp_broker.testing.controls import EmbeddedAdvice, EmbeddedFaults
from amqp_broker.testing.history import History, what_happened

if TYPE_CHECKING:
    from amqp_broker.broker.advice import Advice
    from amqp_broker.broker.connection import Connection
    from amqp_broker.broker.vhost import VHost
    from amqp_broker.server.server import Server
    from amqp_broker.testing.embedded import EmbeddedBroker
    from amqp_broker.testing.recordings import EmbeddedRecording, Replayed

# How long a client that has closed its socket may take to be gone.
GRACE_S: Final = 0.1
STEP_S: Final = 0.002


class LeakWarning(UserWarning):
    """A test left something open."""


class QueueState(NamedTuple):
    """A queue as it is now: `ready` messages wait, `unacked` ones are delivered and not settled."""

    name: str
    type: str
    ready: int
    unacked: int
    consumers: int


class HeldMessage(NamedTuple):
    """A message that is ready in a queue; `properties` has those that are present, by AMQP's names."""

    body: bytes
    exchange: str
    routing_key: str
    properties: dict[str, Any]
    redelivered: bool


class EmbeddedVHost:
    """A vhost of an embedded broker, and what is known of it. As text it is its name.

    `leaks` has a sentence for each thing that was open when it was deleted, and for each queue or connection that came
    to another vhost meanwhile, where nothing deletes it.
    """

    def __init__(self, broker: EmbeddedBroker, name: str) -> None:
        self.broker = broker
        self.name = name
        self.faults = EmbeddedFaults(broker, name)
        self.advice = EmbeddedAdvice(broker, name)
        # What was said of it, when it ended.
        self.advised: list[Advice] = []
        self.history = History()
        self.leaks: list[str] = []
        # What there was elsewhere when it began.
        self._known: set[object] = set()

    def __str__(self) -> str:
        return self.name

    @property
    def url(self) -> str:
        """amqp://user:password@host:port/vhost"""
        return self.broker.amqp_url(self.name)

    def queues(self) -> dict[str, QueueState]:
        """The queues by name."""
        return self.broker.queues(self.name)

    def messages(self, queue: str) -> list[HeldMessage]:
        """What is ready in a queue, in the order of its delivery; nothing of that changes. Raises NotFound."""
        return self.broker.messages(queue, self.name)

    def depth(self, queue: str) -> int:
        """How many messages are ready in a queue. Raises NotFound."""
        return self.broker.depth(queue, self.name)

    def record(self) -> Messages:
        """What happens to its messages, recorded from now on if it was not yet: to look at, and to wait for."""
        return Messages(self.broker.server, self.name)

    def recording(
        self, *, exchange: str | None = None, routing_key: str | None = None
    ) -> AbstractContextManager[EmbeddedRecording]:
        """Record what is published inside of the block: all of it, or what matches (docs/replay.md)."""
        from amqp_broker.testing.recordings import recording

        return recording(self.broker, self.name, exchange, routing_key)

    def replay(self, recording: EmbeddedRecording | str | PathLike[str], *, speed: float = 1.0) -> Replayed:
        """Publish again what was recorded, here or in a file; returns when all of it is confirmed, or refused.

        The time between messages is as it was, divided by `speed`; math.inf takes none. While the broker's clock is
        frozen nobody waits: the replay advances it. Raises RecordingError for a file that is none, ValueError for a
        speed that is none, ReplayLost if the broker refuses an exchange or ends, and OSError.
        """
        from amqp_broker.testing.recordings import replay

        return replay(self.broker, recording, self.name, speed)

    def reset(self) -> None:
        """Close all connections to it, and delete what is in it."""
        self.broker.reset(self.name)

    def what_happened(self) -> str:
        """What was published, routed, delivered and settled, a line for each event."""
        if not self.broker.is_running:
            return what_happened(self.history)
        return self.broker.ask(lambda server: what_happened(self.history))

    def import_definitions(self, document: Any) -> None:
        """Declare what a document says, which may be RabbitMQ's. Raises DefinitionsError."""
        from amqp_broker.management.definitions import import_

        self.broker.ask(lambda server: import_(server.broker, document, self.name))

    # Its life

    def begin(self) -> None:
        """Make it, if it is not there."""
        self.broker.ask(self._begin)

    def _begin(self, server: Server) -> None:
        core = server.broker
        is_new = self.name not in core.vhosts
        vhost = core.add_vhost(self.name)
        if is_new:
            core.set_permission(core.user(core.config.default_user), self.name, Permission())
        vhost.tap(self.history.tell)
        self._known = set(self._elsewhere(server))

    def end(self) -> None:
        """Note what is open, and delete it."""
        deadline = time.monotonic() + GRACE_S
        while (leaks := self.broker.ask(self._open)) and time.monotonic() < deadline:
            time.sleep(STEP_S)
        self.leaks = leaks
        self.broker.ask(self._delete)

    def _delete(self, server: Server) -> None:
        self.advised = self.advice.given(server)
        vhost = server.broker.vhosts.get(self.name)
        if vhost is not None:
            vhost.set_metadata(vhost.metadata.__class__())  # one that is protected could not be deleted
            server.broker.delete_vhost(self.name)

    def _open(self, server: Server) -> list[str]:
        vhost = server.broker.vhosts.get(self.name)
        here = [] if vhost is None else [_told(vhost, connection) for connection in vhost.connections]
        elsewhere = [text for thing, text in self._elsewhere(server).items() if thing not in self._known]
        return here + elsewhere

    def _elsewhere(self, server: Server) -> dict[object, str]:
        """Connections and queues in vhosts that are no test's."""
        found: dict[object, str] = {}
        for vhost in server.broker.vhosts.values():
            if vhost.name not in self.broker.lent:
                found.update((queue, f"{queue} is left behind") for queue in vhost.queues.values() if not queue.owner)
                found.update((one, f"{_told(vhost, one)} (vhost '{vhost.name}')") for one in vhost.connections)
        return found


def _told(vhost: VHost, connection: Connection) -> str:
    """What is known of a connection that is open: its name, and what hangs on it."""
    properties = connection.client_properties
    given = properties.get("connection_name")
    name = f"'{printable(given)}' ({connection.name})" if isinstance(given, str) and given else connection.name
    product = properties.get("product")
    client = f" of {printable(product)}" if isinstance(product, str) else ""
    parts = [f"{len(connection.channels)} channels"] if connection.channels else []
    consumed = sorted(
        f"consumer '{consumer.tag}' of {queue.name!r}"
        for queue in vhost.queues.values()
        for consumer in queue.consumers
        if consumer.connection is connection
    )
    unacked = sum(len(channel.unacked) for channel in connection.channels.values())
    parts += consumed + ([f"{unacked} unacknowledged messages"] if unacked else [])
    return f"connection {name}{client} is open" + (f", with {', '.join(parts)}" if parts else "")


@contextlib.contextmanager
def lent_vhost(broker: EmbeddedBroker, name: str, warns: bool) -> Iterator[EmbeddedVHost]:
    """A vhost that is there inside of the block. Leaks are warned of, unless somebody else tells them."""
    vhost = EmbeddedVHost(broker, name)
    broker.lent[name] = vhost
    vhost.begin()
    try:
        yield vhost
    finally:
        if broker.is_running:
            vhost.end()
        del broker.lent[name]
        if warns:
            for leak in vhost.leaks:
                # Whose block it is: contextlib is between.
                warnings.warn(leak, LeakWarning, stacklevel=3)
