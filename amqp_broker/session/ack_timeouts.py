"""Consumers that keep a message unsettled for too long (RabbitMQ's "delivery acknowledgement timeout").

Looked at once a minute, as RabbitMQ's channels do, and without a cost per delivery: at each look a channel marks its
last delivery tag, so a tag is as old as the first mark that is not below it.

While the clock is moved, minutes in which nothing can become overdue are passed over. What is delivered meanwhile is
only as old as the end of that: its client had no time to settle it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from pamqp import commands

from amqp_broker.broker.quorum_queue import QuorumQueue
from amqp_broker.errors import PreconditionFailed
from amqp_broker.session.handshake import has_capability

if TYPE_CHECKING:
    from amqp_broker.broker.consumer import Consumer
    from amqp_broker.broker.queue import Queue
    from amqp_broker.session.channel import Channel
    from amqp_broker.session.session import Session

TICK_MS: Final = 60_000


class AckTimeouts:
    """Looks after the channels of one connection."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._timer = session.broker.timers.at(session.broker.now + TICK_MS, self._check)

    def stop(self) -> None:
        self._timer.cancel()

    def _check(self, now: int) -> None:
        session = self._session
        self._timer = session.broker.timers.at(now + TICK_MS, self._check)
        for channel in list(session.channels.values()):
            if session.broker.profile.times_out_quorum_only:
                self._check_quorum(channel, now)
            elif (oldest := next(iter(channel.unacked), None)) is not None:
                self._check_oldest(channel, oldest, now)
            self._mark(channel, now)
        end_ms = session.broker.advancing_to_ms
        if end_ms is not None and end_ms > self._timer.deadline_ms and self._timer.callback is not None:
            self._timer.cancel()
            next_ms = max(now + TICK_MS, min([end_ms, *self._overdue_ms()]))
            self._timer = session.broker.timers.at(next_ms, self._check)

    def mark(self, now: int) -> None:
        """The clock is about to be moved: what is unacked now is as old as it is."""
        for channel in self._session.channels.values():
            self._mark(channel, now)

    def _overdue_ms(self) -> Iterator[int]:
        """When what is marked as unacked will be overdue."""
        for channel in self._session.channels.values():
            for tag, (queue, _, _, _) in channel.unacked.items():
                timeout_ms = self._timeout_ms(queue)
                marked_at = next((time for time, last_tag in channel.tag_marks if last_tag >= tag), None)
                if timeout_ms and marked_at is not None:
                    yield marked_at + timeout_ms

    def _mark(self, channel: Channel, now: int) -> None:
        marks, oldest = channel.tag_marks, next(iter(channel.unacked), channel.last_tag + 1)
        if channel.transaction is not None:
            # What is not committed may be unacked again, and is as old as it was.
            oldest = min([oldest, *channel.transaction.tags()])
        while marks and marks[0][1] < oldest:
            marks.popleft()
        if oldest <= channel.last_tag and (not marks or marks[-1][1] < channel.last_tag):
            # What was delivered while the clock is moved is only as old as the end of that.
            marks.append((self._session.broker.advancing_to_ms or now, channel.last_tag))

    def _timeout_ms(self, queue: Queue) -> int:
        own = queue.settings.consumer_timeout_ms
        return self._session.broker.config.consumer_timeout_ms if own is None else own

    def _is_overdue(self, channel: Channel, tag: int, queue: Queue, now: int) -> bool:
        timeout_ms = self._timeout_ms(queue)
        marked_at = next((time for time, last_tag in channel.tag_marks if last_tag >= tag), now)
        return bool(timeout_ms) and now - marked_at >= timeout_ms

    def _check_oldest(self, channel: Channel, tag: int, now: int) -> None:
        queue = channel.unacked[tag][0]
        if self._is_overdue(channel, tag, queue, now):
            self._close(channel, queue)

    def _close(self, channel: Channel, queue: Queue) -> None:
        self._session.close_channel(
            channel.number,
            PreconditionFailed(
                f"delivery acknowledgement on channel {channel.number} timed out. Timeout value used: "
                f"{self._timeout_ms(queue)} ms. This timeout value can be configured, see consumers doc guide "
                "to learn more"
            ),
        )

    def _check_quorum(self, channel: Channel, now: int) -> None:
        """RabbitMQ 4.3: quorum queues only, and a client that understands it loses its consumer, not its channel."""
        for tag, (queue, consumer, _, _) in list(channel.unacked.items()):
            if tag not in channel.unacked or not isinstance(queue, QuorumQueue):
                continue
            if not self._is_overdue(channel, tag, queue, now):
                continue
            if consumer is None or not has_capability(self._session, "consumer_cancel_notify"):
                self._close(channel, queue)
                return
            self._cancel(channel, consumer)

    def _cancel(self, channel: Channel, consumer: Consumer) -> None:
        """End a consumer, and give back what it holds."""
        if channel.consumers.get(consumer.tag) is consumer:
            channel.drop_consumer(consumer.tag)
            consumer.queue.unsubscribe(consumer)
        held = [(tag, delivery) for tag, delivery in channel.unacked.items() if delivery[1] is consumer]
        for tag, _ in held:
            del channel.unacked[tag]
        channel.settle_rejected(held, requeue=True)
        self._session.send(channel.number, commands.Basic.Cancel(consumer.tag, True))
