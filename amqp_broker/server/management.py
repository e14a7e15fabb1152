"""The HTTP listeners of a server: the HTTP API with its page, metrics, and the control socket."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import ssl
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from amqp_broker.control import control_folder
from amqp_broker.management.node.node import Alarm, Listener, Node, ShovelStatus
from amqp_broker.management.node.rates import Rates
from amqp_broker.server import administration_log, disk_space, log_output, memory, tls
from amqp_broker.server.http_listener import HttpListener
from amqp_broker.server.listening import listen_nearby
from amqp_broker.settings import readers
from amqp_broker.settings.settings import Settings

if TYPE_CHECKING:
    from amqp_broker.management.application import Management
    from amqp_broker.server.server import Server

logger = logging.getLogger("amqp_broker.server")

MANAGEMENT_PORT: Final = 15672
MANAGEMENT_TLS_PORT: Final = 15671
PROMETHEUS_PORT: Final = 15692
# The clock of portions. That of uvloop counts whole milliseconds, as many as a portion takes.
CLOCK: Final = time.monotonic
UNKNOWN_DESCRIPTORS: Final = (0, 0)
NO_CONTROL: Final = (
    "the command line cannot command this broker: cannot create a socket in '%s' (%s); "
    "set AMQP_BROKER_RUNTIME_DIR to another folder"
)


class ServerNode(Node):
    """The node of a server, for the HTTP API."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.started_at_ms = server.clock.real_now()
        self.memory_at_start = server.memory_at_start
        self.rates = Rates(server.broker)
        self._memory_setting = server.broker.settings.vm_memory_high_watermark
        self._listeners: list[Listener] = []

    def now(self) -> int:
        return self.server.clock.now()

    def real_now(self) -> int:
        return self.server.clock.real_now()

    def host_name(self) -> str:
        return socket.gethostname()

    def clock_offset(self) -> int:
        return self.server.clock.offset()

    def is_frozen(self) -> bool:
        return self.server.clock.is_frozen

    def clock_moved_at_ms(self) -> int | None:
        return self.server.ticking.moved_at_ms

    def alarms(self) -> list[Alarm]:
        return self.server.alarms.all()

    def freeze(self) -> None:
        self.server.ticking.freeze()

    def resume(self) -> None:
        self.server.ticking.resume()

    def advance(self, duration_ms: int) -> None:
        self.server.ticking.advance(duration_ms)

    def listeners(self) -> list[Listener]:
        return self._listeners

    def listen(self, protocol: str, host: str, port: int) -> None:
        """Add a listener to the list of open ones."""
        self._listeners.append(Listener(protocol, host, port))

    def memory_used(self) -> int:
        return memory.used_bytes()

    def memory_limit(self) -> int:
        return self.server.alarms.limits.memory_max or 0

    def memory_setting(self) -> str:
        return self._memory_setting

    def disk_free(self) -> int:
        store = self.server.store
        return disk_space.free_bytes(Path.cwd() if store is None else store.environment.folder)

    def disk_free_limit(self) -> int:
        return self.server.alarms.limits.disk_free_min or 0

    def descriptors(self) -> tuple[int, int]:
        if sys.platform == "win32":
            return UNKNOWN_DESCRIPTORS
        import resource

        try:
            used = sum(1 for _ in Path("/proc/self/fd").iterdir())
        except OSError:
            return UNKNOWN_DESCRIPTORS
        return used, resource.getrlimit(resource.RLIMIT_NOFILE)[0]

    def process_id(self) -> int:
        return os.getpid()

    def processors(self) -> int:
        return os.cpu_count() or 1

    def shovels(self) -> list[ShovelStatus]:
        return [
            ShovelStatus(shovel.name, shovel.own_vhost, shovel.state, shovel.details())
            for shovel in self.server.shovels
        ]

    def restart_shovel(self, vhost: str, name: str) -> bool:
        return self.server.shovels.restart(vhost, name)

    def forget_listeners(self) -> None:
        """Empty the list: no listener is open."""
        self._listeners.clear()

    def data_folder(self) -> str:
        store = self.server.store
        return "" if store is None else str(store.environment.folder)

    def config_files(self) -> Sequence[str]:
        return self.server.config_files

    def flush(self) -> None:
        self.server.flush()

    def set_memory_limit(self, text: str) -> None:
        Settings(vm_memory_high_watermark=text).check()
        self._memory_setting = text
        self.server.alarms.limits.memory_max = readers.octets(text, memory.total_bytes())
        self.server.check_alarms()

    def set_disk_free_limit(self, text: str) -> None:
        Settings(disk_free_limit=text).check()
        self.server.alarms.limits.disk_free_min = readers.octets(text, memory.total_bytes())
        self.server.check_alarms()

    def set_alarm(self, resource: str, is_on: bool) -> None:
        self.server.alarms.command(resource, is_on)
        self.server.flush()

    def watch_disk(self, is_on: bool) -> None:
        self.server.alarms.watch_disk(is_on)
        self.server.check_alarms()

    def set_log_level(self, level: str) -> None:
        Settings(log_level=level).check()
        log_output.set_level(readers.level(level))

    def stop(self) -> None:
        logger.info("%s", administration_log.ASKED_TO_STOP)
        self.server.request_stop()

    def stop_app(self) -> None:
        self.server.pauses.begin("stopped")

    def start_app(self) -> None:
        self.server.pauses.begin("running")

    def suspend_listeners(self) -> None:
        self.server.pauses.begin("suspended")

    def resume_listeners(self) -> None:
        self.server.pauses.begin("running")


