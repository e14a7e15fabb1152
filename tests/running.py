"""A server in this process, on a loop in a thread of its own: tests are its clients and can look inside.

    with RunningServer(handshake_timeout_ms=50) as running:
        Client(running.port).open()
        running.until(lambda server: len(server.broker.connections) == 1)

It reads no signals, and logs where the test does.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, TypeVar

from amqp_broker.config import Config
from amqp_broker.server.server import Server
from compat.waiting import wait_until

T = TypeVar("T")

TIMEOUT_S = 20.0


class RunningServer:
    """Starts on entering, stops (as SIGTERM does it) on leaving.

    It is on 127.0.0.1 and a free port, and has no listeners but AMQP's, unless told otherwise.
    """

    def __init__(
        self, new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop, **settings: Any
    ) -> None:
        plain = {"management": False, "control": False, "prometheus": False}
        self.config = Config(**{"host": "127.0.0.1", "port": 0, "ephemeral": True, **plain, **settings})
        self._new_loop = new_loop
        self._started: Future[Server] = Future()
        self._loop: asyncio.AbstractEventLoop
        self._stopping: asyncio.Event
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> RunningServer:
        self._thread.start()
        self.server = self._started.result(TIMEOUT_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def port(self) -> int:
        return self.server.ports["amqp"]

    def stop(self) -> None:
        """Stop the server; it may be stopped already."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(TIMEOUT_S)
            assert not self._thread.is_alive()

    def ask(self, question: Callable[[Server], T]) -> T:
        """What the question returns when it is put to the server in its own thread."""

        async def answer() -> T:
            return question(self.server)

        return asyncio.run_coroutine_threadsafe(answer(), self._loop).result(TIMEOUT_S)

    def until(self, condition: Callable[[Server], object]) -> None:
        """Return when the condition holds."""
        wait_until(lambda: self.ask(condition))

    def advance(self, duration_ms: int) -> None:
        """Move the broker's clock, and let happen what is due then."""

        def move(server: Server) -> None:
            server.clock.advance(duration_ms)
            server.broker.timers.run_due(server.clock.now())
            server.flush()

        self.ask(move)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=self._new_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        server = Server(self.config)
        try:
            await server.start()
        except BaseException as error:
            self._started.set_exception(error)
            return
        self._started.set_result(server)
        await self._stopping.wait()
        await server.stop()
