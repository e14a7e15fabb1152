"""When a batch of the journal is committed, and what follows.

A commit has a fixed price, two waits for the disk, whatever the number of its messages. So a batch that clients wait
for is taken when the sockets have nothing more for it. Two kinds of batches wait a little longer:

- The last commit has confirmed messages, and others wait already. Publishers are about to send the next ones, which
  join the batch. Otherwise a window of messages would stay split over two commits.
- All messages are with consumers, and consumers are faster than the disk: settled messages need no commit.

The wait ends when that happens, or after PATIENCE_S.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio

    from amqp_broker.broker.broker import Broker
    from amqp_broker.server.clock import Clock
    from amqp_broker.server.transport import Transport
    from amqp_broker.store.store import Store

# Delay of a commit that no client waits for (acks, publishes without confirms), or whose batch may shrink.
COMMIT_DELAY_S: Final = 0.005
# Longest wait for publishers and consumers; the timers of the loop have milliseconds.
PATIENCE_S: Final = 0.001
# After a wait that did not help, this many commits do not wait.
WAITS_SKIPPED: Final = 16
# Size of a batch from which its commit costs more than the waits for the disk.
LARGE_BATCH_BYTES: Final = 256 * 1024
# Octets waiting for the commit in flight at which publishers wait as well: a few milliseconds of work.
WAITING_BYTES_MAX: Final = 2 * 1024 * 1024
# Shortest time between two releases of memory by a working store.
RELEASE_MS: Final = 100
# Time until a failed commit is tried again.
STORE_RETRY_S: Final = 1.0


class Committing:
    """Commits the batches of one store. `check` runs at the end of each `flush`.

    `report(error)` is called after each commit; the error is None if it succeeded.
    """

    def __init__(
        self,
        broker: Broker,
        store: Store,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        flush: Callable[[], None],
        report: Callable[[Exception | None], None],
    ) -> None:
        self._broker = broker
        self._store = store
        self._journal = store.journal
        self._clock = clock
        self._loop = loop
        self._flush = flush
        self._report = report
        # The delay of a commit that no client waits for, or that may shrink. It is overdue if consumers are about to
        # settle its messages: then it begins when they have, or after another delay.
        self._delay: asyncio.TimerHandle | None = None
        self._is_overdue = False
        # The sockets are read once more before a commit.
        self._is_polling = self._is_polled = False
        # The wait for publishers or consumers, and whether the current batch has had one.
        self._wait: asyncio.TimerHandle | None = None
        self._is_patient = True
        # The number of commits that wait for nothing, because the last wait was in vain.
        self._waits_to_skip = 0
        # Clients wait for the commit in flight.
        self._is_awaited = False
        # The journal's count of octets when some messages were confirmed and others were left for the next commit: a
        # difference shows that publishers go on.
        self._confirmed_at_bytes = -1
        self._released_at_ms = 0
        # Transports that are not read until a commit has ended.
        self._paused: list[Transport] = []

    def check(self) -> None:
        """Begin a commit, or have it begin soon, if there is something to commit."""
        journal = self._journal
        if not journal.has_work or not self._store.can_commit:
            return
        if not self._broker.awaiting_commit:
            if self._is_overdue:
                self._commit()
            else:
                self._commit_later()
        elif journal.is_void:
            self._end_wait()
            journal.pass_batch()
            self._go_on(is_safe=True)
        elif journal.waiting_bytes >= LARGE_BATCH_BYTES:
            if journal.may_shrink:
                self._commit_later()
            else:
                self._commit()
        elif self._is_patient and not self._waits_to_skip and self._is_worth_waiting():
            if self._wait is None:
                self._wait = self._loop.call_later(PATIENCE_S, self._lose_patience)
        elif self._is_polled:
            self._commit()
        elif not self._is_polling:
            self._is_polling = True
            self._loop.call_soon(self._poll)

    def _is_worth_waiting(self) -> bool:
        journal = self._journal
        return journal.journal_bytes == self._confirmed_at_bytes or (journal.settles_fast and journal.is_with_consumers)

    def _lose_patience(self) -> None:
        self._wait = None
        self._is_patient = False
        self._waits_to_skip = WAITS_SKIPPED
        self.check()

    def _poll(self) -> None:
        # The loop reads its sockets before it calls this.
        self._loop.call_soon(self._commit_polled)

    def _commit_polled(self) -> None:
        self._is_polling, self._is_polled = False, True
        self.check()
        self._is_polled = False

    def _commit_later(self) -> None:
        if self._delay is None:
            self._delay = self._loop.call_later(COMMIT_DELAY_S, self._commit_delayed)

    def _commit_delayed(self) -> None:
        self._delay = None
        if not self._store.can_commit:
            return
        if not self._is_overdue and self._journal.settles_fast and self._journal.may_shrink:
            self._is_overdue = True
            self._commit_later()
        else:
            self._commit()

    def _commit(self) -> None:
        self._end_wait()
        if self._waits_to_skip:
            self._waits_to_skip -= 1
        self._is_overdue = False
        self._is_awaited = bool(self._broker.awaiting_commit)
        self._store.commit()

    def _end_wait(self) -> None:
        self._is_patient = True
        if self._wait is not None:
            self._wait.cancel()
            self._wait = None

    def on_done(self, error: Exception | None) -> None:
        """Release what waited for a commit, or if it failed, try again later."""
        self._broker.now = self._clock.now()
        self._report(error)
        journal = self._journal
        if error is not None:
            self._loop.call_later(STORE_RETRY_S, self._store.commit)
        has_split = self._is_awaited and journal.waiting_bytes > 0
        self._confirmed_at_bytes = journal.journal_bytes if has_split else -1
        real_now = self._clock.real_now()
        if real_now - self._released_at_ms >= RELEASE_MS:
            self._released_at_ms = real_now
            self._store.release()
        self._go_on(is_safe=error is None)

    def _go_on(self, *, is_safe: bool) -> None:
        """Answer clients whose changes are safe, and read publishers again that were paused."""
        if is_safe:
            self._broker.on_committed()
        self._flush()
        paused, self._paused = self._paused, []
        for transport in paused:
            transport.resume_reading()

    def pause(self, transport: Transport) -> bool:
        """Pause a publisher that outruns the disk until the next commit; return whether it is paused."""
        if self._store.is_failing or self._journal.waiting_bytes < WAITING_BYTES_MAX:
            return False
        transport.pause_reading()
        self._paused.append(transport)
        return True

    def stop(self) -> None:
        """Cancel the timers of the loop."""
        for timer in (self._delay, self._wait):
            if timer is not None:
                timer.cancel()
