"""A running broker: its listeners, its store, and the shells around it, from start to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from amqp_broker.broker import logins
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.scheduling.timers import Timers
from amqp_broker.exit_codes import EX_DATAERR, EX_IOERR
from amqp_broker.server import administration_log, advice_log, disk_space, first_objects, handshakes, memory, tls
from amqp_broker.server.alarms import STORE_FAILING, Alarms, Limits, Readings
from amqp_broker.server.auth_services import AuthServices
from amqp_broker.server.buffered_transport import BufferedTransport
from amqp_broker.server.clock import Clock
from amqp_broker.server.committing import Committing
from amqp_broker.server.flush_cycle import FlushCycle
from amqp_broker.server.listening import BACKLOG, listen_nearby, shown_address, stop_listening
from amqp_broker.server.management import Listeners, ServerNode
from amqp_broker.server.pauses import Pauses
from amqp_broker.server.ports_file import PortsFile, write_ports
from amqp_broker.settings import plugins
from amqp_broker.settings.readers import octets
from amqp_broker.settings.settings import OS, Settings, SettingsError
from amqp_broker.store.checkpoint import FlushFailed
from amqp_broker.store.environment import DATA_FILE, StoreInaccessible
from amqp_broker.store.journal import PAGE_ERRORS
from amqp_broker.store.store import Store

if TYPE_CHECKING:
    from amqp_broker.server.shovel_runner import ShovelRunner
    from amqp_broker.shovel.shovel_definition import Definition

logger = logging.getLogger("amqp_broker.server")

# Time that clients have to answer the connection.close of a shutdown.
SHUTDOWN_GRACE_S: Final = 0.2
TLS_PORT: Final = 5671

OPEN_TO_ALL: Final = (
    "anyone who reaches %s can log in as guest with the password guest, which everybody knows: "
    "set RABBITMQ_DEFAULT_USER and RABBITMQ_DEFAULT_PASS, or %s"
)
NO_DEFAULT_FOLDER: Final = (
    "the default folder of the data, '{}', cannot be used: '{}' cannot be created: {}; "
    "give another folder with --data-dir, or keep everything in memory with --ephemeral"
)
# Period of the check of alarms.
ALARMS_S: Final = 1.0


class Server:
    """Serves one broker. `ports` maps a listener to its port: {"amqp": 5672}.

    Raise StoreError, DefinitionsError, and SettingsError if there is no listener, or a static shovel or the defaults of
    new vhosts are invalid; the store is then unchanged.
    """

    def __init__(self, settings: Settings) -> None:
        if not settings.tcp and not settings.has_tls:
            raise SettingsError(
                "AMQP would be served nowhere: there is no listener for TCP, and no certificate for TLS"
            )
        self.settings = settings
        # The files that a shell has read the settings from.
        self.config_files: Sequence[str] = ()
        self._ports_file: PortsFile | None = None
        self._static_shovels: Mapping[str, Definition] = {}
        if settings.static_shovels:
            from amqp_broker.server import static_shovels

            self._static_shovels = static_shovels.configured(settings)
        self.clock = Clock()
        self.store = _store_of(settings)
        logger.info("%s", administration_log.data_folder(settings.store_path))
        self.broker = Broker(settings, os.urandom, self.store.journal if self.store else None)
        self.broker.now_us = self.clock.now_us
        self.broker.real_timers, self.broker.real_now = Timers(), self.clock.real_now
        self.broker.node = settings.node_name or f"rabbit@{socket.gethostname()}"
        self.broker.now = self.clock.now()
        self.memory_at_start = memory.used_bytes()
        is_blank = self.store is None or not self.store.recover(self.broker)
        self.broker.events.listen(administration_log.log)
        self.broker.advice.listeners = (advice_log.log,)
        try:
            first_objects.declare(self.broker, is_blank)
        except BaseException:
            if self.store is not None:
                self.store.abandon()
            raise
        self.alarms = Alarms(self.broker, *self._limits())
        self.ports: dict[str, int] = {}
        self.node = ServerNode(self)
        # Ends the process. A shell that can stop replaces it.
        self.request_stop: Callable[[], None] = lambda: None
        # The reason if the store has become unreadable; the shell then ends the process.
        self.broken: str | None = None
        self.exit_code = EX_DATAERR
        self.broker.journal.on_broken = self._on_broken
        self.cycle = FlushCycle(self.broker, self.clock)
        self.flush = self.cycle.flush
        self.ticking = self.cycle.ticking
        self.transports = self.cycle.transports
        self._auth = AuthServices(self.broker, self.flush)
        self._listeners: list[asyncio.Server] = []
        # Certificates of AMQP over TLS; None if it is not served.
        self.secure: tls.Listener | None = None
        # Ports chosen by the system, to be used again after a pause.
        self._former_ports: dict[tuple[str, str, int], int] = {}
        self.http = Listeners(self)
        self.pauses = Pauses(self)
        self.shovels: ShovelRunner
        self.loop: asyncio.AbstractEventLoop
        self._alarms_timer: asyncio.TimerHandle

    def _limits(self) -> tuple[Limits, Readings]:
        settings, store, total = self.broker.settings, self.store, memory.total_bytes()
        limits, readings = Limits(), Readings(memory.used_bytes, trim=memory.trim)
        limits.memory_max = octets(settings.vm_memory_high_watermark, total)
        if store is not None:
            limits.disk_free_min = octets(settings.disk_free_limit, total)
            readings.disk_free = lambda: disk_space.free_bytes(store.environment.folder)
            store_max = octets(settings.store_bytes_max, total)
            limits.store_max = min(store_max or store.environment.map_bytes, store.environment.map_bytes)
            readings.store_used = store.environment.used_bytes
        return limits, readings

    def _on_broken(self, reason: str) -> None:
        """Ask for the end of the process: writing to a damaged file may destroy more."""
        if self.broken is None and self.store is not None:
            folder = self.store.environment.folder
            self.broken = f"the store in '{folder}' is damaged: {reason}; run `store repair`, or restore a backup"
            logger.critical("%s", self.broken)
            self.request_stop()

    def _on_failed_flush(self, error: FlushFailed) -> None:
        """Ask for the end of the process: the system may have dropped what it could not write."""
        if self.broken is None and self.store is not None:
            file = self.store.environment.folder / DATA_FILE
            self.broken = (
                f"'{file}' cannot be flushed to the disk: {error}; the next start goes back to the last flush that "
                "succeeded: check the disk before"
            )
            self.exit_code = EX_IOERR
            logger.critical("%s", self.broken)
            self.request_stop()

    async def start(self) -> None:
        """Listen. Clients are served when this returns.

        Raise CannotListen (port taken, bad address, no permission), TlsError for unusable certificates, and OSError
        that names the ports file.
        """
        self.loop = self.cycle.loop = asyncio.get_running_loop()
        if self.store is not None:
            committing = self.cycle.committing = Committing(
                self.broker, self.store, self.clock, self.loop, self.flush, self._on_commit
            )
            self.store.start(self.loop.call_soon_threadsafe, committing.on_done)
        self._run_each_second()
        logger.info(administration_log.READY)
        try:
            await self.listen()
        except BaseException:
            await self.close_listeners()
            self._cancel_timers()
            if self.store is not None:
                self.store.close()
            raise
        # Clients are served by now. Shovels can be set only once the HTTP API is there, so this import can wait.
        from amqp_broker.server.shovel_runner import SHOVEL, ShovelRunner

        self.shovels = self.broker.components[SHOVEL] = ShovelRunner(self, self._static_shovels)
        allowed, total = self.alarms.limits.memory_max or 0, memory.total_bytes()
        logger.info(
            "Memory high watermark set to %d MiB (%d bytes) of %d MiB (%d bytes) total",
            *(allowed >> 20, allowed),
            *(total >> 20, total),
        )
        try:
            self.http.start()
        except BaseException:
            await self.stop()
            raise
        self.shovels.start()
        if self.settings.ports_file:
            try:
                self._ports_file = write_ports(Path(self.settings.ports_file), self.ports)
            except OSError:
                await self.stop()
                raise
        started = plugins.with_needed(plugins.explicit(self.settings))
        logger.info(administration_log.COMPLETED, len(started))
        logger.info("%s", administration_log.startup(started))
        # Finish the work that a former process left behind.
        self.flush()

    async def listen(self) -> None:
        """Open all ports of AMQP, the same as before a pause, or none. Raise CannotListen and TlsError."""
        settings = self.settings
        self.secure = served = tls.listener(settings)
        with contextlib.ExitStack() as opened:
            plain = [
                opened.enter_context(one) for host, port in settings.listeners for one in self._listen_on(host, port)
            ]
            secure = []
            if served is not None:
                # The key differs from that of the plain listener, whose port may also be chosen by the system.
                secure = [opened.enter_context(one) for one in self._listen_on_tls()]
            opened.pop_all()
        for listener in plain:
            server = await self.loop.create_server(
                lambda: BufferedTransport(self.cycle), sock=listener, backlog=BACKLOG
            )
            self._listeners.append(server)
            self._register_listener("amqp", listener)
            logger.info("started TCP listener on %s", shown_address(listener))
        if served is not None:
            await self._serve_tls(secure, served)
        exposed = [shown_address(listener) for listener in plain if not logins.is_loopback(listener.getsockname()[0])]
        if exposed and self.broker.logins.are_open_to_all:
            remedy = "leave out --remote-guest" if settings.remote_guest else "have guest among the loopback_users"
            logger.warning(OPEN_TO_ALL, " and ".join(exposed), remedy)

    def _listen_on(self, host: str, port: int, name: str = "amqp", others: Iterable[int] = ()) -> list[socket.socket]:
        wanted = self._former_ports.get((name, host, port), port)
        sockets = listen_nearby(host, wanted, others, name)
        self._former_ports[name, host, port] = sockets[0].getsockname()[1]
        return sockets

    def _listen_on_tls(self) -> list[socket.socket]:
        settings = self.settings
        port = settings.port_of(TLS_PORT, settings.tls_port)
        return self._listen_on(settings.host, port, "amqps", settings.nearby(TLS_PORT, settings.tls_port))

    async def close_listeners(self) -> None:
        """Accept no more AMQP clients."""
        servers, self._listeners = self._listeners, []
        await stop_listening(servers)

    def _register_listener(self, protocol: str, listener: socket.socket) -> None:
        host, port = listener.getsockname()[:2]
        self.ports.setdefault("amqps" if protocol == "amqp/ssl" else protocol, port)
        self.node.listen(protocol, host, port)

    async def _serve_tls(self, sockets: list[socket.socket], served: tls.Listener) -> None:
        for listener in sockets:
            server = await self.loop.create_server(
                lambda: tls.TlsTransport(self.cycle, served),
                sock=listener,
                backlog=BACKLOG,
                ssl=served.context,
                ssl_handshake_timeout=min(self.settings.handshake_timeout_ms / 1000, handshakes.DURATION_S_MAX),
                ssl_shutdown_timeout=tls.SHUTDOWN_S,
            )
            self._listeners.append(server)
            self._register_listener("amqp/ssl", listener)
            logger.info("started TLS (SSL) listener on %s", shown_address(listener))
        if served.own is not None:
            own = served.own
            logger.info(
                "TLS: connect to amqps://localhost:%d and trust '%s'; "
                "a client may show '%s' with the key '%s', the broker's is '%s'",
                *(self.ports["amqps"], own.ca_certificate),
                *(own.client_certificate, own.client_key, own.server_certificate),
            )

    def check_alarms(self) -> None:
        """Check alarms now."""
        self.broker.now = self.clock.now()
        if self.alarms.check():
            self.flush()

    def _run_each_second(self) -> None:
        """Check alarms and scan for advice, once a second."""
        self.check_alarms()
        self.broker.advice.scan()
        self.broker.incidents.scan()
        self._alarms_timer = self.loop.call_later(ALARMS_S, self._run_each_second)

    def _on_commit(self, error: Exception | None) -> None:
        """Block publishers if a commit has failed, until one succeeds."""
        assert self.store is not None
        if error is None:
            if self.store.is_failing:
                self.store.is_failing = False
                logger.info("the store can be written again")
                self.alarms.set(STORE_FAILING, False)
            return
        if isinstance(error, PAGE_ERRORS):
            self._on_broken(str(error))
        elif isinstance(error, FlushFailed):
            self._on_failed_flush(error)
        if not self.store.is_failing:
            self.store.is_failing = True
            logger.error("the store cannot be written, publishers are blocked: %s", error)
            self.alarms.set(STORE_FAILING, True)
        if self.store.make_room(error):
            self.alarms.on_full_map()

    async def stop(self) -> None:
        """Close all connections (320), give clients a moment to answer, and close everything."""
        if self._ports_file is not None:
            self._ports_file.remove()
        await self.close_listeners()
        await self.http.stop()
        self.shovels.stop()
        await self.disconnect()
        await self._auth.close()
        for vhost in self.broker.vhosts.values():
            vhost.tracing.stop_recording()
        self._cancel_timers()
        if self.store is not None:
            self.store.close()

    async def give_up(self) -> None:
        """Close all connections (320), commit nothing more, and end: the store cannot be used."""
        if self.store is not None:
            self.store.halt()
        await self.close_listeners()
        try:
            await self.disconnect()
        except Exception:
            # A session may have met the damage again.
            logger.debug("a connection was not closed", exc_info=True)
        await self.kill()

    async def kill(self) -> None:
        """End like a killed process: sockets are reset, and uncommitted changes are lost."""
        if self.store is not None:
            self.store.halt()
        await self.close_listeners()
        await self.http.stop()
        self.shovels.stop()
        await self._abort()
        await self._auth.close()
        self._cancel_timers()
        if self.store is not None:
            self.store.abandon()

    def _cancel_timers(self) -> None:
        self.ticking.stop()
        if self.cycle.committing is not None:
            self.cycle.committing.stop()
        self._alarms_timer.cancel()

    async def disconnect(self) -> None:
        """Close all connections (320), giving clients a moment to answer."""
        now = self.clock.now()
        for session in list(self.transports):
            session.force_close("broker forced connection closure with reason 'shutdown'", now)
        self.flush()
        await self._wait_for_clients()
        await self._abort()

    async def _abort(self) -> None:
        for transport in list(self.transports.values()):
            transport.abort()
        # Sessions still need the store until the loop has reported that their sockets are closed.
        await self._wait_for_clients()
        self.cycle.all_closed = None

    async def _wait_for_clients(self) -> None:
        if self.transports:
            self.cycle.all_closed = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.cycle.all_closed.wait(), SHUTDOWN_GRACE_S)


def _store_of(settings: Settings) -> Store | None:
    """Open the store, if there is one. Raise StoreError."""
    folder = settings.store_path
    if folder is None:
        return None
    if not settings.data_dir:
        # The default is the platform's folder, which a new user does not have yet.
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreInaccessible(NO_DEFAULT_FOLDER.format(folder, error.filename, error.strerror)) from None
    return Store(folder, is_lazy=settings.store_sync == OS)
