"""Seam: what must survive the process. The broker tells a journal, and never asks it anything while it runs.

Records are numbered as they are told; a journal commits them in order, in batches, outside the core. A confirm may
leave when everything told before it is committed: `committed >= told`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqp_broker.broker.queue import Queue
    from amqp_broker.message import Message


class Journal:
    """What a durable queue tells about its persistent messages. `told` and `committed` are record numbers."""

    told: int = 0
    committed: int = 0

    def put(self, queue: Queue, position: int, message: Message) -> None:
        """A persistent message took its place in a durable queue."""
        raise NotImplementedError

    def remove(self, queue: Queue, position: int) -> None:
        """The message at a position was settled, expired, dropped or purged."""
        raise NotImplementedError


class NullJournal(Journal):
    """Memory only: nothing is written, so everything is committed as soon as it is told."""

    def put(self, queue: Queue, position: int, message: Message) -> None:
        pass

    def remove(self, queue: Queue, position: int) -> None:
        pass
