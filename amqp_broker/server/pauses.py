"""RabbitMQ's stop_app and suspend_listeners: a node accepts no clients while its process runs.

Each request begins a task; tasks run one after the other. `Node.state` reports their progress.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqp_broker.server.server import Server

logger = logging.getLogger("amqp_broker.server")


class Pauses:
    """Closes and opens the listeners of a server, which keep their ports."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._task: asyncio.Task[None] | None = None

    def begin(self, wanted: str) -> None:
        """Begin to change to a state: "running", "suspended" or "stopped"."""
        self._task = asyncio.get_running_loop().create_task(self._go_after(self._task, wanted))

    async def _go_after(self, before: asyncio.Task[None] | None, wanted: str) -> None:
        if before is not None:
            await asyncio.wait([before])
        try:
            await self._go(wanted)
        except Exception as error:
            self._server.node.problem = str(error) or repr(error)
            logger.exception("the node cannot change its state to %s", wanted)

    async def _go(self, wanted: str) -> None:
        node = self._server.node
        if node.state == wanted:
            return
        node.problem = ""
        if wanted == "running":
            await self._open()
            return
        is_open = node.state == "running"
        if wanted == "stopped":
            node.state = "stopping"
        if is_open:
            await self._close()
        if wanted == "stopped":
            self._server.shovels.pause()
            await self._server.disconnect()
        node.state = wanted

    async def _close(self) -> None:
        await self._server.close_listeners()
        await self._server.http.close()
        self._server.node.forget_listeners()

    async def _open(self) -> None:
        server, node = self._server, self._server.node
        was, node.state = node.state, "starting"
        try:
            await server.listen()
            server.http.open()
        except Exception as error:
            # Another program may have taken a port.
            await self._close()
            node.state, node.problem = was, str(error)
            logger.error("the node cannot take clients again: %s", error)
            return
        server.shovels.resume()
        node.state = "running"
