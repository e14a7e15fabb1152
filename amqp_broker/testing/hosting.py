"""A server on a loop in a thread of its own, started, stopped and asked from any other thread."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from amqp_broker.config import Config
from amqp_broker.server.listening import CannotListen
from amqp_broker.server.server import Server

T = TypeVar("T")

# What takes longer is stuck.
TIMEOUT_S: Final = 20.0
# How long to wait for a port that was ours, and that a client may have been given meanwhile.
PORT_S: Final = 5.0
PORT_STEP_S: Final = 0.02


class Host:
    """Runs one server at a time. `server` is the one that runs, or ran last.

    `new_loop` makes the loop that each server runs on: asyncio's, uvloop's, or another of the same interface.
    """

    server: Server

    def __init__(self, new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self._new_loop = new_loop
        self._loop: asyncio.AbstractEventLoop
        self._ending: Future[bool]
        self._thread: threading.Thread | None = None

    def start(self, config: Config) -> None:
        """Return when clients are served. Raises what `Server` and `Server.start` raise."""
        deadline = time.monotonic() + PORT_S
        while True:
            started: Future[Server] = Future()
            self._ending = Future()
            # A daemon: who forgets to stop it must be able to end.
            self._thread = threading.Thread(
                target=self._run, args=(config, started, self._ending), name="amqp-broker", daemon=True
            )
            self._thread.start()
            try:
                self.server = started.result(TIMEOUT_S)
            except CannotListen as error:
                self._thread.join(TIMEOUT_S)
                is_ours = config.port and hasattr(self, "server") and error.error.errno == errno.EADDRINUSE
                if not is_ours or time.monotonic() > deadline:
                    raise
                time.sleep(PORT_STEP_S)
                continue
            except BaseException:
                self._thread.join(TIMEOUT_S)
                raise
            return

    def stop(self, kill: bool = False) -> None:
        """Stop the server as SIGTERM does it, or as SIGKILL; it may be stopped already."""
        thread = self._thread
        if thread is None or not thread.is_alive():
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed: somebody else was faster
            self._loop.call_soon_threadsafe(self._end, kill)
        thread.join(TIMEOUT_S)
        if thread.is_alive():
            raise RuntimeError(f"the broker has not stopped within {TIMEOUT_S:g} seconds")

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def ask(self, question: Callable[[Server], T]) -> T:
        """What the question returns when it is put to the server, between two reads of its sockets.

        Raises what the question raises, and RuntimeError where no server runs. What the question has changed is told
        to clients.
        """

        async def answer() -> T:
            return put(self.server, question)

        if threading.current_thread() is self._thread:
            return put(self.server, question)
        return self.run(answer())

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = TIMEOUT_S) -> T:
        """What a coroutine returns that runs in the server's loop. Who is interrupted meanwhile ends it."""
        if not self.is_running:
            work.close()
            raise RuntimeError("the broker is not running")
        running = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return running.result(timeout_s)
        finally:
            running.cancel()

    def _end(self, kill: bool) -> None:
        if not self._ending.done():
            self._ending.set_result(kill)

    def _run(self, config: Config, started: Future[Server], ending: Future[bool]) -> None:
        with asyncio.Runner(loop_factory=self._new_loop) as runner:
            runner.run(self._serve(config, started, ending))

    async def _serve(self, config: Config, started: Future[Server], ending: Future[bool]) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            server = Server(config)
            await server.start()
        except BaseException as error:
            started.set_exception(error)
            return
        started.set_result(server)
        if await asyncio.wrap_future(ending):
            await server.kill()
        else:
            await server.stop()


def put(server: Server, question: Callable[[Server], T]) -> T:
    """Put a question to a server, in its thread."""
    server.broker.now = server.clock.now()
    try:
        return question(server)
    finally:
        server.flush()
