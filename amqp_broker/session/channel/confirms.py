"""Confirms of a channel: the acks and nacks of publishes that are safe or were refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from amqp_broker.amqp import frames as wire

if TYPE_CHECKING:
    from amqp_broker.session.channel.channel import Channel

NOTHING_WITHHELD: Final[list[int]] = []


def send_confirms(channel: Channel, until: int, rejected: list[int]) -> None:
    """Confirm all publish numbers up to `until`, with one ack, multiple if it covers several."""
    count = until - channel.confirmed_count
    withheld = NOTHING_WITHHELD if channel.withheld is None else channel.withheld.pass_over(channel, until)
    if count:
        channel.count_confirms(until, sorted([*rejected, *withheld]) if withheld else rejected)
    if channel.traced:
        _trace_confirms(channel, until, rejected, withheld)
    if rejected or withheld:
        _send_mixed_confirms(channel, until, rejected, withheld)
    elif count:
        channel.session.outbox.append(wire.ack_frame(channel.number, until, count > 1))
    channel.confirmed_count = until


def _trace_confirms(channel: Channel, until: int, rejected: list[int], withheld: list[int]) -> None:
    trace, traced = channel.vhost.trace, channel.traced
    if not rejected and not withheld and next(reversed(traced)) <= until:
        channel.traced = {}
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


def _send_mixed_confirms(channel: Channel, until: int, rejected: list[int], withheld: list[int]) -> None:
    """Send acks, then nacks, in RabbitMQ's form (rabbit_channel.erl, coalesce_and_send)."""
    accepted = sorted(set(range(channel.confirmed_count + 1, until + 1)).difference(rejected, withheld))
    if len(accepted) == 1:
        channel.session.outbox.append(wire.ack_frame(channel.number, accepted[0], False))
    else:
        _send_coalesced(channel, wire.ack_frame, accepted, sorted([*rejected, *withheld]))
    _send_coalesced(channel, wire.nack_frame, rejected, sorted([*accepted, *withheld]))


def _send_coalesced(
    channel: Channel, make_frame: Callable[[int, int, bool], bytes], numbers: list[int], others: list[int]
) -> None:
    """Send one multiple frame for the numbers before all `others`, and a frame each for the rest."""
    before = [number for number in numbers if not others or number < others[0]]
    if before:
        channel.session.outbox.append(make_frame(channel.number, before[-1], True))
    for number in numbers[len(before) :]:
        channel.session.outbox.append(make_frame(channel.number, number, False))
