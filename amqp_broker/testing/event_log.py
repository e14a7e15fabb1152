"""The event log of a vhost, for a test in another thread than the server's.

    log = EmbeddedEventLog(broker, "/")
    log.wait(Criteria(queue="orders"), 3, timeout_s=5)     # the first three events, or AssertionError
    log.none(Criteria(event="return"), timeout_s=0.2)
    log.idle(timeout_s=5)
    await log.wait_async(Criteria(queue="orders"))         # the same for asyncio: clients go on meanwhile

Returned events never change. After a restart of the broker the log is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from amqp_broker.amqp.errors import NotFound
from amqp_broker.broker.admin.similar_names import did_you_mean
from amqp_broker.broker.observe.event_log import Event, EventLog, MessageWait
from amqp_broker.broker.observe.matching import Criteria, failure
from amqp_broker.broker.observe.waiting import IdleWait
from amqp_broker.testing.server_loop import awaited, blocked, done, is_in_loop

if TYPE_CHECKING:
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.vhost import VHost
    from amqp_broker.server.server import Server
    from amqp_broker.testing.embedded_broker import EmbeddedBroker

T = TypeVar("T")


class EmbeddedEventLog:
    """The event log of a vhost, which the constructor switches on.

    Raise DoesNotExist if the vhost does not exist.
    """

    def __init__(self, broker: EmbeddedBroker, vhost: str = "/") -> None:
        self._broker = broker
        self._name = vhost
        self._ask(lambda: self._log)

    @property
    def _server(self) -> Server:
        """The running server; a restart brings another one."""
        return self._broker.server

    def __repr__(self) -> str:
        count = self._ask(lambda: len(self._log.events)) if self._server.loop.is_running() else "?"
        return f"<EmbeddedEventLog of vhost {self._name!r}, {count} events>"

    @property
    def _log(self) -> EventLog:
        logs, vhost = self._server.broker.event_logs, self._server.broker.vhost(self._name)
        return logs.of(vhost) or logs.start(vhost)

    def matching(self, criteria: Criteria, limit: int | None = None) -> list[Event]:
        """Return the events that match, oldest first. Raise InvalidParameter for invalid criteria."""
        return self._ask(lambda: self._checked(criteria).matching(criteria, limit))

    def count(self, criteria: Criteria) -> int:
        """Return the number of events that match."""
        return self._ask(lambda: self._checked(criteria).count(criteria))

    def timeline(self, number: int) -> list[Event]:
        """Return all events of a message, those of its dead letters included."""
        return self._ask(lambda: self._log.timeline(number))

    def clear(self) -> None:
        """Discard the events."""
        self._ask(lambda: self._log.clear())

    def wait(self, criteria: Criteria, count: int = 1, *, timeout_s: float = 5.0) -> list[Event]:
        """Return the first `count` events that match, as soon as they have happened.

        Raise AssertionError after `timeout_s`, with the events that came closest.
        """
        return self._blocked(self._messages(criteria, count, f"{count}", timeout_s), timeout_s)

    async def wait_async(self, criteria: Criteria, count: int = 1, *, timeout_s: float = 5.0) -> list[Event]:
        """Do `wait` without blocking the event loop of the caller."""
        return await awaited(self._server, self._messages(criteria, count, f"{count}", timeout_s))

    def none(self, criteria: Criteria, *, timeout_s: float = 0.0) -> None:
        """Wait for `timeout_s`. Raise AssertionError as soon as an event matches."""
        self._blocked(self._messages(criteria, 0, "none", timeout_s), timeout_s)

    async def none_async(self, criteria: Criteria, *, timeout_s: float = 0.0) -> None:
        """Do `none` without blocking the event loop of the caller."""
        await awaited(self._server, self._messages(criteria, 0, "none", timeout_s))

    def idle(self, queue: str | None = None, *, timeout_s: float = 5.0) -> None:
        """Wait until no message is ready or unacked in the vhost or in one queue.

        Raise AssertionError if some are, and NotFound for a missing queue.
        """
        self._blocked(self._idle(queue, timeout_s), timeout_s)

    async def idle_async(self, queue: str | None = None, *, timeout_s: float = 5.0) -> None:
        """Do `idle` without blocking the event loop of the caller."""
        await awaited(self._server, self._idle(queue, timeout_s))

    def _checked(self, criteria: Criteria) -> EventLog:
        criteria.check()
        return self._log

    # In the loop of the server

    async def _messages(self, criteria: Criteria, count: int, wanted: str, timeout_s: float) -> list[Event]:
        wait = MessageWait(self._checked(criteria), criteria, count, none=wanted == "none")
        await done(wait, timeout_s)
        if not wait.is_met:
            raise AssertionError(failure(wait.log, criteria, wanted))
        return wait.found

    async def _idle(self, queue: str | None, timeout_s: float) -> None:
        vhost = self._server.broker.vhost(self._name)
        if queue is not None:
            queue_in(vhost, queue)
        wait = IdleWait(vhost, queue)
        await done(wait, timeout_s)
        if not wait.is_done:
            busy = (f"queue {one.queue!r} has {one.ready} ready and {one.unacked} unacked" for one in wait.busy())
            raise AssertionError("not idle: " + ", ".join(busy))

    # From other threads

    def _blocked(self, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        return blocked(self._server, work, timeout_s)

    def _ask(self, question: Callable[[], T]) -> T:
        async def answer() -> T:
            return question()

        return question() if is_in_loop(self._server) else self._blocked(answer(), 0)


def queue_in(vhost: VHost, name: str) -> Queue:
    """Return a queue, exclusive ones included. Raise NotFound."""
    if name in vhost.queues:
        return vhost.queues[name]
    raise NotFound(f"no queue '{name}' in {vhost}{did_you_mean(name, vhost.queues, ': ')}")
