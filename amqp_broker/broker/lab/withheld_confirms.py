"""Confirms that faults delay or drop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from amqp_broker.amqp import frames as wire

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.counting.counters import PublishCounts
    from amqp_broker.session.channel.channel import Channel


class WithheldConfirms:
    """Publish numbers of a channel that are confirmed later than the others, or never.

    Confirms that leave meanwhile must not stand for them: no frame with `multiple` goes beyond the first of them.
    """

    def __init__(self) -> None:
        # Numbers that no confirm has passed yet: the delay after that (None: never), whether a nack leaves then, and
        # the counters of an ack.
        self._ahead: dict[int, tuple[int | None, bool, tuple[PublishCounts, ...]]] = {}
        # Numbers whose delay runs, and the first number that is never confirmed.
        self._delayed: set[int] = set()
        self._first_lost: int | None = None
        # Number of messages that confirms have passed, and that are not confirmed.
        self.passed_count = 0

    def add(self, number: int, delay_ms: int | None, is_nack: bool, counts: tuple[PublishCounts, ...]) -> None:
        self._ahead[number] = delay_ms, is_nack, counts

    def pass_over(self, channel: Channel, until: int, traced: Mapping[int, Message]) -> list[int]:
        """Return, in order, the numbers to leave out of a confirm of all up to `until`; their delays begin.

        `traced` has messages by publish number.
        """
        passed = [number for number in self._ahead if number <= until]
        left_out = {*passed, *self._delayed}
        if self._first_lost is not None:
            left_out.add(self._first_lost)
        broker = channel.session.broker
        for number in passed:
            delay_ms, is_nack, counts = self._ahead.pop(number)
            self.passed_count += 1
            if delay_ms is None:
                self._first_lost = min(number, self._first_lost or number)
            else:
                self._delayed.add(number)
                confirm = DelayedConfirm(self, channel, number, None if is_nack else counts, traced.get(number))
                broker.timers.at(broker.now + delay_ms, confirm)
        return sorted(left_out)

    def release(
        self, channel: Channel, number: int, acked: tuple[PublishCounts, ...] | None, message: Message | None
    ) -> None:
        """Send a delayed confirm if its channel is still open: an ack that `acked` counts, or (None) a nack.

        `message` is the traced message.
        """
        self._delayed.discard(number)
        self.passed_count -= 1
        session = channel.session
        if session.channels.get(channel.number) is channel and not session.state.ignores_input:
            make_frame = wire.nack_frame if acked is None else wire.ack_frame
            session.outbox.append(make_frame(channel.number, number, False))
            for counts in acked or ():
                counts.confirm += 1
            if message is not None and channel.vhost.trace is not None:
                channel.vhost.trace.confirmed(session, channel.number, message, number, acked is not None)


class DelayedConfirm:
    """The timer of a delayed confirm."""

    __slots__ = ("_acked", "_channel", "_message", "_number", "_withheld")

    def __init__(
        self,
        withheld: WithheldConfirms,
        channel: Channel,
        number: int,
        acked: tuple[PublishCounts, ...] | None,
        message: Message | None,
    ) -> None:
        self._withheld, self._channel, self._number, self._acked = withheld, channel, number, acked
        self._message = message

    def __call__(self, now: int) -> None:
        self._channel.session.broker.now = now
        self._withheld.release(self._channel, self._number, self._acked, self._message)
