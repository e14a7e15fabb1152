"""The delivery acknowledgement timeout: how long a consumer may keep a message unsettled.

Channels are checked once a minute, as RabbitMQ does, at no cost per delivery: each check marks the channel's last
delivery tag, so a tag is as old as the first mark that is not below it. Where a quorum queue or its consumer has a
timeout of its own, RabbitMQ 4.3 is exact: then each delivery has a deadline.

While the clock is advanced, minutes in which nothing can become overdue are skipped. Deliveries during the advance
count as made at its end, since their client had no time to settle them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from pamqp import commands

from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.broker.clients.client_connection import ConsumerTimeout
from amqp_broker.broker.queues.leaving_reasons import TIMED_OUT
from amqp_broker.broker.queues.quorum import QuorumQueue
from amqp_broker.broker.scheduling.portions import Steps, finished
from amqp_broker.session.channel.returning import returning

if TYPE_CHECKING:
    from amqp_broker.broker.clients.client_channel import Delivery
    from amqp_broker.broker.queues.consumer import Consumer
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.session.channel.channel import Channel
    from amqp_broker.session.session import Session

TICK_MS: Final = 60_000
# Deliveries that are looked at in one step; each counts as a piece of work.
CHECKED_AT_ONCE: Final = 256
# The work of a delivery that has timed out, beside that of its return.
TIMED_OUT_WORK: Final = 2
# The timeout that RabbitMQ 4.3 names in its text about a quorum queue.
UNNAMED_MS: Final = -1


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
        channels = list(session.channels.values())
        for channel in channels:
            if not session.broker.profile.times_out_quorum_only:
                self._check_oldest(channel, now)
            self._mark(channel, now)
        if session.broker.profile.times_out_quorum_only:
            session.broker.do_in_portions(self._checking_quorum(channels, now))
        if session.broker.advancing_to_ms is not None and self._timer.callback is not None:
            self._check_again_by(session.broker.advancing_to_ms, now)

    def _check_again_by(self, end_ms: int, now: int) -> None:
        """Check again as soon as a delivery is overdue during an advance to `end_ms`, and at its end."""
        next_ms = max(end_ms, self._timer.deadline_ms)
        for channel in self._session.channels.values():
            for overdue_ms, _, _ in finished(self._overdue(channel, now)):
                if overdue_ms <= end_ms:
                    next_ms = min(next_ms, overdue_ms)
        self._timer.cancel()
        self._timer = self._session.broker.timers.at(next_ms, self._check)

    def mark(self, now: int) -> None:
        """Mark all channels: the clock is about to be advanced."""
        for channel in self._session.channels.values():
            self._mark(channel, now)

    def coming(self) -> Steps[list[ConsumerTimeout]]:
        """Return the first timeouts of each channel, by what they do, if its client settles nothing before."""
        found: list[ConsumerTimeout] = []
        for channel in list(self._session.channels.values()):
            timeouts = yield from self._coming_in(channel)
            # The first for each consumer, and for the channel: nothing is cancelled when that is closed.
            first: dict[str | None, ConsumerTimeout] = {}
            for timeout in sorted(timeouts, key=_order):
                if None not in first:
                    first.setdefault(timeout.consumer_tag, timeout)
            found += first.values()
            yield
        return found

    def _coming_in(self, channel: Channel) -> Steps[list[ConsumerTimeout]]:
        unacked, next_ms = channel.unacked, self._timer.deadline_ms
        closes_always = not self._session.broker.profile.times_out_quorum_only
        found: list[ConsumerTimeout] = []
        for overdue_ms, tag, queue in (yield from self._overdue(channel, 0)):
            delivery = unacked.deliveries.get(tag)
            cancelled = None if closes_always or delivery is None else self._cancelled(channel, delivery)
            found.append(ConsumerTimeout(max(overdue_ms, next_ms), channel.number, cancelled, queue))
        for deadline_ms, delivery in (yield from self._first_deadlines(channel)):
            cancelled = self._cancelled(channel, delivery)
            found.append(ConsumerTimeout(deadline_ms, channel.number, cancelled, delivery[0]))
        return found

    def _first_deadlines(self, channel: Channel) -> Steps[list[tuple[int, Delivery]]]:
        """Return the first exact deadline of each queue and consumer, with its delivery."""
        first: dict[tuple[Queue, Consumer | None], tuple[int, Delivery]] = {}
        deadlines = channel.unacked.deadlines
        for number, (deadline_ms, tag) in enumerate([] if deadlines is None else deadlines.items()):
            delivery = channel.unacked.deliveries.get(tag)
            if delivery is not None:
                known = first.get(delivery[:2])
                if known is None or deadline_ms < known[0]:
                    first[delivery[:2]] = deadline_ms, delivery
            if number % CHECKED_AT_ONCE == 0:
                yield
        return list(first.values())

    def _cancelled(self, channel: Channel, delivery: Delivery) -> str | None:
        """Return the tag of the consumer that is cancelled because of a delivery; None if the channel is closed."""
        consumer = delivery[1]
        return None if consumer is None or self._closes(channel, consumer) else consumer.tag

    def _overdue(self, channel: Channel, after_ms: int) -> Steps[list[tuple[int, int, Queue]]]:
        """Return when deliveries become overdue for the checks, with tag and queue; only times after `after_ms`.

        They are the oldest delivery of the channel, or from 4.3 on the oldest of each quorum queue and consumer.
        """
        unacked = channel.unacked
        found: list[tuple[int, int, Queue]] = []
        if not self._session.broker.profile.times_out_quorum_only:
            held = unacked.oldest()
            if held is not None and self._timeout_ms(held[1]):
                found.append((self._overdue_ms(channel, *held), *held))
            return [one for one in found if one[0] > after_ms]
        seen: set[tuple[Queue, Consumer | None]] = set()
        rest = iter(list(unacked.deliveries))
        while portion := list(islice(rest, CHECKED_AT_ONCE)):
            for tag in portion:
                delivery = unacked.deliveries.get(tag)
                if delivery is None or delivery[:2] in seen or not self._is_checked(delivery):
                    continue
                overdue_ms = self._overdue_ms(channel, tag, delivery[0])
                if overdue_ms > after_ms:
                    seen.add(delivery[:2])
                    found.append((overdue_ms, tag, delivery[0]))
            yield
        return found

    def _overdue_ms(self, channel: Channel, tag: int, queue: Queue) -> int:
        marked_at = channel.unacked.marked_at(tag)
        return (self._session.broker.now if marked_at is None else marked_at) + self._timeout_ms(queue)

    def _is_checked(self, delivery: Delivery) -> bool:
        """Return whether the checks from 4.3 on look at a delivery: a timeout of the consumer's own is exact."""
        has_own = delivery[1] is not None and delivery[1].timeout_ms is not None
        return isinstance(delivery[0], QuorumQueue) and not has_own and self._timeout_ms(delivery[0]) > 0

    def _mark(self, channel: Channel, now: int) -> None:
        uncommitted = () if channel.transaction is None else channel.transaction.tags()
        # Deliveries during an advance count as made at its end.
        channel.unacked.mark(self._session.broker.advancing_to_ms or now, uncommitted)

    def _timeout_ms(self, queue: Queue) -> int:
        own = queue.settings.consumer_timeout_ms
        return self._session.broker.settings.consumer_timeout_ms if own is None else own

    def _is_overdue(self, channel: Channel, tag: int, queue: Queue, now: int) -> bool:
        timeout_ms = self._timeout_ms(queue)
        marked_at = channel.unacked.marked_at(tag)
        return bool(timeout_ms) and marked_at is not None and now - marked_at >= timeout_ms

    def _check_oldest(self, channel: Channel, now: int) -> None:
        held = channel.unacked.oldest()
        if held is not None and self._is_overdue(channel, *held, now):
            self._close(channel, self._timeout_ms(held[1]))

    def _close(self, channel: Channel, timeout_ms: int) -> None:
        self._session.close_channel(
            channel.number,
            PreconditionFailed(
                f"delivery acknowledgement on channel {channel.number} timed out. Timeout value used: "
                f"{timeout_ms} ms. This timeout value can be configured, see consumers doc guide "
                "to learn more"
            ),
        )

    def _checking_quorum(self, channels: Sequence[Channel], now: int) -> Steps[None]:
        """Check quorum queues alone (RabbitMQ 4.3), except consumers with a timeout of their own."""
        for channel in channels:
            tags: list[int] = []
            # The last overdue tag by queue: tags are marked in their order.
            last_overdue: dict[Queue, int] = {}
            rest = iter(list(channel.unacked.deliveries)) if channel.unacked.marks else iter(())
            while portion := list(islice(rest, CHECKED_AT_ONCE)):
                for tag in portion:
                    delivery = channel.unacked.deliveries.get(tag)
                    if delivery is None or (delivery[1] is not None and delivery[1].timeout_ms is not None):
                        continue
                    queue = delivery[0]
                    if queue not in last_overdue:
                        is_quorum = isinstance(queue, QuorumQueue)
                        last_overdue[queue] = self._last_overdue(channel, queue, now) if is_quorum else 0
                    if tag <= last_overdue[queue]:
                        tags.append(tag)
                self._session.broker.work += CHECKED_AT_ONCE
                yield
            yield from self._timing_out(channel, tags)

    def _last_overdue(self, channel: Channel, queue: Queue, now: int) -> int:
        """Return the last tag that is overdue if it is of this queue; 0 for none."""
        timeout_ms = self._timeout_ms(queue)
        return channel.unacked.last_marked_until(now - timeout_ms) if timeout_ms else 0

    def time_out(self, channel: Channel, tags: list[int]) -> None:
        """Return deliveries to their quorum queues. Cancel their consumers, or close the channel where that fails.

        RabbitMQ keeps a consumer that it cancels: it gets messages again when it has settled what has timed out.
        """
        self._session.broker.do_in_portions(self._timing_out(channel, tags))

    def _timing_out(self, channel: Channel, tags: list[int]) -> Steps[None]:
        timed_out: dict[Consumer, list[int]] = {}
        for number, tag in enumerate(tags, 1):
            if number % CHECKED_AT_ONCE == 0:
                self._session.broker.work += CHECKED_AT_ONCE
                yield
            # The client may have settled some meanwhile.
            delivery = channel.unacked.deliveries.get(tag)
            if delivery is None:
                continue
            consumer = delivery[1]
            if consumer is None or self._closes(channel, consumer):
                for other in channel.consumers.values():
                    other.queue.rotation.suspend(other)
                deliveries = channel.unacked.deliveries
                channel.settle_rejected(
                    [(overdue, deliveries.pop(overdue)) for overdue in tags if overdue in deliveries],
                    requeue=True,
                    reason=TIMED_OUT,
                )
                self._close(channel, UNNAMED_MS)
                return
            timed_out.setdefault(consumer, []).append(tag)
        for of_channel, its_tags in timed_out.items():
            yield from self._cancelling(channel, of_channel, its_tags)

    def _closes(self, channel: Channel, consumer: Consumer) -> bool:
        """Return whether the channel is closed, since the consumer cannot be cancelled."""
        is_there = channel.consumers.get(consumer.tag) is consumer
        return not is_there or not self._session.has_capability("consumer_cancel_notify")

    def _cancelling(self, channel: Channel, consumer: Consumer, tags: list[int]) -> Steps[None]:
        broker, queue = self._session.broker, consumer.queue
        queue.rotation.suspend(consumer)
        deliveries: deque[tuple[int, Delivery]] = deque()
        for number, tag in enumerate(tags, 1):
            delivery = channel.unacked.deliveries.pop(tag, None)
            if delivery is not None:
                deliveries.append((tag, delivery))
                channel.unacked.time_out(tag, consumer, delivery[3])
            if number % CHECKED_AT_ONCE == 0:
                broker.work += TIMED_OUT_WORK * CHECKED_AT_ONCE
                yield
        if not deliveries:
            return

        def serve(queues: Iterable[Queue]) -> None:
            if isinstance(queue, QuorumQueue):
                queue.step_aside(consumer)
            channel.serve_returned(queues)

        def give_back(portion: list[tuple[int, Delivery]]) -> Iterable[Queue]:
            return channel.give_back(portion, reason=TIMED_OUT)

        yield from returning(broker, [(consumer, deliveries)], give_back, serve)
        if self._session.channels.get(channel.number) is channel:
            self._session.send(channel.number, commands.Basic.Cancel(consumer.tag, True))


def _order(timeout: ConsumerTimeout) -> tuple[int, bool]:
    """Return the key of timeouts by their order: at the same time, a channel is closed first."""
    return timeout.at_ms, timeout.consumer_tag is not None
