"""A running broker: its listeners, the one timer, and what happens after each read.

After everything that may have changed something (`flush`): each session with output is written to its socket once,
the next portion of backlogs is put on the loop's list, and the timer is set to what is due next.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
from pathlib import Path
from typing import Final

from amqp_broker.broker.broker import Broker
from amqp_broker.config import Config
from amqp_broker.server.clock import Clock
from amqp_broker.server.transport import Transport
from amqp_broker.session.session import Session

logger = logging.getLogger("amqp_broker.server")

# How long clients may take to answer the connection.close of a shutdown.
SHUTDOWN_GRACE_S: Final = 0.2
BACKLOG: Final = 1024
# How long a publisher waits for a consumer's full socket to empty.
THROTTLE_S_MAX: Final = 0.02


class Server:
    """Serves one broker; `ports` tells where (by listener: {"amqp": 5672})."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.clock = Clock()
        self.broker = Broker(config, os.urandom)
        self.broker.add_defaults()
        self.ports: dict[str, int] = {}
        self.dirty: list[Session] = []
        self.transports: dict[Session, Transport] = {}
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
        for listener in open_sockets(self.config.host, self.config.port):
            server = await self._loop.create_server(lambda: Transport(self), sock=listener, backlog=BACKLOG)
            self._listeners.append(server)
            host, port = listener.getsockname()[:2]
            self.ports["amqp"] = port
            logger.info("started TCP listener on %s:%d", f"[{host}]" if ":" in host else host, port)
        if self.config.ports_file:
            write_ports(Path(self.config.ports_file), self.ports)
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
            if session.is_over:
                transport.socket.close()
        broker = self.broker
        if broker.undrained and not self._is_draining:
            self._is_draining = True
            self._loop.call_soon(self._drain_on)
        if broker.timers.earliest_ms != self._timer_deadline_ms:
            self._set_timer()

    def throttle(self, transport: Transport) -> None:
        """Do not read a publisher that outruns the sockets of its consumers, until one of these has room again.

        If that takes longer than a moment the consumers are not slow but stuck, and publishers need not wait for them.
        """
        if self._is_throttling:
            transport.stop_reading()
            if not self._throttled:
                self._throttle_timer = self._loop.call_later(THROTTLE_S_MAX, self._give_up_throttle)
            self._throttled.append(transport)

    def end_throttle(self) -> None:
        """A consumer's socket has room again."""
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
        self.broker.timers.run_due(self.clock.now())
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


def open_sockets(host: str, port: int) -> list[socket.socket]:
    """Listening sockets on all addresses of `host`, on one port; '::' takes IPv4 as well. Raises OSError."""
    if host == "::" and socket.has_dualstack_ipv6():
        return [socket.create_server((host, port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)]
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    for family, _, _, _, address in dict.fromkeys(addresses):
        chosen_port = sockets[0].getsockname()[1] if sockets else port
        try:
            sockets.append(socket.create_server((address[0], chosen_port), family=family, backlog=BACKLOG))
        except OSError:
            # A machine without IPv6 still names ::1 as localhost: one address that works is enough.
            if not sockets and family == addresses[-1][0]:
                raise
            if port and family == socket.AF_INET:
                raise
    return sockets


def write_ports(path: Path, ports: dict[str, int]) -> None:
    """Write the ports as JSON, so that a reader never sees half of the file. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(ports) + "\n")
    temporary.replace(path)
