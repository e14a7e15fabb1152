"""Gets: whether a queue has a message, and which is first, depends on who was first to publish or to get.

So each get is played as one with an ack, and what it brings is put back where the upstream has given another message,
which is looked for behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pamqp import commands

from amqp_broker.compare import deliveries
from amqp_broker.compare.answers import OURS, Answer, Asked, Search, copy_of
from amqp_broker.compare.speech import Said
from amqp_broker.protocol.methods import encode_method
from amqp_broker.protocol.wire import method_frame

if TYPE_CHECKING:
    from amqp_broker.compare.channel import Channel

# How deep in a queue of ours a message is looked for that the upstream has given first.
SEARCH_MAX: Final = 200


def compare(channel: Channel, upstream: Answer, ours: Answer) -> None:
    book, asked = channel.connection.book, upstream.asked
    assert asked is not None, "nobody gets a message unasked"
    got, of_ours = upstream.said, ours.said
    copies = None
    if isinstance(got.method, commands.Basic.GetOk):
        copies = book.deliveries.copies(channel.connection.vhost, asked.queue, got)
        channel.unacked[tag_of(got)] = copies
        book.deliveries.on_upstream(copies, channel, got, asked.text, upstream.at_ms)
    elif isinstance(of_ours.method, commands.Basic.GetOk) and channel.is_quiet(asked):
        channel.tell(upstream, ours)
    if isinstance(of_ours.method, commands.Basic.GetOk):
        tag = tag_of(of_ours)
        found = book.deliveries.copies(channel.connection.vhost, asked.queue, of_ours)
        if found is copies:
            channel.held[tag] = found
            book.deliveries.on_ours(found, channel, of_ours, asked.text, ours.at_ms, True)
        elif copies is None:
            book.deliveries.forget_if_done(found)
            channel.settle(tag, deliveries.REQUEUE)
        else:
            book.deliveries.forget_if_done(found)
            _look_further(channel, Search(copies, asked, [tag]))
    if copies is not None and asked.method.no_ack:
        channel.unacked.pop(got.method.delivery_tag, None)
        book.deliveries.settle(copies, channel, deliveries.ACK, upstream.at_ms, asked.text)


def _look_further(channel: Channel, search: Search) -> None:
    """The upstream's first message is not ours', which depends on who was first to publish or to get."""
    get = copy_of(search.asked.method)
    get.no_ack = False
    asked = Asked(get, search.asked.at_ms, search.asked.queue, search)
    channel.sides[OURS].asked.append(asked)
    channel.connection.book.names.translate(get)
    channel.play(method_frame(channel.number, encode_method(get)))


def on_found(channel: Channel, search: Search, said: Said, now: int) -> None:
    book = channel.connection.book
    is_found = False
    if isinstance(said.method, commands.Basic.GetOk):
        tag = tag_of(said)
        found = book.deliveries.copies(channel.connection.vhost, search.asked.queue, said)
        is_found = found is search.copies
        if is_found:
            channel.held[tag] = found
            book.deliveries.on_ours(found, channel, said, search.asked.text, now, True)
        else:
            book.deliveries.forget_if_done(found)
            search.others.append(tag)
            if len(search.others) < SEARCH_MAX:
                _look_further(channel, search)
                return
    for tag in search.others:
        channel.settle(tag, deliveries.REQUEUE)


def tag_of(said: Said) -> int:
    tag: int = said.method.delivery_tag
    return tag
