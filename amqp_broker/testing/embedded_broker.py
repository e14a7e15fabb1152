"""A broker in the test process, on free ports, ready in milliseconds."""

from __future__ import annotations

import asyncio
import logging
import os
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

from amqp_broker.broker.admin.access import Permission
from amqp_broker.broker.admin.similar_names import did_you_mean
from amqp_broker.broker.operations.resetting import reset, reset_vhost
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.server.server import Server
from amqp_broker.settings.settings import SETTINGS, Settings, SettingsError
from amqp_broker.testing.embedded_vhost import EmbeddedVHost, HeldMessage, QueueState, lent_vhost
from amqp_broker.testing.event_log import queue_in
from amqp_broker.testing.lab_controls import EmbeddedAdvice, EmbeddedClock, EmbeddedFaults
from amqp_broker.testing.server_thread import ServerThread, call

T = TypeVar("T")

# Without a handler, the standard library would print errors to standard error.
logging.getLogger("amqp_broker").addHandler(logging.NullHandler())

DEFAULTS: Final[dict[str, Any]] = {
    "host": "127.0.0.1",
    "port": 0,
    "control": False,
    "prometheus": False,
    # The memory of this process belongs to the test: it must not block publishers.
    "vm_memory_high_watermark": "1.0",
}
DECLARED: Final = {declared.name: declared for declared in SETTINGS}


