"""A broker inside of this process, for tests: ready in milliseconds, on free ports, gone without a trace."""

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

from amqp_broker.broker.access import Permission
from amqp_broker.broker.queue import Queue
from amqp_broker.broker.resetting import reset, reset_vhost
from amqp_broker.config import Config
from amqp_broker.server.server import Server
from amqp_broker.testing.controls import EmbeddedAdvice, EmbeddedClock, EmbeddedFaults
from amqp_broker.testing.hosting import Host, put
from amqp_broker.testing.vhosts import EmbeddedVHost, HeldMessage, QueueState, lent_vhost

T = TypeVar("T")

# Without a handler of its own, the standard library would print errors to the standard error output.
logging.getLogger("amqp_broker").addHandler(logging.NullHandler())

DEFAULTS: Final[dict[str, Any]] = {
    "host": "127.0.0.1",
    "port": 0,
    "control": False,
    "prometheus": False,
    # The memory of this process is the test's, which must not block its own publishers.
    "vm_memory_high_watermark": "1.0",
}


class EmbeddedBroker:
    """A broker in a thread of its own, from entering its block, or `start`, to leaving it, or `stop`.

    `settings` are those of docs/settings.md. Unless they say otherwise it listens on a free port of 127.0.0.1, has
    nothing else open, and keeps all in memory; with a `data_dir` it keeps durable things there. The HTTP API is served
    as soon as somebody asks for `management_url`, unless `management` is False. Tests of any kind may use it, those of
    asyncio, too: nothing of it runs in their loop. A program that ends, or forgets it, stops it.

    Raises ConfigError and TypeError for settings that cannot be; `start` raises CannotListen, StoreError and
    DefinitionsError.
    """

    def __init__(
        self, *, new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop, **settings: Any
    ) -> None:
        is_kept = bool(settings.get("data_dir"))
        config = Config(**{**DEFAULTS, "ephemeral": not is_kept, **settings})
        config.check()
        self.has_management = config.management
        self.config = replace(config, management=False)
        self._host = Host(new_loop)
        self._is_in_loop = False
        self.clock = EmbeddedClock(self)
        self.faults = EmbeddedFaults(self)
        self.advice = EmbeddedAdvice(self)
        # Vhosts of tests that are under way, by name.
        self.lent: dict[str, EmbeddedVHost] = {}
        # Holds the host and not this object, which may be forgotten.
        self._finalizer = weakref.finalize(self, self._host.stop)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> Self:
        """Return when clients are served."""
        self._host.start(self.config)
        return self

    def stop(self) -> None:
        """Close connections (320) and everything else; it may be stopped already."""
        self._host.stop()

    def restart(self, kill: bool = False) -> None:
        """Stop and start on the same ports, gracefully or as `kill -9` would have it; clients lose their connections.

        What is durable is there again if there is a `data_dir`. Else nothing is, but for the vhosts of `vhost`, which
        are empty then.
        """
        ports = self._host.server.ports
        self.config = replace(self.config, port=ports["amqp"])
        if "management" in ports:
            self.config = replace(self.config, management=True, management_port=ports["management"])
        self._host.stop(kill)
        self._host.start(self.config)
        for vhost in self.lent.values():
            vhost.begin()

    @asynccontextmanager
    async def run_in_loop(self) -> AsyncIterator[Self]:
        """Serve in the loop that is running now instead of a thread; it must not be blocked then.

        Where the HTTP API is wanted, the setting `management=True` must have been given; `restart` is not for this.
        """
        server = Server(replace(self.config, management=self.has_management))
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

    # Where it is

    @property
    def server(self) -> Server:
        """The server that runs, which only `ask` may look at safely."""
        return self._host.server

    @property
    def version(self) -> str:
        """Which RabbitMQ it is like."""
        return self.config.profile.version

    @property
    def port(self) -> int:
        """The port of AMQP."""
        return self.server.ports["amqp"]

    @property
    def url(self) -> str:
        """amqp://user:password@host:port/vhost of the default user and vhost."""
        return self.amqp_url(self.config.resolved().default_vhost)

    def amqp_url(self, vhost: str) -> str:
        """The same with another vhost."""
        return f"amqp://{self._login}@{self._address}:{self.port}/{quote(vhost, safe='')}"

    @property
    def management_url(self) -> str:
        """http://user:password@host:port of the HTTP API and the web page. Raises RuntimeError if it is off."""
        if "management" not in self.server.ports:
            self._serve_management()
        return f"http://{self._login}@{self._address}:{self.server.ports['management']}"

    def _serve_management(self) -> None:
        if not self.has_management or self._is_in_loop:
            raise RuntimeError("the HTTP API is not served: the setting management says so")
        # It takes a while, in which clients are to be served; the import is done here.
        import amqp_broker.management.app  # noqa: F401

        async def serve(server: Server) -> None:
            if "management" not in server.ports:
                given = self.config.management_port
                server.config = replace(server.config, management=True, management_port=given or 0)
                server.node.rates.start()
                await server.http.open()

        self._host.run(serve(self.server))

    @property
    def _login(self) -> str:
        config = self.config.resolved()
        return f"{quote(config.default_user, safe='')}:{quote(config.default_pass, safe='')}"

    @property
    def _address(self) -> str:
        host = self.config.host
        if host in ("::", "0.0.0.0"):
            host = "127.0.0.1"
        return f"[{host}]" if ":" in host else host

    # What is in it

    def ask(self, question: Callable[[Server], T]) -> T:
        """What the question returns when it is put to the server between two reads of its sockets.

        `server.broker` has vhosts, queues and users. What the question changes there, clients hear of.
        Raises what the question raises, and RuntimeError if the broker is not running.
        """
        return put(self.server, question) if self._is_in_loop else self._host.ask(question)

    def run(self, work: Callable[[Server], Coroutine[Any, Any, T]]) -> T:
        """What `work(server)` returns, which runs in the server's loop for as long as it takes.

        Raises what it raises, and RuntimeError if the broker is not running, or in the loop of whoever asks.
        """
        if self._is_in_loop:
            raise RuntimeError("the broker serves in the loop that waits")
        return self._host.run(work(self.server), None)

    def queues(self, vhost: str = "/") -> dict[str, QueueState]:
        """The queues of a vhost by name, as they are now. Raises DoesNotExist."""

        def look(server: Server) -> dict[str, QueueState]:
            return {
                name: QueueState(name, queue.type, queue.ready_count, queue.unacked_count, len(queue.consumers))
                for name, queue in server.broker.vhost(vhost).queues.items()
            }

        return self.ask(look)

    def messages(self, queue: str, vhost: str = "/") -> list[HeldMessage]:
        """What is ready in a queue, in the order of its delivery; nothing of that changes.

        Raises DoesNotExist for the vhost, and NotFound for the queue.
        """

        def look(server: Server) -> list[HeldMessage]:
            found = queue_of(server, vhost, queue)
            if found.deadlines:
                found.expire()
            return [
                HeldMessage(
                    message.body, message.exchange, message.routing_key, message.properties().as_dict(), redelivered
                )
                for message, redelivered in found.peek()
            ]

        return self.ask(look)

    def depth(self, queue: str, vhost: str = "/") -> int:
        """How many messages are ready in a queue. Raises DoesNotExist and NotFound."""
        return self.ask(lambda server: queue_of(server, vhost, queue).ready_count)

    # Vhosts

    def vhost(self, name: str | None = None, *, warns: bool = True) -> AbstractContextManager[EmbeddedVHost]:
        """A fresh vhost that is deleted with all that is in it at the end of the block. Without a name it gets one.

        What is still open then is in `leaks` of it, and warned of (LeakWarning) unless `warns` is False.
        """
        return lent_vhost(self, name or f"test-{os.urandom(6).hex()}", warns)

    def reset(self, vhost: str | None = None) -> None:
        """Close connections and delete what is in a vhost, or in the whole broker, as if it was new.

        Raises DoesNotExist for the vhost. The vhosts of `vhost` are there again, empty.
        """
        if vhost is not None:
            self.ask(lambda server: reset_vhost(server.broker.vhost(vhost)))
            return
        self.ask(lambda server: reset(server.broker))
        for lent in self.lent.values():
            lent.begin()

    def snapshot(self, vhost: str = "/") -> dict[str, Any]:
        """What is declared in a vhost, and its messages, as JSON can tell it. Raises DoesNotExist."""
        from amqp_broker.management.snapshots import taken

        return self.ask(lambda server: taken(server.broker, vhost))

    def restore(self, snapshot: dict[str, Any], vhost: str = "/", *, clear: bool = False) -> None:
        """Have in a vhost, which is made if there is none, what a snapshot tells; times to live go on from then.

        Raises SnapshotError for what is no snapshot, and for a vhost that is not empty unless it is to be cleared,
        which closes the connections to it. Nothing is changed then.
        """
        from amqp_broker.management.snapshots import restore

        def put_back(server: Server) -> None:
            core = server.broker
            if restore(core, snapshot, vhost, clear=clear):
                core.set_permission(core.user(core.config.default_user), vhost, Permission())

        self.ask(put_back)


def queue_of(server: Server, vhost: str, name: str) -> Queue:
    """A queue, whoever has it exclusively. Raises DoesNotExist for the vhost, and NotFound."""
    there = server.broker.vhost(vhost)
    return there.queues[name] if name in there.queues else there.queue(name)
