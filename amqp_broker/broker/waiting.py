"""Waiting for something to become true, without a clock or a thread: the shell waits, and knows when to give up.

wait = IdleWait(vhost)
wait.begin(lambda: ...)     # called once, when it is done; at once if it already is
wait.end()                  # whoever waits has what it wanted, or has given up
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from amqp_broker.broker.queue import Queue
    from amqp_broker.broker.vhost import VHost


class Wait:
    """`is_done` when there is nothing more to wait for."""

    def __init__(self) -> None:
        self.is_done = False
        self._on_done: Callable[[], None] | None = None

    def begin(self, on_done: Callable[[], None]) -> None:
        """Have `on_done()` called when it is done."""
        if self.is_done:
            on_done()
        else:
            self._on_done = on_done

    def end(self) -> None:
        """Nobody waits any more."""
        self._on_done = None

    def finish(self) -> None:
        """It is done."""
        self.is_done = True
        on_done, self._on_done = self._on_done, None
        if on_done is not None:
            on_done()


class Busy(NamedTuple):
    """A queue that has messages."""

    queue: str
    ready: int
    unacked: int


class IdleWait(Wait):
    """Done when no message is ready or unacked in a vhost, or in one queue of it.

    Streams do not count: nothing takes messages out of them. Nor does what an exchange delays, which waits for time.
    """

    def __init__(self, vhost: VHost, queue: str | None = None) -> None:
        super().__init__()
        self.vhost = vhost
        self.queue = queue
        self.check()

    def begin(self, on_done: Callable[[], None]) -> None:
        super().begin(on_done)
        if not self.is_done:
            self.vhost.broker.idle_waits.append(self)

    def end(self) -> None:
        super().end()
        if self in self.vhost.broker.idle_waits:
            self.vhost.broker.idle_waits.remove(self)

    def check(self) -> None:
        """Look again; the shell does so after whatever may have changed something."""
        if not self.is_done and not self.busy():
            self.finish()

    def busy(self) -> list[Busy]:
        """The queues that keep it from being done."""
        return [Busy(queue.name, queue.ready_count, queue.unacked_count) for queue in self._queues() if _is_busy(queue)]

    def _queues(self) -> list[Queue]:
        queues = self.vhost.queues
        if self.queue is None:
            return list(queues.values())
        return [queues[self.queue]] if self.queue in queues else []


def _is_busy(queue: Queue) -> bool:
    return queue.type != "stream" and bool(queue.ready_count or queue.unacked_count)
