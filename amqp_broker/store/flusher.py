"""The thread that flushes lazy commits to the disk."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

# Time between two flushes, which a power loss may cost.
FLUSH_PERIOD_S: Final = 0.2

logger = logging.getLogger("amqp_broker.store")


class Flusher:
    """Calls `sync` again and again until it is stopped. While that fails, no commit succeeds (`store/writer.py`)."""

    def __init__(self, sync: Callable[[], object]) -> None:
        self._sync = sync
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="store-flusher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread, after a flush that is under way."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(FLUSH_PERIOD_S):
            try:
                self._sync()
            except Exception as error:
                logger.error("the store cannot be flushed to the disk: %s", error)
