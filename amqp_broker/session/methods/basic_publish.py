"""basic.publish: from the method frame to a route, and every check that a plain push does not need.

A route is what a publisher's method frame means while the topology stays as it is. Routes are kept per vhost and
user (`VHost.route_cache`), keyed by the whole method payload.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from amqp_broker.amqp import fields
from amqp_broker.amqp import frames as wire
from amqp_broker.amqp.errors import FrameError, InternalError, NotImplemented_, PreconditionFailed, SyntaxError_
from amqp_broker.amqp.message import (
    CONTENT,
    FRAME,
    HEADER_START_BYTES,
    Address,
    MalformedProperties,
    Message,
    Properties,
    SpecialMessage,
    normal_list,
    shortstr,
    with_property_list,
)
from amqp_broker.amqp.property_list import UNREADABLE, Traits
from amqp_broker.broker.backends.questions import Unanswered
from amqp_broker.broker.exchanges.delayed import DelayedExchange
from amqp_broker.broker.lab import publish_faults
from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.broker.lab.habits import is_reply
from amqp_broker.broker.observe.recorder import Recorder
from amqp_broker.broker.operations import checked_publish, interceptors
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.queues.reply import REPLY_TO
from amqp_broker.broker.routing import route_cache
from amqp_broker.broker.routing.route import Route, offer
from amqp_broker.broker.scheduling.portions import KEYS_AT_ONCE
from amqp_broker.session.channel import remote_checks
from amqp_broker.session.methods.topology_methods import user_of

if TYPE_CHECKING:
    from amqp_broker.broker.lab.publish_faults import Discard
    from amqp_broker.broker.queues.refused_publishers import Publisher
    from amqp_broker.broker.scheduling.portions import Steps
    from amqp_broker.session.channel.channel import Channel

# Used routes that are counted at once when another is found; that takes some ms. A change of topology counts them, too.
# It is not Final, because a test lowers it (paged_buffer.py).
PENDING_MAX = 4096

# The work (`Session.spend`) of a publish that needs more than a plain push, and of one whose route is not known.
PUBLISH_WORK: Final = 16
NEW_ROUTE_WORK: Final = 24

NO_ROUTE: Final = 312
# The pseudo-queue for direct replies as a short string.
_REPLY_TO_OCTETS: Final = shortstr(REPLY_TO)
NO_RULES: Final[list[Rule]] = []
# The traits of an empty property list.
NO_PROPERTIES: Final = Traits()


def read_traits(channel: Channel, property_list: bytes) -> Traits:
    """Return the traits of a property list. Raise SyntaxError_ for invalid properties."""
    session = channel.session
    traits = session.shapes.find(property_list)
    if traits is None:
        try:
            traits = session.shapes.learn(property_list)
        except MalformedProperties as error:
            raise SyntaxError_(str(error)) from None
        if traits.is_persistent and channel.confirms is None and channel.transaction is None:
            session.broker.advice.on_persistent(channel)
    return traits


def publish(channel: Channel, method: bytes, traits: Traits, content: bytes, body_bytes: int) -> None:
    """Publish a message whose route is not cached, or that needs more than a plain push.

    It waits for the answers of remote backends to which the user may publish.
    """
    try:
        _publish(channel, method, traits, content, body_bytes)
    except Unanswered as question:
        again = partial(_publish_again, channel, method, traits, content, body_bytes)
        remote_checks.ask(channel.session, question, again, wire.PUBLISH, channel.number)


def _publish_again(channel: Channel, method: bytes, traits: Traits, content: bytes, body_bytes: int) -> None:
    if channel.session.channels.get(channel.number) is channel:
        publish(channel, method, traits, content, body_bytes)


def _publish(channel: Channel, method: bytes, traits: Traits, content: bytes, body_bytes: int) -> None:
    """Publish after checks in the order of RabbitMQ (rabbit_channel.erl, basic.publish)."""
    routes = channel.session.routes
    route = routes.get(method)
    work = PUBLISH_WORK if route is not None else NEW_ROUTE_WORK
    broker = channel.session.broker
    # Dead letters and other publishers have added to it.
    broker.routing_work = 0
    if body_bytes > channel.session.broker.settings.message_bytes_max:
        _decode_publish(method)
        checked_publish.check_size(channel.vhost, body_bytes)
    if route is None:
        if len(channel.vhost.counts.pending_routes) >= PENDING_MAX:
            channel.vhost.counts.collect()
        route = _resolve(channel, method)
        route_cache.keep(routes, method, route)
    _require_readable(traits)
    if traits.sorter is not None:
        content = traits.sorter.sort(content)
    if traits.is_direct:
        content = _with_reply_to(content, _reply_name(channel))
    if (traits.is_plain or traits.is_direct) and route.is_plain and channel.transaction is None:
        channel.publish(route, content, traits)
    else:
        _publish_checked(channel, route, traits, content)
    channel.session.spend(work + broker.routing_work)


def _require_readable(traits: Traits) -> None:
    """Raise InternalError for properties at which the channel's process crashes in RabbitMQ."""
    if traits is UNREADABLE:
        raise InternalError("", method_id=0)


