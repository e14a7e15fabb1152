"""A running broker: its listeners, the one timer, and what happens after each read.

After everything that may have changed something (`flush`): each session with output is written to its socket once,
the next portion of backlogs is put on the loop's list, and the timer is set to what is due next.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import platform
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from amqp_broker.broker import logins, patterns
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.timers import Timers
from amqp_broker.config import Config, ConfigError, octets
from amqp_broker.server import administration_log, advice_log, memory, tls
from amqp_broker.server.alarms import STORE_FAILING, Alarms, Limits, Readings
from amqp_broker.server.clock import Clock
from amqp_broker.server.listening import BACKLOG, listen, shown_address
from amqp_broker.server.management import Listeners, ServerNode
from amqp_broker.server.pauses import Pauses
from amqp_broker.server.ports_file import write_ports
from amqp_broker.server.ticking import Ticking
from amqp_broker.server.transport import Transport
from amqp_broker.session.session import REST_BYTES_MAX, Session
from amqp_broker.store.store import Store

if TYPE_CHECKING:
    from amqp_broker.server.shovels import LocalLink, Shovels

logger = logging.getLogger("amqp_broker.server")

# How long clients may take to answer the connection.close of a shutdown.
SHUTDOWN_GRACE_S: Final = 0.2
TLS_PORT: Final = 5671
# One read: large enough to be worth its overhead, small enough not to hold up other clients.
READ_BYTES_MAX: Final = 256 * 1024

EVERYBODY: Final = (
    "anyone who reaches %s can log in as guest with the password guest, which everybody knows: "
    "set RABBITMQ_DEFAULT_USER and RABBITMQ_DEFAULT_PASS, or %s"
)
# How long a publisher waits for a consumer's full socket to empty: a third of the system's buffers, some MB, has to
# be read for that, so less would take a consumer of 50 MB/s for a stuck one.
THROTTLE_S_MAX: Final = 0.1
# How long what nobody waits for (acks, publishes without confirms) may wait for a commit, and what may yet shrink.
COMMIT_DELAY_S: Final = 0.005
# A batch of less than this is not worth waiting with.
GATHER_BYTES_MIN: Final = 256 * 1024
# Octets that wait for the commit in flight before their publishers do, too: a few milliseconds of work.
WAITING_BYTES_MAX: Final = 2 * 1024 * 1024
# How often alarms look at what there is, and a working store lets go of what it has read.
ALARMS_S: Final = 1.0
RELEASE_MS: Final = 100
# How long to wait before a commit that failed is tried again.
STORE_RETRY_S: Final = 1.0


class Server:
    """Serves one broker; `ports` tells where (by listener: {"amqp": 5672}).

    Raises StoreError, DefinitionsError, and ConfigError for one without any listener; the store is then as it was.
    """

    def __init__(self, config: Config) -> None:
        if not config.tcp and not config.has_tls:
            raise ConfigError("AMQP would be served nowhere: there is no listener for TCP, and no certificate for TLS")
        self.config = config
        self.clock = Clock()
        folder = config.store_path
        if folder is not None and not config.data_dir:
            # Nobody was asked about the platform's folder, which a new user does not have yet.
            with contextlib.suppress(OSError):
                folder.parent.mkdir(parents=True, exist_ok=True)
        self.store = None if folder is None else Store(folder)
        self.broker = Broker(config, os.urandom, self.store.journal if self.store else None)
        self.broker.now_us = self.clock.now_us
        self.broker.real_timers, self.broker.real_now = Timers(), self.clock.real_now
        self.broker.node = config.node_name or f"rabbit@{platform.node()}"
        self.broker.now = self.clock.now()
        is_blank = self.store is None or not self.store.recover(self.broker)
        self.broker.events.listen(administration_log.tell)
        self.broker.advice.listeners = (advice_log.tell,)
        try:
            self._declare(is_blank)
        except BaseException:
            if self.store is not None:
                self.store.abandon()
            raise
        self.alarms = Alarms(self.broker, *self._limits())
        self.ports: dict[str, int] = {}
        self.node = ServerNode(self)
        # What ends the process; a shell that can be told to stop puts its own here.
        self.request_stop: Callable[[], None] = lambda: None
        self.dirty: list[Session] = []
        self.transports: dict[Session, Transport | LocalLink] = {}
        # Reads of all sockets go through this one; what a session does not use up at once, it keeps itself.
        self.read_view = memoryview(bytearray(READ_BYTES_MAX + REST_BYTES_MAX))
        self._listeners: list[asyncio.AbstractServer] = []
        # What AMQP over TLS is served with; None if it is not.
        self.secure: tls.Listener | None = None
        # The ports that were taken where any would do.
        self._taken: dict[tuple[str, str, int], int] = {}
        self.http = Listeners(self)
        self.pauses = Pauses(self)
        self.shovels: Shovels
        # Set, while the server stops, when the last client has gone.
        self._all_closed: asyncio.Event | None = None
        self.loop: asyncio.AbstractEventLoop
        self.ticking = Ticking(self.broker, self.clock, self.flush)
        self._is_draining = False
        self._commit_timer: asyncio.TimerHandle | None = None
        self._is_throttling = True
        self._throttled: list[Transport] = []
        self._throttle_timer: asyncio.TimerHandle
        # What is not read until a commit has ended.
        self._awaiting_commit: list[Transport] = []
        self._released_at_ms = 0
        self._alarms_timer: asyncio.TimerHandle

    def _declare(self, is_blank: bool) -> None:
        """Declare what there is before the first client. Raises DefinitionsError."""
        if self.broker.config.definitions:
            # What reads them takes longer to import than most brokers, which have none, would like to wait.
            from amqp_broker.server import definitions

            definitions.load(self.broker, is_blank)
        elif is_blank:
            self.broker.add_defaults()

    def _limits(self) -> tuple[Limits, Readings]:
        config, store, total = self.broker.config, self.store, memory.total_bytes()
        limits, readings = Limits(), Readings(memory.used_bytes, trim=memory.trim)
        limits.memory_max = octets(config.vm_memory_high_watermark, total)
        if store is not None:
            limits.disk_free_min = octets(config.disk_free_limit, total)
            readings.disk_free = lambda: shutil.disk_usage(store.environment.folder).free
            store_max = octets(config.store_bytes_max, total)
            limits.store_max = min(store_max or store.environment.map_bytes, store.environment.map_bytes)
            readings.store_used = store.environment.used_bytes
        return limits, readings

    async def start(self) -> None:
        """Listen; when this returns, clients are served.

        Raises CannotListen (port taken, bad address, no permission), TlsError for certificates that cannot be used,
        and OSError that names the ports file.
        """
        self.loop = asyncio.get_running_loop()
        if self.store is not None:
            self.store.start(self.loop.call_soon_threadsafe, self._on_commit_done)
        self._watch_alarms()
        await self.listen()
        # Clients are served already: nobody can set a shovel before the HTTP API is there.
        from amqp_broker.server.shovels import SHOVEL, Shovels

        self.shovels = self.broker.components[SHOVEL] = Shovels(self)
        allowed, total = self.alarms.limits.memory_max or 0, memory.total_bytes()
        logger.info(
            "Memory high watermark set to %d MiB (%d bytes) of %d MiB (%d bytes) total",
            *(allowed >> 20, allowed),
            *(total >> 20, total),
        )
        try:
            await self.http.start()
        except BaseException:
            await self.stop()
            raise
        self.shovels.start()
        if self.config.ports_file:
            try:
                write_ports(Path(self.config.ports_file), self.ports)
            except OSError:
                await self.stop()
                raise
        logger.info("%s", administration_log.startup(self.ports))
        # What a former process left behind is seen to now.
        self.flush()

    async def listen(self) -> None:
        """Take all ports of AMQP, those that we had if we had some, or none. Raises CannotListen and TlsError."""
        config = self.config
        self.secure = served = tls.listener(config)
        with contextlib.ExitStack() as opened:
            plain = [
                opened.enter_context(one) for host, port in config.listeners for one in self._listen_again(host, port)
            ]
            secure = []
            if served is not None:
                port = config.port_of(TLS_PORT, config.tls_port)
                # Another key than that of the plain listener, whose port may be "any", too.
                secure = [opened.enter_context(one) for one in self._listen_again(config.host, port, "amqps")]
            opened.pop_all()
        for listener in plain:
            server = await self.loop.create_server(lambda: Transport(self), sock=listener, backlog=BACKLOG)
            self._listeners.append(server)
            self._tell_listener("amqp", listener)
            logger.info("started TCP listener on %s", shown_address(listener))
        if served is not None:
            await self._serve_tls(secure, served)
        exposed = [shown_address(listener) for listener in plain if not logins.is_loopback(listener.getsockname()[0])]
        if exposed and logins.is_everybody(self.broker):
            remedy = "leave out --remote-guest" if config.remote_guest else "have guest among the loopback_users"
            logger.warning(EVERYBODY, " and ".join(exposed), remedy)

    def _listen_again(self, host: str, port: int, name: str = "amqp") -> list[socket.socket]:
        sockets = listen(host, self._taken.get((name, host, port), port))
        self._taken[name, host, port] = sockets[0].getsockname()[1]
        return sockets

    def close_listeners(self) -> None:
        """Take no more clients of AMQP."""
        while self._listeners:
            self._listeners.pop().close()

    def _tell_listener(self, protocol: str, listener: socket.socket) -> None:
        host, port = listener.getsockname()[:2]
        self.ports.setdefault("amqps" if protocol == "amqp/ssl" else protocol, port)
        self.node.listen(protocol, host, port)

    async def _serve_tls(self, sockets: list[socket.socket], served: tls.Listener) -> None:
        for listener in sockets:
            server = await self.loop.create_server(
                lambda: tls.TlsTransport(self, served),
                sock=listener,
                backlog=BACKLOG,
                ssl=served.context,
                ssl_handshake_timeout=self.config.handshake_timeout_ms / 1000,
                ssl_shutdown_timeout=tls.SHUTDOWN_S,
            )
            self._listeners.append(server)
            self._tell_listener("amqp/ssl", listener)
            logger.info("started TLS (SSL) listener on %s", shown_address(listener))
        if served.own is not None:
            own = served.own
            logger.info(
                "TLS: connect to amqps://localhost:%d and trust '%s'; "
                "a client may show '%s' with the key '%s', the broker's is '%s'",
                *(self.ports["amqps"], own.ca_certificate),
                *(own.client_certificate, own.client_key, own.server_certificate),
            )

    def flush(self) -> None:
        """Write what sessions have to say, and see to what was put off."""
        dirty, transports = self.dirty, self.transports
        while dirty:
            session = dirty.pop()
            transport = transports.get(session)
            if transport is not None and session.is_blocked is not transport.is_held:
                transport.hold(session.is_blocked)
            if session.held_until:
                continue
            output = session.take_output()
            if transport is None:
                continue
            if output:
                transport.write(output)
            if session.is_over:
                transport.close()
        if self.broker.idle_waits:
            for wait in list(self.broker.idle_waits):
                wait.check()
        while patterns.warnings:
            logger.warning("%s", patterns.warnings.popleft())
        broker, ticking = self.broker, self.ticking
        if broker.undrained and not self._is_draining:
            self._is_draining = True
            self.loop.call_soon(self._drain_on)
        if broker.timers.earliest_ms != ticking.due_ms or broker.real_timers.earliest_ms != ticking.real_due_ms:
            ticking.set_timers()
        if self.store is not None:
            self._commit(self.store)

    def _commit(self, store: Store) -> None:
        """Have committed what somebody waits for, at once unless waiting pays, and the rest with it or a little later.

        It pays where much of what is to be written is on its way to consumers: what they settle before the batch is
        taken need not be written at all.
        """
        if not store.can_commit:
            return
        journal = store.journal
        if self.broker.awaiting_commit and not (journal.waiting_bytes >= GATHER_BYTES_MIN and journal.may_shrink):
            store.commit()
        elif self._commit_timer is None:
            self._commit_timer = self.loop.call_later(COMMIT_DELAY_S, self._commit_later)

    def _commit_later(self) -> None:
        self._commit_timer = None
        if self.store is not None and self.store.can_commit:
            self.store.commit()

    def check_alarms(self) -> None:
        """Compare what there is with the limits now."""
        self.broker.now = self.clock.now()
        if self.alarms.check():
            self.flush()

    def _watch_alarms(self) -> None:
        """What is done once a second."""
        self.check_alarms()
        self.broker.advice.look()
        self._alarms_timer = self.loop.call_later(ALARMS_S, self._watch_alarms)

    def _on_commit_done(self, error: Exception | None) -> None:
        """A commit has ended: who waited for it goes on, or nobody can publish until one succeeds."""
        assert self.store is not None
        self.broker.now = self.clock.now()
        if error is None:
            if self.store.is_failing:
                self.store.is_failing = False
                logger.info("the store can be written again")
                self.alarms.set(STORE_FAILING, False)
            self.broker.on_committed()
        else:
            if not self.store.is_failing:
                self.store.is_failing = True
                logger.error("the store cannot be written, publishers are blocked: %s", error)
                self.alarms.set(STORE_FAILING, True)
            if self.store.make_room(error):
                self.alarms.on_full_map()
            self.loop.call_later(STORE_RETRY_S, self.store.commit)
        real_now = self.clock.real_now()
        if real_now - self._released_at_ms >= RELEASE_MS:
            self._released_at_ms = real_now
            self.store.release()
        self.flush()
        waited, self._awaiting_commit = self._awaiting_commit, []
        for transport in waited:
            transport.read_on()

    def await_commit(self, transport: Transport) -> bool:
        """Do not read a publisher that outruns the disk, until the commit in flight has ended; whether that is so."""
        if self.store is None or self.store.is_failing or self.broker.journal.waiting_bytes < WAITING_BYTES_MAX:
            return False
        transport.stop_reading()
        self._awaiting_commit.append(transport)
        return True

    def throttle(self, transport: Transport) -> None:
        """Do not read a publisher that outruns the sockets of its consumers, until one of these gets on.

        While a backlog is handed out in portions that makes one read for two of them, so that the backlog shrinks.

        If that takes longer than a moment the consumers are not slow but stuck, and publishers need not wait for them.
        """
        if self._is_throttling and transport.is_reading:
            transport.stop_reading()
            if not self._throttled:
                self._throttle_timer = self.loop.call_later(THROTTLE_S_MAX, self._give_up_throttle)
            self._throttled.append(transport)

    def end_throttle(self) -> None:
        """A consumer's socket has room again, or has got the next portion of a backlog."""
        self._is_throttling = True
        if self._throttled:
            self._throttle_timer.cancel()
            self._read_on()

    def _give_up_throttle(self) -> None:
        self._is_throttling = False
        self._read_on()

    def _read_on(self) -> None:
        throttled, self._throttled = self._throttled, []
        for transport in throttled:
            transport.read_on()

    def _drain_on(self) -> None:
        self._is_draining = False
        self.broker.drain_on()
        self.flush()
        self.end_throttle()

    def forget(self, session: Session) -> None:
        """The session's socket is closed."""
        self.transports.pop(session, None)
        if self._all_closed is not None and not self.transports:
            self._all_closed.set()

    async def stop(self) -> None:
        """Tell clients that the broker goes (320), give them a moment to answer, and close everything."""
        self.close_listeners()
        await self.http.stop()
        self.shovels.stop()
        await self.disconnect()
        self._cancel_timers()
        if self.store is not None:
            self.store.close()

    async def kill(self) -> None:
        """End as a process that is killed: sockets are reset, and what is not committed is lost."""
        if self.store is not None:
            self.store.halt()
        self.close_listeners()
        await self.http.stop()
        self.shovels.stop()
        await self._abort()
        self._cancel_timers()
        if self.store is not None:
            self.store.abandon()

    def _cancel_timers(self) -> None:
        self.ticking.stop()
        for timer in (self._commit_timer, self._alarms_timer):
            if timer is not None:
                timer.cancel()

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
            transport.socket.abort()
        # They are gone when the loop has told their sessions so, which still need the store.
        await self._wait_for_clients()
        self._all_closed = None

    async def _wait_for_clients(self) -> None:
        if self.transports:
            self._all_closed = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_closed.wait(), SHUTDOWN_GRACE_S)
