"""Classic queues with x-max-priority."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from amqp_broker.broker.queues.backlog_queue import BacklogQueue
from amqp_broker.broker.queues.priority_backlog import PriorityBacklog

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message


class PriorityQueue(BacklogQueue[PriorityBacklog]):
    """A queue that delivers higher priorities first. Its length limit drops these first, too: they are at the head.

    While memory is short it keeps its messages there: it has no tail that could go to the journal.
    """

    def _new_backlog(self) -> PriorityBacklog:
        return PriorityBacklog(self.deadlines, self.arguments["x-max-priority"])

    def requeue_all(self, delivered: Sequence[tuple[int, Message]], *, has_failed: bool, is_lost: bool) -> None:
        self._requeue_together(delivered, has_failed=has_failed)
