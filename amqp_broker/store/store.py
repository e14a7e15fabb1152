"""The store of a broker: a folder, the journal on it, and the thread that commits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb

from amqp_broker.broker.broker import Broker
from amqp_broker.broker.operations import restoring
from amqp_broker.store import address_space
from amqp_broker.store.environment import DATA_FILE, Environment, StoreUnusable
from amqp_broker.store.flusher import Flusher
from amqp_broker.store.journal import LmdbJournal
from amqp_broker.store.page_cache import Mapping
from amqp_broker.store.writer import Writer

logger = logging.getLogger("amqp_broker.store")


class Store:
    """An open store. If `is_lazy`, commits are flushed to the disk some time later.

    Raise StoreError if the folder cannot be used.
    """

    def __init__(self, folder: Path, *, is_lazy: bool = False) -> None:
        address_space.report()
        self.environment = Environment(folder, is_lazy=is_lazy)
        self._mapping = Mapping(folder / DATA_FILE)
        self.journal = LmdbJournal(self.environment)
        self._writer: Writer | None = None
        self._flusher = None if self.environment.checkpoint is None else Flusher(self.environment.checkpoint.sync)
        # Set while the last commit has failed; `can_commit` is False then.
        self.is_failing = False

    def recover(self, broker: Broker) -> bool:
        """Declare the objects of the store in an empty broker; return whether there were any.

        Raise StoreError, and release the folder, if that fails for any reason.
        """
        self.journal.is_restoring = True
        try:
            has_any = restoring.restore(broker, self.journal.definitions_of)
            self.journal.discard_strays(ranges_of(broker))
            return has_any
        except Exception as error:
            logger.debug("the store cannot be read", exc_info=True)
            self.environment.close()
            raise StoreUnusable(
                f"'{self.environment.folder}' cannot be read ({error or type(error).__name__}); "
                "run `store verify` to list its problems, and restore a backup"
            ) from None
        finally:
            self.journal.is_restoring = False

    def start(self, post: Callable[..., object], on_done: Callable[[Exception | None], None]) -> None:
        """Commit from now on; for `post` and `on_done` see `Writer`."""
        self._writer = Writer(self.environment, self.journal, post, on_done)
        if self._flusher is not None:
            self._flusher.start()

    @property
    def can_commit(self) -> bool:
        """True if there is something to commit, and the last commit has succeeded."""
        return not self.is_failing and self._writer is not None and self._writer.is_idle and self.journal.has_work

    def release(self) -> None:
        """Release pages that were read; call this every tenth of a second while the store works."""
        self._mapping.release()

    def make_room(self, error: Exception) -> bool:
        """Enlarge the map if a commit failed because it is full (deleting needs space); return whether it was."""
        if not isinstance(error, lmdb.MapFullError):
            return False
        try:
            self.environment.enlarge()
        except OSError as failed:
            logger.error("the store cannot be flushed to the disk: %s", failed)
            return True
        self._mapping = Mapping(self.environment.folder / DATA_FILE)
        return True

    def commit(self) -> None:
        """Commit the collected batch, if the last commit has ended."""
        if self._writer is not None and self._writer.is_idle and self.journal.has_work:
            self._writer.commit()

    def halt(self) -> None:
        """Stop committing; changes from now on are lost."""
        if self._writer is not None:
            self._writer.stop()
            self._writer = None
        if self._flusher is not None:
            self._flusher.stop()

    def abandon(self) -> None:
        """Release the folder without committing the last changes, as a killed process does."""
        self.halt()
        self.environment.close(is_orderly=False)

    def close(self) -> None:
        """Commit the last changes and release the folder."""
        self.halt()
        self.journal.take_back()
        self.journal.open_works = 0
        if self.journal.has_work:
            try:
                with self.environment.lmdb.begin(write=True) as txn:
                    for _ in self.journal.write(txn):
                        pass
                self.journal.on_committed()
            except lmdb.Error as error:
                logger.error("the last changes could not be written: %s", error)
            except Exception:
                logger.exception("the last changes could not be written")
        self.environment.close()


def ranges_of(broker: Broker) -> Iterator[int]:
    """Yield the ranges of the journal that belong to an object of the broker."""
    for vhost in broker.vhosts.values():
        for queue in vhost.queues.values():
            yield from queue.ranges
        for exchange in vhost.exchanges.values():
            if exchange.range_id is not None:
                yield exchange.range_id
