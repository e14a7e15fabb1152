"""A server whose event loop runs in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from amqp_broker.server.listening import CannotListen
from amqp_broker.server.server import Server
from amqp_broker.settings.settings import Settings

T = TypeVar("T")

# Limit for starting, stopping and answering.
TIMEOUT_S: Final = 20.0
# Time to wait for the port of the last run, which the system may have lent to a client.
PORT_S: Final = 5.0
PORT_STEP_S: Final = 0.02


class ServerThread:
    """Runs one server at a time. `server` is the running one, or the last one.

    `new_loop` creates the event loop of each server, for example asyncio's or uvloop's.
    """

    server: Server

    def __init__(self, new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self._new_loop = new_loop
        self._loop: asyncio.AbstractEventLoop
        self._ending: Future[bool]
        self._thread: threading.Thread | None = None

    def start(self, settings: Settings) -> None:
        """Start a server, and return when it serves clients. Raise the errors of `Server` and `Server.start`."""
        deadline = time.monotonic() + PORT_S
        while True:
            started: Future[Server] = Future()
            self._ending = Future()
            # A daemon thread lets a program exit that does not stop its server.
            self._thread = threading.Thread(
                target=self._run, args=(settings, started, self._ending), name="amqp-broker", daemon=True
            )
            self._thread.start()
            try:
                self.server = started.result(TIMEOUT_S)
            except CannotListen as error:
                self._thread.join(TIMEOUT_S)
                is_own_port = settings.port and hasattr(self, "server") and error.error.errno == errno.EADDRINUSE
                if not is_own_port or time.monotonic() > deadline:
                    raise
                time.sleep(PORT_STEP_S)
                continue
            except BaseException:
                self._thread.join(TIMEOUT_S)
                raise
            return

    def stop(self, kill: bool = False) -> None:
        """Stop the server, gracefully or as SIGKILL would. A stopped server is left alone."""
        thread = self._thread
        if thread is None or not thread.is_alive():
            return
        with contextlib.suppress(RuntimeError):  # the loop is already closed
            self._loop.call_soon_threadsafe(self._end, kill)
        thread.join(TIMEOUT_S)
        if thread.is_alive():
            raise RuntimeError(f"the broker has not stopped within {TIMEOUT_S:g} seconds")

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def ask(self, question: Callable[[Server], T]) -> T:
        """Call `question(server)` in the thread of the server, between two reads of its sockets; return its result.

        Clients receive whatever results from the changes it makes. Raise the errors of the question, and RuntimeError
        if no server runs.
        """

        async def answer() -> T:
            return call(self.server, question)

        if threading.current_thread() is self._thread:
            return call(self.server, question)
        return self.run(answer())

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = TIMEOUT_S) -> T:
        """Run a coroutine in the event loop of the server and return its result. An interrupt cancels it."""
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

    def _run(self, settings: Settings, started: Future[Server], ending: Future[bool]) -> None:
        with asyncio.Runner(loop_factory=self._new_loop) as runner:
            runner.run(self._serve(settings, started, ending))

    async def _serve(self, settings: Settings, started: Future[Server], ending: Future[bool]) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            server = Server(settings)
            await server.start()
        except BaseException as error:
            started.set_exception(error)
            return
        started.set_result(server)
        if await asyncio.wrap_future(ending):
            await server.kill()
        else:
            await server.stop()


def call(server: Server, question: Callable[[Server], T]) -> T:
    """Call `question(server)` in the thread of the server and flush the results."""
    server.broker.now = server.clock.now()
    try:
        return question(server)
    finally:
        server.flush()
