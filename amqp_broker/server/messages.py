"""The record of a server's messages for a test in another thread: to look, to wait, and to be told why it failed.

    messages = Messages(server, "/")
    messages.wait(Criteria(queue="orders"), 3, timeout_s=5)     # the first three events, or AssertionError
    messages.none(Criteria(event="return"), timeout_s=0.2)
    messages.idle(timeout_s=5)

The events that are returned never change. Nothing here may be called from the server's own thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from amqp_broker.broker.matching import Criteria, failure
from amqp_broker.broker.record import Event, MessageWait, Record
from amqp_broker.broker.waiting import IdleWait, Wait

if TYPE_CHECKING:
    from amqp_broker.server.server import Server

T = TypeVar("T")
W = TypeVar("W", bound=Wait)

# How long the server's thread may take to see to a question, beyond what it is told to wait.
ANSWER_S: Final = 60.0


class Messages:
    """What happens to messages in a vhost, which is recorded from now on if it was not yet.

    Raises DoesNotExist if there is no such vhost.
    """

    def __init__(self, server: Server, vhost: str = "/") -> None:
        self._server = server
        self._name = vhost
        self._ask(lambda: self._record)

    @property
    def _record(self) -> Record:
        records, vhost = self._server.broker.records, self._server.broker.vhost(self._name)
        return records.of(vhost) or records.start(vhost)

    def matching(self, criteria: Criteria, limit: int | None = None) -> list[Event]:
        """The events that match, oldest first. Raises InvalidParameter for criteria that cannot be."""
        return self._ask(lambda: self._checked(criteria).matching(criteria, limit))

    def count(self, criteria: Criteria) -> int:
        """How many events match."""
        return self._ask(lambda: self._checked(criteria).count(criteria))

    def timeline(self, number: int) -> list[Event]:
        """All that happened to a message, also as what it became when it died."""
        return self._ask(lambda: self._record.timeline(number))

    def clear(self) -> None:
        """Forget what was recorded."""
        self._ask(lambda: self._record.clear())

    def wait(self, criteria: Criteria, count: int = 1, *, timeout_s: float = 5.0) -> list[Event]:
        """The first `count` events that match, as soon as there are so many.

        Raises AssertionError after `timeout_s`: it tells what is there, and which messages came closest.
        """
        return self._await_messages(criteria, count, f"{count}", timeout_s)

    def none(self, criteria: Criteria, *, timeout_s: float = 0.0) -> None:
        """Wait that long whether anything matches. Raises AssertionError as soon as something does."""
        self._await_messages(criteria, 0, "none", timeout_s)

    def idle(self, queue: str | None = None, *, timeout_s: float = 5.0) -> None:
        """Wait until no message is ready or unacked in the vhost, or in one queue of it. Raises AssertionError."""
        wait = self._wait(lambda: IdleWait(self._server.broker.vhost(self._name), queue), timeout_s)
        if not wait.is_done:
            busy = self._ask(wait.busy)
            told = (f"queue {one.queue!r} has {one.ready} ready and {one.unacked} unacked" for one in busy)
            raise AssertionError("not idle: " + ", ".join(told))

    def _checked(self, criteria: Criteria) -> Record:
        criteria.check()
        return self._record

    def _await_messages(self, criteria: Criteria, count: int, wanted: str, timeout_s: float) -> list[Event]:
        wait = self._wait(
            lambda: MessageWait(self._checked(criteria), criteria, count, none=wanted == "none"), timeout_s
        )
        if not wait.is_met:
            raise AssertionError(self._ask(lambda: failure(wait.record, criteria, wanted)))
        return wait.found

    def _wait(self, begin: Callable[[], W], timeout_s: float) -> W:
        async def wait() -> W:
            waited, is_done = begin(), asyncio.Event()
            waited.begin(is_done.set)
            try:
                await asyncio.wait_for(is_done.wait(), timeout_s)
            except TimeoutError:
                pass  # whoever asked sees that it is not done
            finally:
                waited.end()
            return waited

        return asyncio.run_coroutine_threadsafe(wait(), self._server.loop).result(timeout_s + ANSWER_S)

    def _ask(self, question: Callable[[], T]) -> T:
        async def answer() -> T:
            return question()

        return asyncio.run_coroutine_threadsafe(answer(), self._server.loop).result(ANSWER_S)
