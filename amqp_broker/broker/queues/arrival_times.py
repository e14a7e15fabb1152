"""When the ready messages of a queue arrived. A message has no time of its own: the number of arrivals is sampled."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final

from amqp_broker.broker.queues.backlog_queue import BacklogQueue
from amqp_broker.broker.queues.stream import StreamQueue

if TYPE_CHECKING:
    from amqp_broker.broker.queues.queue import Queue

# Old samples are further apart: the age of a message is known to a twentieth. Messages of a day take at most 273,
# those of a month 376.
PART: Final = 20
# New samples after which old ones are thinned out.
THINNED_AFTER: Final = 60


class ArrivalTimes:
    """Samples of the time (ms) and the number of messages that had arrived, as long as some are ready."""

    __slots__ = ("_counts", "_thinned_at", "_times")

    def __init__(self) -> None:
        self._times: array[int] = array("q")
        self._counts: array[int] = array("q")
        # Number of samples from which on they are thinned out.
        self._thinned_at = THINNED_AFTER

    def __len__(self) -> int:
        """Number of samples."""
        return len(self._times)

    def keep(self, now: int, count: int, oldest: int) -> None:
        """Note that `count` messages have arrived, and that the ones before the number `oldest` are not ready."""
        settled = bisect_right(self._counts, oldest)
        del self._times[:settled], self._counts[:settled]
        if not self._counts or self._counts[-1] < count:
            self._times.append(now)
            self._counts.append(count)
        if len(self._times) >= self._thinned_at:
            self._thin(now)

    def _thin(self, now: int) -> None:
        times, kept = self._times, [len(self._times) - 1]
        while kept[-1]:
            newer = times[kept[-1]]
            first = bisect_left(times, newer - (now - newer) // PART, 0, kept[-1])
            kept.append(min(first, kept[-1] - 1))
        kept.reverse()
        self._times, self._counts = (
            array("q", [times[at] for at in kept]),
            array("q", [self._counts[at] for at in kept]),
        )
        self._thinned_at = len(kept) + THINNED_AFTER

    def of(self, number: int) -> int | None:
        """Return when a message was seen first, by its number; None if it came after the last sample."""
        place = bisect_right(self._counts, number)
        return self._times[place] if place < len(self._times) else None


def sample_arrivals(queue: Queue, now: int) -> None:
    """Note how many messages have arrived in a queue."""
    count, oldest = _arrivals_of(queue)
    if oldest is None:
        queue.statistics.arrivals = None
        return
    if queue.statistics.arrivals is None:
        queue.statistics.arrivals = ArrivalTimes()
    queue.statistics.arrivals.keep(now, count, oldest)


def oldest_arrived_ms(queue: Queue, now: int) -> int | None:
    """Return when the oldest ready message arrived, in ms of real time; None if there is none.

    To five seconds or a twentieth of its age. Messages that the broker found in its store count from its start, and one
    that was returned to the tail of a quorum queue counts from then.
    """
    _, oldest = _arrivals_of(queue)
    if oldest is None:
        return None
    arrivals = queue.statistics.arrivals
    arrived_ms = None if arrivals is None else arrivals.of(oldest)
    return now if arrived_ms is None else arrived_ms


def _arrivals_of(queue: Queue) -> tuple[int, int | None]:
    """Return the number of messages that have arrived, and the number of the oldest one that is ready."""
    if isinstance(queue, StreamQueue):
        return queue.log.next, queue.log.first if queue.log.count else None
    if isinstance(queue, BacklogQueue):
        return queue.backlog.arrival_count, queue.backlog.oldest_arrival()
    return 0, None
