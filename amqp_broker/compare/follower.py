"""The local broker's end of a connection: a session without a socket.

The session has processed the octets when `play` returns. So the local broker sees all connections in the order in which
the proxy read them, and no effect overtakes its cause.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from amqp_broker.compare.connection_pair import ConnectionPair
from amqp_broker.session.session import Session

if TYPE_CHECKING:
    from amqp_broker.broker.admin.access import User
    from amqp_broker.server.server import Server

# The local broker stops delivering to a client while it is this many messages ahead of the upstream.
AHEAD_MAX: Final = 10_000
LOCALHOST: Final = "127.0.0.1"


class Follower:
    """The transport of the local broker's session, in the place of a client's socket."""

    def __init__(self, server: Server, connection: ConnectionPair, on_said: Callable[[], None]) -> None:
        self.server = server
        self.connection = connection
        self.on_said = on_said
        self.said: deque[bytes] = deque()
        self.is_blocked = False
        self.is_closed = False
        port = server.ports.get("amqp", 0)
        self.session = Session(server.broker, server.cycle.dirty, LOCALHOST, 0, LOCALHOST, port, server.clock.now())
        server.transports[self.session] = self

    def accept_next_login(self, user: User) -> None:
        self.session.internal_user = user

    def play(self, octets: bytes) -> None:
        if not self.is_closed:
            self.session.receive(octets, self.server.clock.now())

    def hear(self) -> None:
        """Pass the local broker's output to the comparison."""
        now = self.server.clock.real_now()
        while self.said:
            self.connection.from_local(self.said.popleft(), now)
        is_ahead = self.connection.ahead_count > (AHEAD_MAX // 2 if self.session.is_backpressured else AHEAD_MAX)
        if is_ahead is not self.session.is_backpressured and not self.is_closed:
            if is_ahead:
                self.session.pause()
            else:
                self.session.resume(self.server.clock.now())

    def leave(self) -> None:
        """Disconnect: the client has disconnected."""
        if not self.is_closed:
            self.is_closed = True
            self.server.cycle.forget(self.session)
            self.session.connection_lost(self.server.clock.now())
            self.session.outbox.take()

    # The transport of the session (SessionTransport)

    def write(self, pieces: list[bytes]) -> None:
        self.said.append(b"".join(pieces))
        self.on_said()

    def close(self) -> None:
        """Close the connection for the local broker."""
        if not self.is_closed:
            # Not at once: the server is flushing sessions when it calls this.
            asyncio.get_running_loop().call_soon(self._close)

    def _close(self) -> None:
        if not self.is_closed:
            self.leave()
            self.connection.local_is_gone(self.server.clock.real_now())
            self.on_said()

    def abort(self) -> None:
        self.close()

    def set_blocked(self, is_blocked: bool) -> None:
        # Obeying a local alarm would only make the local broker lag behind.
        self.is_blocked = is_blocked
