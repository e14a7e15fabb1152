"""Deadlines of unsettled deliveries, where a queue or consumer has set a timeout."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Container
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.amqp import fields
from amqp_broker.broker.queues.quorum import QuorumQueue
from amqp_broker.broker.scheduling.portions import Steps, finished

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.scheduling.timers import Timer, Timers
    from amqp_broker.session.channel.channel import Channel

# With fewer deadlines, those of settled deliveries are not swept.
SWEEP_MIN: Final = 64
# Deadlines that are looked at in one step.
CHECKED_AT_ONCE: Final = 16


class DeliveryDeadlines:
    """The deadlines of one channel, and the timer for the first; `on_due` gets the tags that are still unacked then.

    `uncommitted` returns the tags that a transaction has settled: a rollback makes them unacked again. `work` does the
    steps in which it looks for what is due.
    """

    __slots__ = ("_aside", "_heap", "_on_due", "_sweep_at", "_timer", "_timers", "_unacked", "_uncommitted", "_work")

    def __init__(
        self,
        timers: Timers,
        unacked: Container[int],
        on_due: Callable[[list[int]], None],
        uncommitted: Callable[[], Collection[int]],
        work: Callable[[Steps[None]], object] = finished,
    ) -> None:
        self._timers = timers
        self._unacked: Container[int] = unacked
        self._on_due = on_due
        self._uncommitted = uncommitted
        self._work: Callable[[Steps[None]], object] = work
        self._timer: Timer | None = None
        # Deadline (ms since the epoch) and delivery tag.
        self._heap: list[tuple[int, int]] = []
        # Those of uncommitted settlements that the timer has met.
        self._aside: list[tuple[int, int]] = []
        self._sweep_at = SWEEP_MIN

    def __len__(self) -> int:
        return len(self._heap) + len(self._aside)

    def add(self, tag: int, deadline_ms: int) -> None:
        """Set the deadline of a delivery."""
        if len(self) >= self._sweep_at:
            uncommitted = set(self._uncommitted())
            self._heap = [one for one in self._heap if one[1] in self._unacked or one[1] in uncommitted]
            heapq.heapify(self._heap)
            self._aside = [one for one in self._aside if one[1] in uncommitted]
            self._sweep_at = max(SWEEP_MIN, 2 * len(self))
        heapq.heappush(self._heap, (deadline_ms, tag))
        self._wake()

    def items(self) -> list[tuple[int, int]]:
        """Return deadline (ms since the epoch) and tag of each delivery, also of settled ones, in no order."""
        return self._heap.copy()

    def _wake(self) -> None:
        timer, heap = self._timer, self._heap
        if timer is not None and timer.callback is not None:
            if heap and timer.deadline_ms <= heap[0][0]:
                return
            timer.cancel()
        if heap:
            self._timer = self._timers.at(heap[0][0], self._check)

    def _check(self, now: int) -> None:
        self._work(self._checking(now))

    def _checking(self, now: int) -> Steps[None]:
        due: list[int] = []
        settled: list[tuple[int, int]] = []
        while (heap := self._heap) and (heap[0][0] <= now or heap[0][1] not in self._unacked):
            one = heapq.heappop(heap)
            if one[1] in self._unacked:
                due.append(one[1])
            else:
                settled.append(one)
            if (len(due) + len(settled)) % CHECKED_AT_ONCE == 0:
                yield
        if settled and (uncommitted := set(self._uncommitted())):
            self._aside += [one for one in settled if one[1] in uncommitted]
        self._wake()
        due = [tag for tag in due if tag in self._unacked]
        if due:
            self._on_due(due)

    def resume(self) -> None:
        """Watch deliveries again whose settlements were rolled back."""
        for one in self._aside:
            heapq.heappush(self._heap, one)
        self._aside.clear()
        self._wake()

    def stop(self) -> None:
        """Cancel the timer; the channel is closed."""
        self._heap.clear()
        self._aside.clear()
        if self._timer is not None:
            self._timer.cancel()


def own_timeout_ms(broker: Broker, queue: Queue, arguments: fields.Table) -> int | None:
    """Return the timeout that a consumer or its quorum queue has set; None before RabbitMQ 4.3 and in other queues."""
    if not broker.profile.times_out_quorum_only or not isinstance(queue, QuorumQueue):
        return None
    given: Any = arguments.get("x-consumer-timeout")
    # JSON has the number, not its type in AMQP.
    return int(given) if fields.is_integer(given) else queue.settings.consumer_timeout_ms


def set_deadline(channel: Channel, tag: int, timeout_ms: int) -> None:
    """Have a delivery time out, unless it is settled before."""
    session, broker = channel.session, channel.session.broker
    timeouts = session.ack_timeouts
    assert timeouts is not None, "a session watches its deliveries from its opening on"
    unacked = channel.unacked
    if unacked.deadlines is None:
        on_due = partial(timeouts.time_out, channel)
        unacked.deadlines = DeliveryDeadlines(
            broker.timers, unacked, on_due, partial(_uncommitted, channel), broker.do_in_portions
        )
    # Deliveries during an advance count as made at its end.
    unacked.deadlines.add(tag, (broker.advancing_to_ms or broker.now) + timeout_ms)


def _uncommitted(channel: Channel) -> list[int]:
    """Return the tags that the channel's transaction has settled."""
    return [] if channel.transaction is None else channel.transaction.tags()
