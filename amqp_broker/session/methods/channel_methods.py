"""channel.flow, channel.close, confirm.select and access.request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pamqp import commands

from amqp_broker.amqp.errors import NotImplemented_, PreconditionFailed
from amqp_broker.amqp.methods import AccessRequest, AccessRequestOk
from amqp_broker.session.channel.confirms import Confirms

if TYPE_CHECKING:
    from amqp_broker.session.channel.channel import Channel


def access_request(channel: Channel, method: AccessRequest) -> None:
    """Grant every request: permissions are checked by the methods that need them."""
    ok = AccessRequestOk()
    ok.ticket = 1
    channel.session.send(channel.number, ok)


def flow(channel: Channel, method: commands.Channel.Flow) -> None:
    if not method.active:
        raise NotImplemented_("active=false")
    channel.session.send(channel.number, commands.Channel.FlowOk(True))


def close(channel: Channel, method: commands.Channel.Close) -> None:
    session = channel.session
    del session.channels[channel.number]
    session.gate.confirm_before_close(channel)
    channel.close()
    session.send(channel.number, commands.Channel.CloseOk())


def confirm_select(channel: Channel, method: commands.Confirm.Select) -> None:
    if channel.transaction is not None:
        raise PreconditionFailed("cannot switch from tx to confirm mode")
    if channel.confirms is None:
        # Numbers start here.
        channel.take_route(channel.route)
        channel.publish_count = channel.run_start = 0
        channel.confirms = Confirms(channel)
    if not method.nowait:
        channel.session.send(channel.number, commands.Confirm.SelectOk())
