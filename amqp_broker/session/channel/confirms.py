"""Confirms of a channel: the acks and nacks of publishes that are safe or were refused."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from amqp_broker.amqp import frames as wire
from amqp_broker.broker.lab.withheld_confirms import WithheldConfirms

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.session.channel.channel import Channel

NOTHING_WITHHELD: Final[list[int]] = []


class Confirms:
    """The publishes of a channel in confirm mode, by publish number.

    `scheduled_count` is the last number that is confirmed, or whose confirm waits for a commit of the journal. `traced`
    has unconfirmed messages; only a trace needs them.
    """

    __slots__ = ("_channel", "_rejected", "scheduled_count", "traced", "uncommitted", "withheld")

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.scheduled_count = 0
        # Numbers of this read that a queue has refused.
        self._rejected: list[int] = []
        # Confirms that wait for a commit: the batch, the last number, and the numbers that a queue has refused.
        self.uncommitted: deque[tuple[int, int, list[int]]] = deque()
        self.traced: dict[int, Message] = {}
        # Confirms that a fault delays or drops.
        self.withheld: WithheldConfirms | None = None

    def reject(self) -> None:
        """Confirm the last publish with a nack."""
        number = self._channel.publish_count
        if number not in self._rejected[-1:]:
            self._rejected.append(number)

    def withhold(self, delay_ms: int | None, is_nack: bool) -> None:
        """Confirm the last publish after a delay, or (None) never: a fault rule has hit it."""
        if self.withheld is None:
            self.withheld = WithheldConfirms()
        number = self._channel.publish_count
        if number in self._rejected[-1:]:
            # A queue refused the message, so the delayed confirm is a nack.
            self._rejected.pop()
            is_nack = True
        self.withheld.add(number, delay_ms, is_nack, self._channel.publish_counts)

    def confirm(self, is_journaled: bool) -> None:
        """Confirm the publishes of this read now, or (`is_journaled`) after the commit that contains them."""
        channel = self._channel
        rejected, self._rejected = self._rejected, []
        self.scheduled_count = channel.publish_count
        if is_journaled or self.uncommitted:
            # A publish that the journal does not contain waits for the publishes before it, but for no later batch,
            # which may be empty and would never be committed. A duplicate may wait for an earlier one.
            batch = channel.session.broker.journal.last_used_batch if is_journaled else self.uncommitted[-1][0]
            self.uncommitted.append((batch, self.scheduled_count, rejected))
        else:
            self.send(self.scheduled_count, rejected)

    def on_committed(self, committed: int) -> None:
        """Confirm what waited for a batch of the journal up to `committed`."""
        uncommitted, until, rejected = self.uncommitted, 0, []
        while uncommitted and uncommitted[0][0] <= committed:
            _, until, more = uncommitted.popleft()
            rejected += more
        if until:
            self.send(until, rejected)

    def discard(self) -> None:
        """Send no confirm any more: the channel is closed."""
        self.uncommitted.clear()

    def send(self, until: int, rejected: list[int]) -> None:
        """Confirm all publish numbers up to `until`, with one ack, multiple if it covers several."""
        channel = self._channel
        first = channel.confirmed_count + 1
        withheld = NOTHING_WITHHELD
        if self.withheld is not None:
            withheld = self.withheld.pass_over(channel, until, self.traced)
        channel.count_confirms(until, sorted([*rejected, *withheld]) if withheld else rejected)
        if self.traced:
            self._trace(until, rejected, withheld)
        if rejected or withheld:
            self._send_mixed(first, until, rejected, withheld)
        elif until >= first:
            channel.session.outbox.append(wire.ack_frame(channel.number, until, until > first))

    def _trace(self, until: int, rejected: list[int], withheld: list[int]) -> None:
        channel, traced = self._channel, self.traced
        trace = channel.vhost.trace
        if not rejected and not withheld and next(reversed(traced)) <= until:
            self.traced = {}
            if trace is not None:
                trace.confirmed_all(channel.session, channel.number, traced)
            return
        # A list, because the first entry of a dict is found ever later as entries before it are removed.
        for number in list(traced):
            if number > until:
                break
            message = traced.pop(number)
            if trace is not None and number not in withheld:
                trace.confirmed(channel.session, channel.number, message, number, number not in rejected)

    def _send_mixed(self, first: int, until: int, rejected: list[int], withheld: list[int]) -> None:
        """Send acks, then nacks, in RabbitMQ's form (rabbit_channel.erl, coalesce_and_send)."""
        channel = self._channel
        accepted = sorted(set(range(first, until + 1)).difference(rejected, withheld))
        if len(accepted) == 1:
            channel.session.outbox.append(wire.ack_frame(channel.number, accepted[0], False))
        else:
            self._send_coalesced(wire.ack_frame, accepted, sorted([*rejected, *withheld]))
        self._send_coalesced(wire.nack_frame, rejected, sorted([*accepted, *withheld]))

    def _send_coalesced(
        self, make_frame: Callable[[int, int, bool], bytes], numbers: list[int], others: list[int]
    ) -> None:
        """Send one multiple frame for the numbers before all `others`, and a frame each for the rest."""
        channel = self._channel
        before = [number for number in numbers if not others or number < others[0]]
        if before:
            channel.session.outbox.append(make_frame(channel.number, before[-1], True))
        for number in numbers[len(before) :]:
            channel.session.outbox.append(make_frame(channel.number, number, False))
