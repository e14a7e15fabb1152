"""Long requests work in rotation: in each round of the loop one of them does a portion of its work."""

from __future__ import annotations

import asyncio
import gc
from collections import deque


class LongRequests:
    """Requests that wait for their next portion, in the order in which they began to wait."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Wait until the sockets have been served, and until those that waited before have worked.

        First, garbage is collected among the objects of the last portion. Python itself would wait for thousands more
        new objects than others were freed, and then walk over all those of a request, which takes tens of milliseconds.
        """
        gc.collect(1)
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._waiting.append(future)
        if len(self._waiting) == 1:
            loop.call_soon(self._wake, loop)
        await future

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        future = self._waiting.popleft()
        if not future.cancelled():
            future.set_result(None)
        if self._waiting:
            loop.call_soon(self._wake, loop)