class Listeners:
    """Opens and closes the HTTP listeners of a server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        # Context in which aiohttp is imported; `amqp-broker serve` replaces it.
        self.importing: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
        # Listeners for clients; `_control` is that of the command line.
        self._listeners: list[HttpListener] = []
        self._control: HttpListener | None = None
        self._socket_path: Path | None = None

    @cached_property
    def management(self) -> Management:
        """The application of the HTTP API, which all its listeners share."""
        from amqp_broker.management.application import Management

        return Management(self.server.broker, self.server.node, clock=CLOCK)

    def _metrics(self) -> Management:
        from amqp_broker.management.application import Management
        from amqp_broker.management.metrics import exposition

        settings = self.server.settings
        endpoints = exposition.endpoints(settings.prometheus_per_object, settings.prometheus_path)
        return Management(self.server.broker, self.server.node, endpoints, clock=CLOCK)

    def _local(self) -> Management:
        from amqp_broker.management.application import Management

        return Management(self.server.broker, self.server.node, is_local=True, clock=CLOCK)

    def start(self) -> None:
        """Open all listeners. Raise CannotListen, TlsError or SettingsError."""
        settings = self.server.settings
        if not settings.management and not settings.prometheus and not settings.control:
            return
        self.server.node.rates.start()
        self.open()
        if settings.control and sys.platform != "win32":
            from amqp_broker.server.control_listener import listen_for_commands

            ports = self.server.ports
            try:
                port = ports.get("amqp") or ports["amqps"]
                listener, self._socket_path = listen_for_commands(port, self.server.clock.real_now() / 1000)
            except OSError as error:
                # Clients do not need the control socket, so the broker starts without it.
                logger.warning(NO_CONTROL, control_folder(os.environ), error.strerror or error)
                return
            self._control = HttpListener([listener], self._local, importing=self.importing)

    def open(self) -> None:
        """Open the listeners for clients, on their previous ports after a pause. Raise CannotListen or TlsError."""
        settings = self.server.settings
        if settings.management:
            host, make = settings.management_host or settings.host, lambda: self.management
            if settings.management_tcp:
                self._open("management", "http", make, host, MANAGEMENT_PORT, settings.management_port)
            secure = tls.management_context(settings, self.server.secure)
            if secure is not None:
                ports = (MANAGEMENT_TLS_PORT, settings.management_tls_port)
                self._open("management-tls", "https", make, host, *ports, secure)
        if settings.prometheus:
            host = settings.prometheus_host or settings.host
            ports = (PROMETHEUS_PORT, settings.prometheus_port)
            self._open("prometheus", "http/prometheus", self._metrics, host, *ports)

    def _open(
        self,
        name: str,
        protocol: str,
        make: Callable[[], Management],
        host: str,
        default_port: int,
        given_port: int | None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """Open a listener; `name` is its key in the ports file, `protocol` its name in RabbitMQ."""
        server = self.server
        wanted = server.ports.get(name) or server.settings.port_of(default_port, given_port)
        sockets = listen_nearby(host, wanted, server.settings.nearby(default_port, given_port), name)
        self._listeners.append(HttpListener(sockets, make, context, self.importing))
        address, port = sockets[0].getsockname()[:2]
        server.ports[name] = port
        server.node.listen(protocol, address, port)
        plugin = "Prometheus metrics" if name == "prometheus" else "Management plugin"
        kind = "HTTP (non-TLS)" if context is None else "HTTPS"
        logger.info("%s: %s listener started on port %d", plugin, kind, port)

    async def stop(self) -> None:
        if self._socket_path is not None:
            with contextlib.suppress(OSError):
                self._socket_path.unlink(missing_ok=True)
        self.server.node.rates.stop()
        await self.close()
        if self._control is not None:
            await self._control.close()

    async def close(self) -> None:
        """Close the listeners for clients."""
        while self._listeners:
            await self._listeners.pop().close()
