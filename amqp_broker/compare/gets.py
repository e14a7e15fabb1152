"""Comparison of gets, whose result depends on the order of concurrent publishes and gets.

So each get is played with an ack. If the upstream returned another message, the local one is requeued, and the
upstream's is searched for behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pamqp import commands

from amqp_broker.amqp.frames import method_frame
from amqp_broker.amqp.methods import encode_method
from amqp_broker.compare import deliveries
from amqp_broker.compare.client_requests import LOCAL, Answer, ClientRequest, Search, copy_of
from amqp_broker.compare.method_reader import Received

if TYPE_CHECKING:
    from amqp_broker.compare.channel_pair import ChannelPair

# How deep in the local queue the upstream's message is searched for.
SEARCH_MAX: Final = 200


def compare(channel: ChannelPair, upstream: Answer, local: Answer) -> None:
    state, asked = channel.connection.state, upstream.asked
    assert asked is not None, "a get-ok answers a get"
    got, of_local = upstream.said, local.said
    copies = None
    if isinstance(got.method, commands.Basic.GetOk):
        copies = state.deliveries.copies(channel.connection.vhost, asked.queue, got)
        channel.unacked[tag_of(got)] = copies
        state.deliveries.on_upstream(copies, channel, got, asked.text, upstream.at_ms)
    elif isinstance(of_local.method, commands.Basic.GetOk) and channel.is_quiet(asked):
        channel.tell(upstream, local)
    if isinstance(of_local.method, commands.Basic.GetOk):
        tag = tag_of(of_local)
        found = state.deliveries.copies(channel.connection.vhost, asked.queue, of_local)
        if found is copies:
            channel.held[tag] = found
            state.deliveries.on_local(found, channel, of_local, asked.text, local.at_ms, True)
        elif copies is None:
            state.deliveries.forget_if_done(found)
            channel.settle(tag, deliveries.REQUEUE)
        else:
            state.deliveries.forget_if_done(found)
            _look_further(channel, Search(copies, asked, [tag]))
    if copies is not None and asked.method.no_ack:
        channel.unacked.pop(got.method.delivery_tag, None)
        state.deliveries.settle(copies, channel, deliveries.ACK, upstream.at_ms, asked.text)


def _look_further(channel: ChannelPair, search: Search) -> None:
    """Get the next local message: the first one is not the upstream's."""
    get = copy_of(search.asked.method)
    get.no_ack = False
    asked = ClientRequest(get, search.asked.at_ms, search.asked.queue, search)
    channel.sides[LOCAL].asked.append(asked)
    channel.connection.state.names.translate(get)
    channel.play(method_frame(channel.number, encode_method(get)))


def on_found(channel: ChannelPair, search: Search, said: Received, now: int) -> None:
    state = channel.connection.state
    is_found = False
    if isinstance(said.method, commands.Basic.GetOk):
        tag = tag_of(said)
        found = state.deliveries.copies(channel.connection.vhost, search.asked.queue, said)
        is_found = found is search.copies
        if is_found:
            channel.held[tag] = found
            state.deliveries.on_local(found, channel, said, search.asked.text, now, True)
        else:
            state.deliveries.forget_if_done(found)
            search.others.append(tag)
            if len(search.others) < SEARCH_MAX:
                _look_further(channel, search)
                return
    for tag in search.others:
        channel.settle(tag, deliveries.REQUEUE)


def tag_of(said: Received) -> int:
    tag: int = said.method.delivery_tag
    return tag