def _publish_checked(channel: Channel, route: Route, traits: Traits, content: bytes) -> None:
    """Publish a message of which more than its route counts."""
    keys = [route.address.routing_key]
    blind_keys: Sequence[str] = ()
    headers: fields.Table = {}
    if traits.has_headers or not traits.is_plain:
        properties = Properties.decode(content[FRAME.size : FRAME.size + FRAME.unpack_from(content)[2]], CONTENT.size)
        headers = properties.headers or {}
        if not traits.is_plain and channel.session.broker.profile.normalizes_properties:
            normal = normal_list(properties, traits.expiration_ms)
            content = content if normal is None else with_property_list(content, normal)
        content, blind_keys = _check_special(channel, route, traits, properties, content, keys)
    elif not route.is_plain:
        checked_publish.check_topics(channel.vhost, user_of(channel), route.exchange, keys)
    message = _message(channel, route, traits, content, blind_keys)
    if not route.is_plain and channel.session.broker.settings.intercepts:
        message, headers = _intercepted(channel, message, headers)
    _push_checked(channel, route, message, keys, headers, not route.is_plain or len(keys) > 1)


def _push_checked(
    channel: Channel, route: Route, message: Message, keys: list[str], headers: fields.Table, is_to_route: bool
) -> None:
    """Push a message to the queues of the route, or to those that its keys and headers lead to."""
    trace = channel.vhost.trace
    if trace is not None:
        message = trace.numbered(message)
    rules = NO_RULES
    if not route.is_plain and channel.session.broker.faults.on_publish:
        rules = publish_faults.before_publish(channel, route, keys, headers, message)
    discard: Discard | None = None
    if rules:
        discard = publish_faults.discard(
            rules, lambda: channel.vhost.route(route.exchange, keys, headers, None)[0], route.exchange, headers
        )
    if discard is not None or not is_to_route:
        queues = () if discard is not None else route.queues
    elif len(keys) > KEYS_AT_ONCE:
        steps = _routing(channel, route, message, keys, headers, rules)
        channel.session.work(steps, wire.PUBLISH, channel.number)
        return
    else:
        queues = tuple(channel.vhost.route(route.exchange, keys, headers, message)[0])
        if not queues and isinstance(route.exchange, DelayedExchange) and not route.mandatory:
            _note_undelayed(channel, route.exchange, keys, headers)
    if _push_routed(channel, route, message, queues, rules, discard):
        channel.session.work(channel.session.broker.dead_lettering.until_routed(channel.vhost))


def _note_undelayed(channel: Channel, exchange: DelayedExchange, keys: Sequence[str], headers: fields.Table) -> None:
    """Report a message that a delayed exchange did not delay, and that no queue got."""
    if exchange.undelayed(headers) is not None and exchange.expects_queues:
        channel.session.broker.advice.on_unroutable(channel, exchange, keys[0])


def _routing(
    channel: Channel, route: Route, message: Message, keys: list[str], headers: fields.Table, rules: list[Rule]
) -> Steps[None]:
    """Find the queues of a message with many keys, in steps, and push it to them."""
    queues = tuple((yield from channel.vhost.routing(route.exchange, keys, headers, message)))
    # The connection may have ended meanwhile.
    if channel.session.channels.get(channel.number) is channel and _push_routed(
        channel, route, message, queues, rules, None
    ):
        yield from channel.session.broker.dead_lettering.until_routed(channel.vhost)


