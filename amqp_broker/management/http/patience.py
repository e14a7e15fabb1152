"""Time limits of connections: a peer that sends or takes nothing for too long is disconnected."""

from __future__ import annotations

import asyncio

from aiohttp import web


class Patience:
    """Closes connections that wait for their peer longer than `limit_s`: for headers, a body, or the next request."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._timers: dict[web.RequestHandler, asyncio.TimerHandle] = {}

    def begin(self, protocol: web.RequestHandler) -> None:
        """Close the connection at the limit, unless `end` or `begin` is called before."""
        self.end(protocol)
        self._timers[protocol] = asyncio.get_running_loop().call_later(self.limit_s, self._close, protocol)

    def end(self, protocol: web.RequestHandler) -> None:
        """Stop waiting for the peer."""
        timer = self._timers.pop(protocol, None)
        if timer is not None:
            timer.cancel()

    def _close(self, protocol: web.RequestHandler) -> None:
        del self._timers[protocol]
        if protocol.transport is not None:
            protocol.transport.abort()
