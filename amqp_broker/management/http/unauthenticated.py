"""The connections of clients that have not logged in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from aiohttp import web

# More than the browsers, scrapers and health checks of a machine have open. Each may fill its buffers.
CONNECTIONS_MAX: Final = 256


class UnauthenticatedConnections:
    """Bounds their number: for a new one, that whose last request began first is closed."""

    def __init__(self, count_max: int = CONNECTIONS_MAX) -> None:
        self.count_max = count_max
        # In the order of their last requests.
        self._connections: dict[web.RequestHandler, None] = {}

    def __len__(self) -> int:
        return len(self._connections)

    def add(self, connection: web.RequestHandler) -> None:
        """Count a new connection."""
        self._connections[connection] = None
        if len(self._connections) > self.count_max:
            first = next(iter(self._connections))
            del self._connections[first]
            if first.transport is not None:
                first.transport.abort()

    def note_request(self, connection: web.RequestHandler) -> None:
        """Move a connection behind the others, if it is among them."""
        if connection in self._connections:
            del self._connections[connection]
            self._connections[connection] = None

    def remove(self, connection: web.RequestHandler) -> None:
        """Count a connection no more: its client has logged in, or left."""
        self._connections.pop(connection, None)