def _push_routed(
    channel: Channel,
    route: Route,
    message: Message,
    queues: tuple[Queue, ...],
    rules: list[Rule],
    discard: Discard | None,
) -> bool:
    """Push a message to its queues; return whether queues refused it, and it is still on its way (`until_routed`)."""
    trace = channel.vhost.trace
    if trace is not None:
        if channel.transaction is None:
            trace.published(channel.session, channel.number, message, queues, route.mandatory, discard)
        else:
            trace.published_in_transaction(channel.session, channel.number, message, queues, route.mandatory)
        if rules:
            publish_faults.report(channel, rules, message)
    if channel.transaction is not None:
        channel.transaction.publishes.append((message, route.exchange, queues, route.mandatory))
        return False
    if route is not channel.route:
        channel.take_route(route)
    dead_lettering = channel.session.broker.dead_lettering
    interruptions = dead_lettering.interruptions
    is_taken = push(channel, message, queues, route.mandatory and discard is None, channel.publisher)
    if discard is not None or queues is not route.queues:
        channel.run_start += 1
        if discard is not None and discard.is_nack:
            channel.count_refused(route.exchange)
        else:
            channel.count_published(route.exchange, message.routing_key, queues, route.mandatory)
    channel.count_publish()
    confirms = channel.confirms
    if confirms is not None:
        if not is_taken:
            confirms.reject()
        if trace is not None:
            confirms.traced[channel.publish_count] = message
    if rules:
        publish_faults.after_publish(channel, rules)
    return dead_lettering.interruptions != interruptions


def put(channel: Channel, address: Address, queue_name: str | None, content: bytes) -> None:
    """Publish and confirm a message of a shovel. The permissions of a user are not checked.

    It gets into the queue of this name, or without a name to the exchange of its address. Raise NotFound.
    """
    routes = channel.session.routes
    # No payload of a method begins like this.
    name = b"put %s %s" % (address.suffix, b"" if queue_name is None else queue_name.encode("utf-8", "surrogateescape"))
    route = routes.get(name)
    if route is None:
        route = _route_of_put(channel, address, queue_name)
        route_cache.keep(routes, name, route)
    traits = read_traits(channel, content[HEADER_START_BYTES : FRAME.size + FRAME.unpack_from(content)[2]])
    _require_readable(traits)
    message = _message(channel, route, traits, content, ())
    headers: fields.Table = {}
    if queue_name is None and traits.has_headers:
        headers = message.properties().headers or {}
    gate, journal = channel.gate, channel.session.broker.journal
    gate.journal_bytes_before = journal.journal_bytes
    _push_checked(channel, route, message, [address.routing_key], headers, queue_name is None)
    gate.confirm_all()


def _route_of_put(channel: Channel, address: Address, queue_name: str | None) -> Route:
    """Return the route of a message that is put into a queue, or (None) to an exchange. Raise NotFound."""
    vhost = channel.vhost
    if queue_name is None:
        exchange = vhost.exchange(address.exchange)
        return Route(address, exchange, False, (), is_plain=False)
    queue = vhost.queue(queue_name)
    exchange = vhost.exchanges.get(address.exchange) or vhost.exchanges[""]
    return Route(address, exchange, False, (queue,), is_plain=False)


def _message(channel: Channel, route: Route, traits: Traits, content: bytes, blind_keys: Sequence[str]) -> Message:
    if traits.expiration_ms is None and not blind_keys:
        return Message(route.address, content, channel.number, traits.is_persistent)
    return SpecialMessage(
        route.address,
        content,
        channel.number,
        traits.is_persistent,
        expiration_ms=traits.expiration_ms,
        blind_keys=blind_keys,
    )


def push(
    channel: Channel, message: Message, queues: tuple[Queue, ...], mandatory: bool, publisher: Publisher | None
) -> bool:
    """Push a message to its queues, or return it to its publisher if it is mandatory and there are none.

    Return False if a queue refused it (`offer`).
    """
    is_taken = offer(channel.session.broker, message, queues, publisher)
    channel.spend(len(queues), message.content)
    if mandatory and not queues:
        frame = wire.return_frame(channel.number, NO_ROUTE, "NO_ROUTE", message.address)
        channel.session.outbox.append(frame, message.content_for(channel.number, channel.session.frame_max))
        if channel.vhost.trace is not None:
            channel.vhost.trace.returned(channel.session, channel.number, message, NO_ROUTE, "NO_ROUTE")
    return is_taken


