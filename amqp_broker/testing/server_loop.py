"""Waits of a test for its broker, which runs in a thread of its own or in the event loop of the test."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from amqp_broker.broker.observe.waiting import Wait
    from amqp_broker.server.server import Server

T = TypeVar("T")

# Time that the server may take to answer, beyond the timeout of a wait.
ANSWER_S: Final = 60.0


def blocked(server: Server, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
    """Block the thread until the server has done some work. Raise RuntimeError in the server's own loop."""
    if is_in_loop(server):
        work.close()
        raise RuntimeError(
            "the broker runs in the event loop of the caller, which must await: use the method that ends with _async"
        )
    return asyncio.run_coroutine_threadsafe(work, server.loop).result(timeout_s + ANSWER_S)


async def awaited(server: Server, work: Coroutine[Any, Any, T]) -> T:
    """Do `blocked` without blocking the event loop of the caller, which may be the server's own."""
    if is_in_loop(server):
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, server.loop))


def is_in_loop(server: Server) -> bool:
    """Return whether the caller runs in the event loop of the server."""
    try:
        return asyncio.get_running_loop() is server.loop
    except RuntimeError:
        return False


async def done(wait: Wait, timeout_s: float) -> None:
    """Wait in the loop of the server until a condition holds, or for `timeout_s`; the caller checks the condition."""
    is_done = asyncio.Event()
    wait.begin(is_done.set)
    try:
        await asyncio.wait_for(is_done.wait(), timeout_s)
    except TimeoutError:
        pass
    finally:
        wait.end()
