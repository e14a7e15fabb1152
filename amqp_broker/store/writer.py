"""The committing thread, which holds LMDB's write lock and waits for the disk."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

import lmdb

from amqp_broker.broker.durability.journal import Batch
from amqp_broker.store.environment import Environment
from amqp_broker.store.journal import LmdbJournal

logger = logging.getLogger("amqp_broker.store")

# A commit that takes longer is logged: clients notice that confirms are late.
SLOW_COMMIT_S: Final = 1.0

# Changes of a batch that are freed without a pause.
RELEASED_MAX: Final = 500


class Writer:
    """Runs one transaction at a time. The thread begins and commits it; the event loop fills it from `commit` on.

    A large batch is filled in slices, so that the loop serves its clients in between. `post(call, *arguments)` runs a
    call on the loop's thread. `on_done(error)` is called there after each commit; the error is None if it succeeded. A
    failed batch is written again with the next. The thread survives all errors, also those that LMDB does not declare.
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
        # True commits the open transaction, False aborts it, None ends the thread.
        self._jobs: queue.SimpleQueue[bool | None] = queue.SimpleQueue()
        self._txn: lmdb.Transaction | None = None
        self._error: Exception | None = None
        self.is_idle = True
        self._is_stopped = False
        self._committer = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._committer.start()

    def commit(self) -> None:
        """Write the collected batch, after a transaction is begun if necessary. Call this only while `is_idle`."""
        self.is_idle = False
        if self._txn is None:
            self._jobs.put(False)
            return
        self._fill(self._journal.write(self._txn))

    def _fill(self, slices: Iterator[None]) -> None:
        """Put the next slice into the transaction; after the last one have it committed."""
        if self._is_stopped:
            return
        try:
            for _ in slices:
                with contextlib.suppress(RuntimeError):  # the loop is closed: the rest is not needed
                    self._post(self._fill, slices)
                return
        except lmdb.Error as error:
            self._error = error
        except Exception as error:
            logger.exception("a batch cannot be written")
            self._error = error
        self._jobs.put(self._error is None)

    def stop(self) -> None:
        """End the thread without committing an open transaction."""
        self._is_stopped = True
        self._jobs.put(None)
        self._committer.join()

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
                    # The map cannot grow during a transaction.
                    if not isinstance(error, lmdb.MapFullError):
                        self._txn = self._environment.lmdb.begin(write=True)
                except Exception as begin_error:
                    # A commit that succeeded stays so; the next one reports this error.
                    error = begin_error if not was_open else error
            took_s = time.monotonic() - began_s
            if took_s >= SLOW_COMMIT_S:
                logger.warning("the disk took %.1f s for a commit; confirms of what is persistent waited", took_s)
            try:
                self._post(self._finished, was_open, error)
            except RuntimeError:
                break  # the loop is closed: the answer is not needed
        if self._txn is not None:
            self._txn.abort()

    def _end(self, txn: lmdb.Transaction, is_written: bool) -> None:
        try:
            if is_written:
                checkpoint = self._environment.checkpoint
                if checkpoint is not None and checkpoint.error is not None:
                    raise checkpoint.error
                txn.commit()
        finally:
            # Aborting an ended transaction does nothing. In any case the write lock must be released.
            txn.abort()

    def _finished(self, was_open: bool, error: Exception | None) -> None:
        """Handle the end of a transaction, on the loop's thread; the next one is open if it could be begun."""
        if self._is_stopped:
            return
        self.is_idle = True
        if self._txn is None and not isinstance(error, lmdb.MapFullError):
            self._reopen()
        if was_open and error is None:
            self._release(self._journal.on_committed())
        elif was_open:
            self._journal.take_back()
        elif error is None:
            # This was opened for a batch that is not written yet, so there is nothing to report.
            self.commit()
            return
        self._on_done(error)

    def _release(self, batch: Batch) -> None:
        """Free the changes of a batch in slices."""
        for _ in range(min(len(batch.definitions), RELEASED_MAX)):
            batch.definitions.popitem()
        del batch.buffers[-RELEASED_MAX:]
        if batch.definitions or batch.buffers:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._post(self._release, batch)

    def _reopen(self) -> None:
        """Open the files again: an environment that can begin no transaction may be unusable (MDB_PANIC)."""
        try:
            self._journal.reopen()
        except Exception as error:
            logger.error("the files of the store cannot be opened again: %s", error)