def _decode_publish(method: bytes) -> tuple[str, str, bool]:
    """Return exchange, routing key and mandatory of a basic.publish payload. Raise FrameError and NotImplemented_.

    The routing key may be any octets: RabbitMQ checks names for UTF-8, but not routing keys.
    """
    exchange_end = 7 + method[6] if len(method) > 6 else 0
    key_end = exchange_end + 1 + method[exchange_end] if len(method) > exchange_end > 0 else 0
    if key_end == 0 or len(method) != key_end + 1:
        raise FrameError(f"cannot decode <<{','.join(map(str, method[4:]))}>>")
    bits = method[key_end]
    if bits & 2:
        raise NotImplemented_("immediate=true")
    exchange = method[7:exchange_end].decode("utf-8", "surrogateescape")
    routing_key = method[exchange_end + 1 : key_end].decode("utf-8", "surrogateescape")
    return exchange, routing_key, bool(bits & 1)


def _resolve(channel: Channel, method: bytes) -> Route:
    """Return the route of a method payload. Raise AccessRefused, NotFound, NotImplemented_ and FrameError."""
    name, routing_key, mandatory = _decode_publish(method)
    vhost, user = channel.vhost, user_of(channel)
    exchange = checked_publish.exchange_to_publish_to(vhost, user, name)
    queues, by_message = vhost.route(exchange, (routing_key,), {}, None)
    # A policy can change the answer; it empties the route caches.
    is_recorded = isinstance(vhost.trace, Recorder)
    is_plain = (
        bool(queues or not mandatory)
        and not by_message
        and (exchange.type != "topic" or user.may_topic("write", vhost.name, name, routing_key))
        and not vhost.broker.settings.intercepts
        and not vhost.broker.faults.concerns_publish(vhost.name, name, routing_key, user.name)
        and not any(queue.settings.rejects_publish for queue in queues)
        and (vhost.trace is None or is_recorded)
    )
    if not queues and not mandatory and not is_reply(name, routing_key) and exchange.type != "x-delayed-message":
        if exchange.expects_queues:
            exchange.unroutable_key = routing_key
        else:
            exchange.had_no_subscribers = True
    address = Address(name, routing_key, names=method[6:-1])
    return Route(address, exchange, mandatory, tuple(queues), is_plain, is_recorded)


def _check_special(
    channel: Channel, route: Route, traits: Traits, properties: Properties, content: bytes, keys: list[str]
) -> tuple[bytes, list[str]]:
    """Check the properties that affect publishing, and add the keys of CC and BCC to `keys`.

    Return the content to keep, and the keys of BCC.
    """
    reply_to = _reply_to(channel, properties.reply_to)
    blind_keys = checked_publish.check_properties(
        channel.vhost, user_of(channel), route.exchange, properties, traits.expiration_ms, keys
    )
    if reply_to is not None or "BCC" in (properties.headers or {}):
        content = _rewritten(content, reply_to)
    return content, blind_keys


def _reply_to(channel: Channel, reply_to: str | None) -> str | None:
    """Return the name that replaces the pseudo-queue for direct replies, or None for any other reply-to."""
    return _reply_name(channel) if reply_to == REPLY_TO else None


def _reply_name(channel: Channel) -> str:
    if channel.reply_name is None:
        raise PreconditionFailed("fast reply consumer does not exist")
    return channel.reply_name


def _with_reply_to(content: bytes, name: str) -> bytes:
    """Return the content's frames with this reply-to instead of the pseudo-queue's."""
    header_end = FRAME.size + FRAME.unpack_from(content)[2]
    at = content.find(_REPLY_TO_OCTETS, HEADER_START_BYTES, header_end)
    end = at + len(_REPLY_TO_OCTETS)
    if content.find(_REPLY_TO_OCTETS, at + 1, header_end) >= 0:
        # Another property or a header has the same octets.
        return _rewritten(content, name)
    return with_property_list(content, content[HEADER_START_BYTES:at] + shortstr(name) + content[end:header_end])


def _intercepted(channel: Channel, message: Message, headers: fields.Table) -> tuple[Message, fields.Table]:
    """Return the message with the time and node of its publish, and the headers that bindings see."""
    message = interceptors.intercept(channel.session.broker, message)
    node = (message.properties().headers or {}).get(interceptors.NODE_HEADER)
    if node is not None:
        headers = {**headers, interceptors.NODE_HEADER: node}
    return message, headers


def _rewritten(content: bytes, reply_to: str | None) -> bytes:
    """Return the content's frames with another reply-to. The BCC header is removed: no recipient may see it."""
    header_end = FRAME.size + FRAME.unpack_from(content)[2]
    properties = Properties.decode(content[FRAME.size : header_end], CONTENT.size)
    if reply_to is not None:
        properties.reply_to = reply_to
    if properties.headers is not None:
        properties.headers.pop("BCC", None)
    return with_property_list(content, properties.encode())
