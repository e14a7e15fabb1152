"""A listener for HTTP that imports its server, aiohttp, when the first client connects.

The import takes longer than the whole start of the broker, and 15 MB; many brokers never get a request.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

from amqp_broker.server.handshakes import DURATION_S_MAX
from amqp_broker.server.listening import stop_listening

if TYPE_CHECKING:
    from aiohttp import web

    from amqp_broker.management.application import Management

logger = logging.getLogger("amqp_broker.server")

SHUTDOWN_GRACE_S: Final = 0.1


class HttpListener:
    """Serves the application that `make` returns on listening sockets. `importing` is the context of the imports."""

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        make: Callable[[], Management],
        context: ssl.SSLContext | None = None,
        importing: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        self._sockets = sockets
        self._make = make
        self._context = context
        self._importing = importing
        self._loop = asyncio.get_running_loop()
        self._starting: asyncio.Task[None] | None = None
        self._runner: web.AppRunner | None = None
        self._servers: list[asyncio.Server] = []
        try:
            for listener in sockets:
                self._loop.add_reader(listener.fileno(), self._on_client)
        except NotImplementedError:
            # The event loop of Windows cannot wait for sockets.
            self._starting = self._loop.create_task(self._serve())

    def _on_client(self) -> None:
        """Begin to serve: the first client has connected."""
        self._stop_waiting()
        self._starting = self._loop.create_task(self._serve())

    def _stop_waiting(self) -> None:
        for listener in self._sockets:
            self._loop.remove_reader(listener.fileno())

    async def _serve(self) -> None:
        try:
            await self._start()
        except Exception:
            # The broker serves AMQP, and has a store to close.
            logger.exception("HTTP cannot be served")
            for listener in self._sockets[len(self._servers) :]:
                listener.close()

    async def _start(self) -> None:
        # In a thread, so that other clients are served meanwhile.
        await self._loop.run_in_executor(None, self._import)
        from aiohttp import web

        management = self._make()
        # Each of these takes milliseconds the first time.
        await asyncio.sleep(0)
        application = management.application()
        await asyncio.sleep(0)
        self._runner = web.AppRunner(application, handle_signals=False, shutdown_timeout=SHUTDOWN_GRACE_S)
        await self._runner.setup()
        assert self._runner.server is not None, "setup makes it"
        make_protocol = management.connections(self._runner.server, quiet_logger())
        for listener in self._sockets:
            limit_s = None if self._context is None else DURATION_S_MAX
            self._servers.append(
                await self._loop.create_server(
                    make_protocol, sock=listener, ssl=self._context, ssl_handshake_timeout=limit_s
                )
            )

    def _import(self) -> None:
        with self._importing():
            import amqp_broker.management.application
            import amqp_broker.management.metrics.exposition  # noqa: F401

    async def close(self) -> None:
        """Close the sockets and all connections."""
        if self._starting is None:
            self._stop_waiting()
            for listener in self._sockets:
                listener.close()
            return
        await self._starting
        await stop_listening(self._servers)
        if self._runner is not None:
            await self._runner.cleanup()


def quiet_logger() -> logging.Logger:
    """Return the logger for aiohttp's connections, which drops the errors of invalid requests.

    A traceback for each would fill the log.
    """
    from aiohttp.http_exceptions import HttpProcessingError
    from aiohttp.web import RequestPayloadError

    def is_ours(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, (HttpProcessingError, RequestPayloadError))

    quiet = logging.Logger("amqp_broker.http")
    quiet.parent = logger
    quiet.addFilter(is_ours)
    return quiet
