"""Classic queues without priorities: the plain path of most messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from amqp_broker.broker.queues.arrival_backlog import ArrivalBacklog
from amqp_broker.broker.queues.backlog_queue import FREED_MAX, BacklogQueue
from amqp_broker.broker.queues.queue import DRAIN_BYTES_MAX, DRAIN_MESSAGES_MAX

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message


class ClassicQueue(BacklogQueue[ArrivalBacklog]):
    """A queue in the order of arrival. While it has no extras it reaches into its backlog for speed."""

    def _new_backlog(self) -> ArrivalBacklog:
        return ArrivalBacklog(self.deadlines)

    def _update_extras(self) -> None:
        settings, trace = self.settings, self.vhost.trace
        has_others = (
            self.backlog.paged is not None
            or self.is_faulty
            or self.holds > 0
            or bool(self.deadlines)
            or bool(self.failures)
            or self.has_failed_arrivals
            or settings.message_ttl_ms is not None
            or settings.length_max is not None
            or settings.bytes_max is not None
        )
        self.has_extras = has_others or trace is not None
        self.trace = None if has_others else trace

    def page(self) -> bool:
        """Put new messages into the journal, as memory is short; return whether that starts now."""
        is_paging = self.backlog.page(self.vhost.broker.journal)
        self._update_extras()
        return is_paging

    def end_paging(self) -> bool:
        """Keep all messages in memory again; return False while the journal still has some."""
        if self.is_deleted:
            return True
        has_ended = self.backlog.end_paging()
        self._update_extras()
        return has_ended

    def purge(self) -> int:
        if len(self.backlog.ready) > FREED_MAX:
            self.vhost.broker.free_later(self.backlog.ready.copy())
        return super().purge()

    def requeue_all(self, delivered: Sequence[tuple[int, Message]], *, has_failed: bool, is_lost: bool) -> None:
        self._requeue_together(delivered, has_failed=has_failed)

    def _put_all_back(self, delivered: Sequence[tuple[int, Message]]) -> None:
        self.backlog.put_back_all(delivered)

    def push(self, message: Message) -> None:
        trace = None
        if self.has_extras:
            trace = self.trace
            if trace is None:
                self.push_with_extras(message)
                return
        ready_consumers, backlog = self.ready_consumers, self.backlog
        consumer = ready_consumers[0] if ready_consumers and not backlog.ready and not backlog.returned else None
        if consumer is not None and consumer.is_full:
            consumer = ready_consumers[0] if self.rotation.skip_full() else None
        if consumer is not None:
            position = backlog.head
            backlog.head = position + 1
            consumer.deliver(message, position, False)
            if len(ready_consumers) > 1 and ready_consumers[0] is consumer:
                self.rotation.end_turn()
            if trace is not None:
                trace.delivered_to(consumer, message, False)
        else:
            backlog.ready.append(message)
            if self.backpressured or self.is_undrained:
                self.vhost.broker.is_congested = True

    def drain(self) -> None:
        trace = None
        if self.has_extras:
            trace = self.trace
            if trace is None:
                self._drain_with_extras(with_expired=False)
                return
        ready_consumers, backlog = self.ready_consumers, self.backlog
        ready, returned = backlog.ready, backlog.returned
        bytes_left, messages_left = DRAIN_BYTES_MAX, DRAIN_MESSAGES_MAX
        while ready_consumers:
            if not returned and not ready:
                return
            if ready_consumers[0].is_full:
                self.rotation.pass_over(ready_consumers[0])
                continue
            if returned:
                message, position, redelivered = backlog.pop_head()
            else:
                message, position = ready.popleft(), backlog.head
                backlog.head = position + 1
                redelivered = False
            consumer = ready_consumers[0]
            consumer.deliver(message, position, redelivered)
            if len(ready_consumers) > 1 and ready_consumers[0] is consumer:
                self.rotation.end_turn()
            if trace is not None:
                trace.delivered_to(consumer, message, redelivered)
            bytes_left -= len(message.content)
            messages_left -= 1
            if bytes_left < 0 or not messages_left:
                self._pause_drain()
                return
