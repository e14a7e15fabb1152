"""Classic queues with x-max-priority."""

from __future__ import annotations

from amqp_broker.broker.queues.backlog_queue import BacklogQueue
from amqp_broker.broker.queues.priority_backlog import PriorityBacklog


class PriorityQueue(BacklogQueue[PriorityBacklog]):
    """A queue that delivers higher priorities first. Its length limit drops these first, too: they are at the head.

    While memory is short it keeps its messages there: it has no tail that could go to the journal.
    """

    def _new_backlog(self) -> PriorityBacklog:
        return PriorityBacklog(self.deadlines, self.arguments["x-max-priority"])
