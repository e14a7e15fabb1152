"""The thread that commits: it holds LMDB's write lock, and waits for the disk so that the event loop need not."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

import lmdb

from amqp_broker.store.environment import Environment
from amqp_broker.store.journal import LmdbJournal

logger = logging.getLogger("amqp_broker.store")

# A commit that takes longer is told of: clients see it as confirms that do not come.
SLOW_COMMIT_S: Final = 1.0


class Writer:
    """One transaction at a time: begun by the thread, filled by the loop from `commit` on, committed by the thread.

    A large batch is filled in a slice at a time, so that the loop serves its clients between two of them.

    `post(call, *arguments)` has a call made on the loop's thread, where `on_done(error)` is told how each commit
    ended; error is None for one that succeeded. What failed is written again with the next one. Nothing but an end of
    the process ends this: an error that LMDB has not thought of is one, too.
    """

    def __init__(
        self,
        environment: Environment,
        journal: LmdbJournal,
        post: Callable[..., object],
        on_done: Callable[[Exception | None], None],
    ) -> None:
        self._environment = environment
        self._journal = journal
        self._post = post
        self._on_done = on_done
        # What becomes of the open transaction: True is committed, False is not; None ends the thread.
        self._jobs: queue.SimpleQueue[bool | None] = queue.SimpleQueue()
        self._txn: lmdb.Transaction | None = None
        self._error: Exception | None = None
        self.is_idle = True
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def commit(self) -> None:
        """Write the collected batch, or get ready for that first. Only while `is_idle`."""
        self.is_idle = False
        if self._txn is None:
            self._jobs.put(False)
            return
        self._fill(self._journal.write(self._txn))

    def _fill(self, slices: Iterator[None]) -> None:
        """Put the next slice into the transaction; it is complete after the last."""
        if self._is_stopped:
            return
        try:
            for _ in slices:
                with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits for the rest
                    self._post(self._fill, slices)
                return
        except lmdb.Error as error:
            self._error = error
        except Exception as error:
            logger.exception("a batch cannot be written")
            self._error = error
        self._jobs.put(self._error is None)

    def stop(self) -> None:
        """End the thread; a transaction that is open is not committed."""
        self._is_stopped = True
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (is_written := self._jobs.get()) is not None:
            was_open, error = self._txn is not None, self._error
            began_s = time.monotonic()
            with self._environment.writing:
                try:
                    if self._txn is not None:
                        self._end(self._txn, is_written)
                except Exception as commit_error:
                    error = commit_error
                self._txn, self._error = None, None
                try:
                    # The map cannot become larger while there is a transaction.
                    if not isinstance(error, lmdb.MapFullError):
                        self._txn = self._environment.lmdb.begin(write=True)
                except Exception as begin_error:
                    # What was committed stays so; the next commit tells what keeps it from being one.
                    error = begin_error if not was_open else error
            took_s = time.monotonic() - began_s
            if took_s >= SLOW_COMMIT_S:
                logger.warning("the disk took %.1f s for a commit; confirms of what is persistent waited", took_s)
            try:
                self._post(self._finished, was_open, error)
            except RuntimeError:
                break  # the loop is closed, and nobody waits for the answer
        if self._txn is not None:
            self._txn.abort()

    def _end(self, txn: lmdb.Transaction, is_written: bool) -> None:
        try:
            if is_written:
                txn.commit()
        finally:
            # One that is committed, or failed to be, has ended; but whatever happened it must not keep the write lock.
            txn.abort()

    def _finished(self, was_open: bool, error: Exception | None) -> None:
        """On the loop's thread: a transaction has ended, and the next is open unless it could not be begun."""
        if self._is_stopped:
            return
        self.is_idle = True
        if self._txn is None and not isinstance(error, lmdb.MapFullError):
            self._reopen()
        if was_open and error is None:
            self._journal.on_committed()
        elif was_open:
            self._journal.take_back()
        elif error is None:
            # The batch that it was opened for is still to be written, so there is nothing to tell yet.
            self.commit()
            return
        self._on_done(error)

    def _reopen(self) -> None:
        """An environment in which nothing can be begun may be of no use any more (MDB_PANIC): open the files anew."""
        try:
            self._journal.reopen()
        except Exception as error:
            logger.error("the files of the store cannot be opened anew: %s", error)
