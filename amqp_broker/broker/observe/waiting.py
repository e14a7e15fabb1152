"""Conditions to wait for, without a clock or a thread: the caller waits and has the timeout.

wait = IdleWait(vhost)
wait.begin(lambda: ...)     # called once, when the condition holds; at once if it already does
wait.end()                  # after success or timeout
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.vhost import VHost


class Wait:
    """A condition; `is_done` is set when it holds."""

    def __init__(self) -> None:
        self.is_done = False
        self._on_done: Callable[[], None] | None = None

    def begin(self, on_done: Callable[[], None]) -> None:
        """Call `on_done()` when the condition holds."""
        if self.is_done:
            on_done()
        else:
            self._on_done = on_done

    def end(self) -> None:
        """Stop waiting."""
        self._on_done = None

    def finish(self) -> None:
        """Note that the condition holds."""
        self.is_done = True
        on_done, self._on_done = self._on_done, None
        if on_done is not None:
            on_done()


class Busy(NamedTuple):
    """A queue with messages."""

    queue: str
    ready: int
    unacked: int


class QueueWait(Wait, ABC):
    """A condition of the queues of a vhost, which the server checks after each change."""

    def __init__(self, vhost: VHost) -> None:
        super().__init__()
        self.vhost = vhost

    def begin(self, on_done: Callable[[], None]) -> None:
        super().begin(on_done)
        if not self.is_done:
            self.vhost.broker.queue_waits.append(self)

    def end(self) -> None:
        super().end()
        if self in self.vhost.broker.queue_waits:
            self.vhost.broker.queue_waits.remove(self)

    @abstractmethod
    def check(self) -> None:
        """Finish if the condition holds."""


class DepthWait(QueueWait):
    """Done when a queue has exactly `count` ready messages; it may be declared meanwhile."""

    def __init__(self, vhost: VHost, queue: str, count: int) -> None:
        super().__init__(vhost)
        self.queue = queue
        self.count = count
        self.check()

    def check(self) -> None:
        queue = self.vhost.queues.get(self.queue)
        if not self.is_done and queue is not None and queue.ready_count == self.count:
            self.finish()


class IdleWait(QueueWait):
    """Done when no message is ready or unacked in a vhost, or in one of its queues.

    Streams are ignored, because their messages are never removed, and so are messages in delayed exchanges.
    """

    def __init__(self, vhost: VHost, queue: str | None = None) -> None:
        super().__init__(vhost)
        self.queue = queue
        # A queue that was busy at the last check: as long as it is, the others need no look.
        self._busy: Queue | None = None
        self.check()

    def check(self) -> None:
        if self.is_done or self._is_still_busy():
            return
        self._busy = next(filter(_is_busy, self._queues()), None)
        if self._busy is None:
            self.finish()

    def _is_still_busy(self) -> bool:
        queue = self._busy
        return queue is not None and self.vhost.queues.get(queue.name) is queue and _is_busy(queue)

    def busy(self) -> list[Busy]:
        """Return the queues that are not idle."""
        return [
            Busy(queue.name, queue.message_count - queue.unacked_count, queue.unacked_count)
            for queue in self._queues()
            if _is_busy(queue)
        ]

    def _queues(self) -> list[Queue]:
        queues = self.vhost.queues
        if self.queue is None:
            return list(queues.values())
        return [queues[self.queue]] if self.queue in queues else []


def _is_busy(queue: Queue) -> bool:
    return queue.type != "stream" and bool(queue.message_count)