class EmbeddedBroker:
    """A broker in a thread of its own; a context manager that calls `start` and `stop`.

    `settings` are those of docs/settings.md. By default the broker listens on a free port of 127.0.0.1 and keeps
    everything in memory; with a `data_dir` it is durable. Unless `management` is False, the HTTP API is served from the
    first use of `management_url` on. The broker has its own event loop, so asyncio tests can use it as well. It stops
    when the program ends or the object is deleted.

    Raise SettingsError for invalid settings; `start` raises CannotListen, StoreError and
    DefinitionsError.
    """

    def __init__(
        self, *, new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop, **settings: Any
    ) -> None:
        for name in settings:
            if name not in DECLARED:
                raise SettingsError(f"there is no setting '{name}'; {_closest(name)}".rstrip("; "))
        is_kept = bool(settings.get("data_dir"))
        read = {name: _read(name, value) for name, value in settings.items()}
        chosen = Settings(**{**DEFAULTS, "ephemeral": not is_kept, **read})
        self.has_management = chosen.management
        self.settings = replace(chosen, management=False)
        self._host = ServerThread(new_loop)
        self._is_in_loop = False
        self.clock = EmbeddedClock(self)
        self.faults = EmbeddedFaults(self)
        self.advice = EmbeddedAdvice(self)
        # The vhosts of running tests, by name.
        self.lent: dict[str, EmbeddedVHost] = {}
        # Refers to the thread and not to this object, so that the object can be deleted.
        self._finalizer = weakref.finalize(self, self._host.stop)

    def __repr__(self) -> str:
        """Return the address of the broker and the version of RabbitMQ that it behaves like."""
        state = f"at {self._address}:{self.port}" if self.is_running else "not running"
        return f"<EmbeddedBroker like RabbitMQ {self.version}, {state}>"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> Self:
        """Start the broker, and return when it serves clients. A running broker is left alone."""
        if not self.is_running:
            self._host.start(self.settings)
        return self

    def stop(self) -> None:
        """Stop the broker: close connections with 320. A stopped broker is left alone."""
        self._host.stop()

    def restart(self, kill: bool = False) -> None:
        """Stop the broker, gracefully or as `kill -9` would, and start it on the same ports.

        With a `data_dir`, durable objects and messages are restored. Without one, only the vhosts of running tests
        are, and these are empty. Raise RuntimeError if the broker was never started, or runs in the loop of the caller.
        """
        if self._is_in_loop:
            raise RuntimeError("the broker runs in the event loop of the caller, and cannot be restarted")
        ports = self.server.ports
        self.settings = replace(self.settings, port=ports["amqp"])
        if "management" in ports:
            self.settings = replace(self.settings, management=True, management_port=ports["management"])
        self._host.stop(kill)
        self._host.start(self.settings)
        for vhost in self.lent.values():
            vhost.begin()

    @asynccontextmanager
    async def run_in_loop(self) -> AsyncIterator[Self]:
        """Serve in the current event loop instead of a thread; the caller must not block the loop.

        The HTTP API is served from the start, unless `management` is False. `restart` does not work in this mode.
        """
        server = Server(replace(self.settings, management=self.has_management))
        await server.start()
        self._host.server = server
        self._is_in_loop = True
        try:
            yield self
        finally:
            self._is_in_loop = False
            await server.stop()

    @property
    def is_running(self) -> bool:
        return self._is_in_loop or self._host.is_running

    # Addresses

    @property
    def server(self) -> Server:
        """The running server, or the last one; only `ask` accesses it safely. Raise RuntimeError before the start."""
        if not hasattr(self._host, "server"):
            raise RuntimeError("the broker is not running")
        return self._host.server

    @property
    def version(self) -> str:
        """The version of RabbitMQ that the broker behaves like."""
        return self.settings.profile.version

    @property
    def port(self) -> int:
        """The AMQP port."""
        return self.server.ports["amqp"]

    @property
    def url(self) -> str:
        """amqp://user:password@host:port/vhost of the default user and vhost."""
        return self.amqp_url(self.settings.resolved().default_vhost)

    def amqp_url(self, vhost: str) -> str:
        """Return the AMQP URL of a vhost."""
        return f"amqp://{self._login}@{self._address}:{self.port}/{quote(vhost, safe='')}"

    @property
    def management_url(self) -> str:
        """http://user:password@host:port of the HTTP API and the web page. Raise RuntimeError if it is off."""
        if "management" not in self.server.ports:
            self._serve_management()
        return f"http://{self._login}@{self._address}:{self.server.ports['management']}"

    def _serve_management(self) -> None:
        if not self.has_management or self._is_in_loop:
            raise RuntimeError("the HTTP API is not served: the setting management says so")

        async def serve(server: Server) -> None:
            if "management" not in server.ports:
                given = self.settings.management_port
                server.settings = replace(server.settings, management=True, management_port=given or 0)
                server.node.rates.start()
                server.http.open()

        self._host.run(serve(self.server))

    @property
    def _login(self) -> str:
        settings = self.settings.resolved()
        return f"{quote(settings.default_user, safe='')}:{quote(settings.default_pass, safe='')}"

    @property
    def _address(self) -> str:
        host = self.settings.host
        if host in ("::", "0.0.0.0"):
            host = "127.0.0.1"
        return f"[{host}]" if ":" in host else host

    # Contents

    def ask(self, question: Callable[[Server], T]) -> T:
        """Call `question(server)` in the thread of the broker, between two reads of its sockets; return its result.

        `server.broker` has the vhosts, queues and users. Clients receive whatever results from changes to them.
        Raise the errors of the question, and RuntimeError if the broker is not running.
        """
        return call(self.server, question) if self._is_in_loop else self._host.ask(question)

    def run(self, work: Callable[[Server], Coroutine[Any, Any, T]]) -> T:
        """Run `work(server)` in the event loop of the broker, without a time limit, and return its result.

        Raise its errors, and RuntimeError if the broker is not running or runs in the loop of the caller.
        """
        if self._is_in_loop:
            raise RuntimeError("the broker runs in the event loop of the caller")
        return self._host.run(work(self.server), None)

    def queues(self, vhost: str = "/") -> dict[str, QueueState]:
        """Return the queues of a vhost by name. Raise DoesNotExist."""

        def look(server: Server) -> dict[str, QueueState]:
            return {
                name: QueueState(name, queue.type, queue.ready_count, queue.unacked_count, len(queue.consumers))
                for name, queue in server.broker.vhost(vhost).queues.items()
            }

        return self.ask(look)

    def messages(self, queue: str, vhost: str = "/") -> list[HeldMessage]:
        """Return the ready messages of a queue in delivery order, without consuming them.

        Raise DoesNotExist for a missing vhost and NotFound for a missing queue.
        """

        def look(server: Server) -> list[HeldMessage]:
            found = queue_of(server, vhost, queue)
            found.expire()
            while found.holds:
                server.broker.drain_on()
            return [
                HeldMessage(
                    message.body, message.exchange, message.routing_key, message.properties().as_dict(), redelivered
                )
                for _, message, redelivered in found.peek()
            ]

        return self.ask(look)

    def depth(self, queue: str, vhost: str = "/") -> int:
        """Return the number of ready messages of a queue. Raise DoesNotExist and NotFound."""
        return self.ask(lambda server: queue_of(server, vhost, queue).ready_count)

    # Vhosts

    def vhost(self, name: str | None = None, *, warns: bool = True) -> AbstractContextManager[EmbeddedVHost]:
        """Create a vhost for the duration of the block; without a name it gets a random one.

        Connections that are still open at the end are in its `leaks`, and sentences about fault rules that hit nothing
        in its `unused_faults`; with `warns`, each issues a LeakWarning or UnusedFaultWarning. An error that leaves the
        block gets the last events of the vhost as a note then. Raise ValueError for a vhost that exists.
        """
        return lent_vhost(self, name or f"test-{os.urandom(6).hex()}", warns)

    def reset(self, vhost: str | None = None) -> None:
        """Close the connections and delete the contents of a vhost, or of the whole broker.

        Vhosts of running tests are created again, empty. Raise DoesNotExist for a missing vhost.
        """
        if vhost is not None:
            self.ask(lambda server: reset_vhost(server.broker.vhost(vhost)))
            return
        self.ask(lambda server: reset(server.broker))
        for lent in self.lent.values():
            lent.begin()

    def snapshot(self, vhost: str = "/") -> dict[str, Any]:
        """Return the definitions and messages of a vhost as a JSON document. Raise DoesNotExist."""
        from amqp_broker.management.documents.snapshots import take_snapshot

        return self.ask(lambda server: take_snapshot(server.broker, vhost))

    def restore(self, snapshot: dict[str, Any], vhost: str = "/", *, clear: bool = False) -> None:
        """Restore a snapshot to a vhost, which is created if it does not exist. TTLs continue from now.

        With `clear`, the vhost is emptied first and its connections are closed. Raise SnapshotError for an invalid
        snapshot and for a vhost that is not empty; then nothing is changed.
        """
        from amqp_broker.management.documents.snapshots import restore

        def put_back(server: Server) -> None:
            core = server.broker
            if restore(core, snapshot, vhost, clear=clear):
                core.users.set_permission(core.users.named(core.settings.default_user), vhost, Permission())

        self.ask(put_back)


def _closest(name: str) -> str:
    """Return a question about the setting with this key of rabbitmq.conf, or with a similar name."""
    for setting in SETTINGS:
        if name in (key.removesuffix(".*").replace(".", "_") for key in setting.keys):
            return f"did you mean '{setting.name}'?"
    return did_you_mean(name, DECLARED)


def _read(name: str, value: Any) -> Any:
    """Return the value of a setting, which may be given as its text or as a path. Raise SettingsError."""
    if value is None or value == DECLARED[name].default:
        return value
    if not isinstance(value, str | int | float | os.PathLike):
        raise SettingsError(f"{name} is {value!r}, which is not a text")
    return DECLARED[name].read(name, str(value))


def queue_of(server: Server, vhost: str, name: str) -> Queue:
    """Return a queue, exclusive ones included. Raise DoesNotExist for a missing vhost, and NotFound."""
    return queue_in(server.broker.vhost(vhost), name)
