"""A running broker: its listeners, the one timer, and what happens after each read.

After everything that may have changed something (`flush`): each session with output is written to its socket once,
the next portion of backlogs is put on the loop's list, and the timer is set to what is due next.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import os
import platform
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

from amqp_broker.broker import patterns
from amqp_broker.broker.broker import Broker
from amqp_broker.config import Config
from amqp_broker.server.clock import Clock
from amqp_broker.server.transport import Transport
from amqp_broker.session.session import REST_BYTES_MAX, Session

logger = logging.getLogger("amqp_broker.server")

# How long clients may take to answer the connection.close of a shutdown.
SHUTDOWN_GRACE_S: Final = 0.2
# One read: large enough to be worth its overhead, small enough not to hold up other clients.
READ_BYTES_MAX: Final = 256 * 1024
BACKLOG: Final = 1024
FREE_PORT_ATTEMPTS: Final = 20

# What a listener is bound to: the family and the address of an interface.
Address: TypeAlias = "tuple[socket.AddressFamily, str]"
IPV6_ANY: Final = (socket.AF_INET6, "::")
IPV4_ANY: Final = (socket.AF_INET, "0.0.0.0")
# How long a publisher waits for a consumer's full socket to empty: a third of the system's buffers, some MB, has to
# be read for that, so less would take a consumer of 50 MB/s for a stuck one.
THROTTLE_S_MAX: Final = 0.1


class Server:
    """Serves one broker; `ports` tells where (by listener: {"amqp": 5672})."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.clock = Clock()
        self.broker = Broker(config, os.urandom)
        self.broker.now_us = self.clock.now_us
        self.broker.node = f"rabbit@{platform.node()}"
        self.broker.add_defaults()
        self.ports: dict[str, int] = {}
        self.dirty: list[Session] = []
        self.transports: dict[Session, Transport] = {}
        # Reads of all sockets go through this one; what a session does not use up at once, it keeps itself.
        self.read_view = memoryview(bytearray(READ_BYTES_MAX + REST_BYTES_MAX))
        self._listeners: list[asyncio.AbstractServer] = []
        # Set, while the server stops, when the last client has gone.
        self._all_closed: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop
        self._timer: asyncio.TimerHandle | None = None
        self._timer_deadline_ms: int | None = None
        self._is_draining = False
        self._is_throttling = True
        self._throttled: list[Transport] = []
        self._throttle_timer: asyncio.TimerHandle

    async def start(self) -> None:
        """Listen; when this returns, clients are served. Raises OSError (port taken, bad address, no permission)."""
        self._loop = asyncio.get_running_loop()
        for listener in open_sockets(addresses_of(self.config.host), self.config.port):
            server = await self._loop.create_server(lambda: Transport(self), sock=listener, backlog=BACKLOG)
            self._listeners.append(server)
            host, port = listener.getsockname()[:2]
            self.ports["amqp"] = port
            logger.info("started TCP listener on %s:%d", f"[{host}]" if ":" in host else host, port)
        if self.config.ports_file:
            try:
                write_ports(Path(self.config.ports_file), self.ports)
            except OSError:
                await self.stop()
                raise
        logger.info("Server startup complete; 0 plugins started.")

    def flush(self) -> None:
        """Write what sessions have to say, and see to what was put off."""
        dirty, transports = self.dirty, self.transports
        while dirty:
            session = dirty.pop()
            output = session.take_output()
            transport = transports.get(session)
            if transport is None:
                continue
            if output:
                transport.write(output)
            if session.is_blocked is not transport.is_held:
                transport.hold(session.is_blocked)
            if session.is_over:
                transport.close()
        while patterns.warnings:
            logger.warning("%s", patterns.warnings.popleft())
        broker = self.broker
        if broker.undrained and not self._is_draining:
            self._is_draining = True
            self._loop.call_soon(self._drain_on)
        if broker.timers.earliest_ms != self._timer_deadline_ms:
            self._set_timer()

    def throttle(self, transport: Transport) -> None:
        """Do not read a publisher that outruns the sockets of its consumers, until one of these gets on.

        While a backlog is handed out in portions that makes one read for two of them, so that the backlog shrinks.

        If that takes longer than a moment the consumers are not slow but stuck, and publishers need not wait for them.
        """
        if self._is_throttling and transport.is_reading:
            transport.stop_reading()
            if not self._throttled:
                self._throttle_timer = self._loop.call_later(THROTTLE_S_MAX, self._give_up_throttle)
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

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_deadline_ms = deadline = self.broker.timers.next_deadline()
        if deadline is not None:
            delay_s = max(0, deadline - self.clock.now()) / 1000
            self._timer = self._loop.call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._timer_deadline_ms = None
        self.broker.tick(self.clock.now())
        self.flush()

    def forget(self, session: Session) -> None:
        """The session's socket is closed."""
        self.transports.pop(session, None)
        if self._all_closed is not None and not self.transports:
            self._all_closed.set()

    async def stop(self) -> None:
        """Tell clients that the broker goes (320), give them a moment to answer, and close everything."""
        for listener in self._listeners:
            listener.close()
        now = self.clock.now()
        for session in list(self.transports):
            session.force_close("broker forced connection closure with reason 'shutdown'", now)
        self.flush()
        if self.transports:
            self._all_closed = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_closed.wait(), SHUTDOWN_GRACE_S)
        for transport in list(self.transports.values()):
            transport.socket.abort()
        if self._timer is not None:
            self._timer.cancel()


def addresses_of(host: str) -> list[Address]:
    """What to listen on for `host`. Raises gaierror if it is neither an address nor the name of one."""
    if host == "::":
        # IPv4 comes in through it, but where the system keeps them apart or has no IPv6.
        return [IPV6_ANY] if socket.has_dualstack_ipv6() else [IPV6_ANY, IPV4_ANY]
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except UnicodeError:
        raise socket.gaierror(socket.EAI_NONAME, "Not a host name") from None
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))


def open_sockets(addresses: Sequence[Address], port: int) -> list[socket.socket]:
    """Listening sockets on all these addresses, on one port; 0 takes one that all have free. Raises OSError."""
    for _ in range(FREE_PORT_ATTEMPTS):
        try:
            return _listen(addresses, port)
        except OSError as error:
            # What is free on one address may be taken on another.
            if port or error.errno != errno.EADDRINUSE:
                raise
    return _listen(addresses, port)


def _listen(addresses: Sequence[Address], port: int) -> list[socket.socket]:
    sockets: list[socket.socket] = []
    missing = OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
    with contextlib.ExitStack() as opened:
        for address in addresses:
            try:
                listener = opened.enter_context(_open_socket(address, port))
            except OSError as error:
                # A machine without IPv6 still names ::1 as localhost: one address that exists is enough.
                if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
                missing = error
                continue
            sockets.append(listener)
            port = listener.getsockname()[1]
        if not sockets:
            raise missing
        opened.pop_all()
    return sockets


def _open_socket(address: Address, port: int) -> socket.socket:
    family, host = address
    is_dualstack = address == IPV6_ANY and socket.has_dualstack_ipv6()
    return socket.create_server((host, port), family=family, backlog=BACKLOG, dualstack_ipv6=is_dualstack)


def write_ports(path: Path, ports: dict[str, int]) -> None:
    """Write the ports as JSON, so that a reader never sees half of the file. Raises OSError that names the file."""
    text = json.dumps(ports) + "\n"
    try:
        if path.exists() and not path.is_file():
            path.write_text(text)  # a pipe or a device, which a file must not replace
            return
        path = path.resolve()
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            temporary.write_text(text)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
