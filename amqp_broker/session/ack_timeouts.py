"""The delivery acknowledgement timeout: how long a consumer may keep a message unsettled.

Channels are checked once a minute, as RabbitMQ does, at no cost per delivery: each check marks the channel's last
delivery tag, so a tag is as old as the first mark that is not below it.

While the clock is advanced, minutes in which nothing can become overdue are skipped. Deliveries during the advance
count as made at its end, since their client had no time to settle them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from pamqp import commands

from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.broker.queues.quorum import QuorumQueue
from amqp_broker.session.handshake import has_capability

if TYPE_CHECKING:
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.session.channel import Channel
    from amqp_broker.session.session import Session

TICK_MS: Final = 60_000


class AckTimeouts:
    """Checks the channels of one connection."""

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
            else:
                self._check_oldest(channel, now)
            self._mark(channel, now)
        end_ms = session.broker.advancing_to_ms
        if end_ms is not None and end_ms > self._timer.deadline_ms and self._timer.callback is not None:
            self._timer.cancel()
            next_ms = max(now + TICK_MS, min([end_ms, *self._overdue_ms()]))
            self._timer = session.broker.timers.at(next_ms, self._check)

    def mark(self, now: int) -> None:
        """Mark all channels: the clock is about to be advanced."""
        for channel in self._session.channels.values():
            self._mark(channel, now)

    def _overdue_ms(self) -> Iterator[int]:
        """Yield the times at which marked deliveries become overdue."""
        for channel in self._session.channels.values():
            for tag, queue in _held(channel):
                timeout_ms = self._timeout_ms(queue)
                marked_at = next((time for time, last_tag in channel.tag_marks if last_tag >= tag), None)
                if timeout_ms and marked_at is not None:
                    yield marked_at + timeout_ms

    def _mark(self, channel: Channel, now: int) -> None:
        marks, oldest = channel.tag_marks, min((tag for tag, _ in _oldest(channel)), default=channel.last_tag + 1)
        if channel.transaction is not None:
            # A rollback makes these tags unacked again, at their old age.
            oldest = min([oldest, *channel.transaction.tags()])
        while marks and marks[0][1] < oldest:
            marks.popleft()
        if oldest <= channel.last_tag and (not marks or marks[-1][1] < channel.last_tag):
            # Deliveries during an advance count as made at its end.
            marks.append((self._session.broker.advancing_to_ms or now, channel.last_tag))

    def _timeout_ms(self, queue: Queue) -> int:
        own = queue.settings.consumer_timeout_ms
        return self._session.broker.settings.consumer_timeout_ms if own is None else own

    def _is_overdue(self, channel: Channel, tag: int, queue: Queue, now: int) -> bool:
        timeout_ms = self._timeout_ms(queue)
        marked_at = next((time for time, last_tag in channel.tag_marks if last_tag >= tag), now)
        return bool(timeout_ms) and now - marked_at >= timeout_ms

    def _check_oldest(self, channel: Channel, now: int) -> None:
        for tag, queue in _oldest(channel):
            if self._is_overdue(channel, tag, queue, now):
                self._close(channel, queue)
                return

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
        """Check quorum queues alone (RabbitMQ 4.3). A client that supports it loses its consumer, not its channel."""
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
        """Cancel a consumer, and requeue its messages."""
        if channel.consumers.get(consumer.tag) is consumer:
            channel.drop_consumer(consumer.tag)
            consumer.queue.unsubscribe(consumer)
        held = [(tag, delivery) for tag, delivery in channel.unacked.items() if delivery[1] is consumer]
        for tag, _ in held:
            del channel.unacked[tag]
        channel.settle_rejected(held, requeue=True)
        self._session.send(channel.number, commands.Basic.Cancel(consumer.tag, True))


def _held(channel: Channel) -> Iterator[tuple[int, Queue]]:
    """Yield delivery tag and queue of all that the client has to settle."""
    yield from ((tag, delivery[0]) for tag, delivery in channel.unacked.items())
    yield from ((tag, duplicate[0]) for tag, duplicate in (channel.duplicates or {}).items())


def _oldest(channel: Channel) -> Iterator[tuple[int, Queue]]:
    """Yield tag and queue of the oldest unacked message and of the oldest duplicate."""
    yield from ((tag, delivery[0]) for tag, delivery in islice(channel.unacked.items(), 1))
    yield from ((tag, duplicate[0]) for tag, duplicate in islice((channel.duplicates or {}).items(), 1))
