"""Our broker's end of a connection: a session without a socket, which hears what the comparison plays to it.

What it is played, it has acted on when `play` returns: so all connections' words reach our broker in the order in which
the proxy has heard them, and nobody's overtake another's that caused them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from amqp_broker.compare.connection import Connection
from amqp_broker.session.session import Session

if TYPE_CHECKING:
    from amqp_broker.broker.access import User
    from amqp_broker.server.server import Server

# Ours delivers no more to a client while it is so many messages ahead of the upstream.
AHEAD_MAX: Final = 10_000
LOCALHOST: Final = "127.0.0.1"


class Follower:
    """Stands where a `Transport` stands for a client with a socket."""

    def __init__(self, server: Server, connection: Connection, on_said: Callable[[], None]) -> None:
        self.server = server
        self.connection = connection
        self.on_said = on_said
        self.said: deque[bytes] = deque()
        self.is_held = False
        self.is_closed = False
        # What stands for the socket of a transport.
        self.socket = self
        port = server.ports.get("amqp", 0)
        self.session = Session(server.broker, server.dirty, LOCALHOST, 0, LOCALHOST, port, server.clock.now())
        server.transports[self.session] = self  # type: ignore[assignment] # a transport by its shape

    def let_in(self, user: User) -> None:
        self.session.insider = user

    def play(self, octets: bytes) -> None:
        if not self.is_closed:
            self.session.receive(octets, self.server.clock.now())

    def hear(self) -> None:
        """Give the comparison what our broker has said."""
        now = self.server.clock.real_now()
        while self.said:
            self.connection.from_ours(self.said.popleft(), now)
        is_ahead = self.connection.ahead_count > (AHEAD_MAX // 2 if self.session.is_paused else AHEAD_MAX)
        if is_ahead is not self.session.is_paused and not self.is_closed:
            if is_ahead:
                self.session.pause()
            else:
                self.session.resume(self.server.clock.now())

    def leave(self) -> None:
        """The client has left."""
        if not self.is_closed:
            self.is_closed = True
            self.server.forget(self.session)
            self.session.connection_lost(self.server.clock.now())
            self.session.take_output()

    # What a transport does for a session

    def write(self, pieces: list[bytes]) -> None:
        self.said.append(b"".join(pieces))
        self.on_said()

    def close(self) -> None:
        """Our broker ends the connection."""
        if not self.is_closed:
            # Not at once: this is called while the server is writing what sessions have to say.
            asyncio.get_running_loop().call_soon(self._close)

    def _close(self) -> None:
        if not self.is_closed:
            self.leave()
            self.connection.ours_is_gone(self.server.clock.real_now())
            self.on_said()

    def abort(self) -> None:
        self.close()

    def hold(self, is_held: bool) -> None:
        # An alarm of ours would only make us lag behind.
        self.is_held = is_held

    def read_on(self) -> None:
        pass

    def stop_reading(self) -> None:
        pass
