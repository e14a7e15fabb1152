"""The checks of basic.publish, and publishing without a channel, as over HTTP.

The checks are in RabbitMQ's order (rabbit_channel.erl, basic.publish). A session, which knows most of their results
from the route of the message, makes them one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import AccessRefused, PreconditionFailed
from amqp_broker.amqp.message import (
    EXPIRATION_MAX_MS,
    Address,
    Message,
    Properties,
    SpecialMessage,
    normal_list,
    parse_expiration,
)
from amqp_broker.broker.admin.access import IMPERSONATOR
from amqp_broker.broker.operations.interceptors import intercept
from amqp_broker.broker.queues.refused_publishers import Publisher
from amqp_broker.broker.queues.reply import REPLY_TO
from amqp_broker.broker.routing.route import offer
from amqp_broker.broker.scheduling.portions import Steps, finished

if TYPE_CHECKING:
    from amqp_broker.broker.admin.access import User
    from amqp_broker.broker.clients.peer import Peer
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.vhost import VHost


def exchange_to_publish_to(vhost: VHost, user: User, name: str) -> Exchange:
    """Return the exchange of that name. Raises AccessRefused if the user may not publish to it, and NotFound."""
    user.require("write", vhost.name, "exchange", name)
    exchange = vhost.exchange(name)
    if exchange.is_internal:
        raise AccessRefused(f"cannot publish to internal {exchange}")
    return exchange


def check_size(vhost: VHost, body_bytes: int) -> None:
    """Raise PreconditionFailed for a body that is too large."""
    bytes_max = vhost.broker.settings.message_bytes_max
    if body_bytes > bytes_max:
        raise PreconditionFailed(f"message size {body_bytes} is larger than configured max size {bytes_max}")


def bad_expiration(expiration: str) -> PreconditionFailed:
    """Return the error for an invalid expiration, with the reason that Erlang's string:to_integer gives."""
    digits = expiration.lstrip("+-")
    sign = expiration[: len(expiration) - len(digits)]
    number = len(digits) - len(digits.lstrip("0123456789"))
    if not number or len(sign) > 1:
        reason = "no_integer"
    elif number < len(digits):
        reason = f'{{leftover_string,"{digits[number:]}"}}'
    elif sign == "-":
        reason = f"{{value_negative,{int(expiration)}}}"
    else:
        assert int(digits) > EXPIRATION_MAX_MS
        reason = f"{{value_too_large,{int(digits)}}}"
    return PreconditionFailed(f"invalid expiration '{expiration}': {reason}")


def further_keys(headers: fields.Table, name: str) -> list[str]:
    """Return the routing keys in a CC or BCC header. Raises PreconditionFailed."""
    if name not in headers:
        return []
    value = headers[name]
    if not isinstance(value, list):
        raise PreconditionFailed(f'invalid message: {{unacceptable_type_in_header,"{name}",{fields.type_name(value)}}}')
    # RabbitMQ ignores elements of other types.
    return [key for key in value if isinstance(key, str)]


def check_topics(vhost: VHost, user: User, exchange: Exchange, routing_keys: Iterable[str]) -> None:
    """Raise AccessRefused for a routing key that the user may not write."""
    if exchange.type == "topic":
        for routing_key in routing_keys:
            user.require_topic("write", vhost, exchange.name, routing_key)


def check_user_id(user: User, user_id: str | None) -> None:
    """Raise PreconditionFailed for the name of another user."""
    if user_id is not None and user_id != user.name and IMPERSONATOR not in user.tags:
        raise PreconditionFailed(f"user_id property set to '{user_id}' but authenticated user was '{user.name}'")


def check_properties(
    vhost: VHost,
    user: User,
    exchange: Exchange,
    properties: Properties,
    expiration_ms: int | None,
    keys: list[str],
) -> list[str]:
    """Check the properties that affect publishing, and return the routing keys of BCC.

    These, and those of CC, are added to `keys`. `expiration_ms` is None for no or an invalid expiration. Raise
    PreconditionFailed and AccessRefused.
    """
    rights_last = vhost.broker.profile.checks_rights_last
    if not rights_last:
        check_topics(vhost, user, exchange, keys)
        check_user_id(user, properties.user_id)
    if properties.expiration is not None and expiration_ms is None:
        raise bad_expiration(properties.expiration)
    headers = properties.headers or {}
    keys += further_keys(headers, "CC")
    blind_keys = further_keys(headers, "BCC")
    keys += blind_keys
    if rights_last:
        check_topics(vhost, user, exchange, keys)
        check_user_id(user, properties.user_id)
    return blind_keys


class Published(NamedTuple):
    """The result of publishing a message: its queues, and whether all of them took it."""

    queues: list[Queue]
    is_taken: bool


def publish(
    vhost: VHost, connection: Peer, exchange_name: str, routing_key: str, properties: Properties, body: bytes
) -> Published:
    """Do `publishing` at once."""
    return finished(publishing(vhost, connection, exchange_name, routing_key, properties, body))


def publishing(
    vhost: VHost, connection: Peer, exchange_name: str, routing_key: str, properties: Properties, body: bytes
) -> Steps[Published]:
    """Publish a message without a channel, in steps if it has many keys; `connection` names the publisher in traces.

    Raises AccessRefused, NotFound and PreconditionFailed as basic.publish does.
    """
    user = connection.user
    assert user is not None
    check_size(vhost, len(body))
    exchange = exchange_to_publish_to(vhost, user, exchange_name)
    if properties.reply_to == REPLY_TO:
        raise PreconditionFailed("fast reply consumer does not exist")
    expiration_ms = parse_expiration(properties.expiration)
    headers = dict(properties.headers or {})
    keys = [routing_key]
    blind_keys = check_properties(vhost, user, exchange, properties, expiration_ms, keys)
    if properties.headers is not None:
        # A recipient must not see the other recipients.
        properties.headers.pop("BCC", None)
    if vhost.broker.profile.normalizes_properties:
        properties = Properties.decode(normal_list(properties, expiration_ms) or properties.encode())
    message = Message.build(Address(exchange_name, routing_key), properties, body)
    if expiration_ms is not None or blind_keys:
        special = SpecialMessage.of(message)
        special.expiration_ms, special.blind_keys = expiration_ms, blind_keys
        message = special
    if vhost.broker.settings.intercepts:
        message = intercept(vhost.broker, message)
    trace = vhost.trace
    if trace is not None:
        message = trace.numbered(message)
    queues = yield from vhost.routing(exchange, keys, headers, message)
    if trace is not None:
        trace.published(connection, 1, message, queues)
    is_taken = offer(vhost.broker, message, queues, Publisher())
    vhost.counts.add(exchange, queues, 1, True)
    if is_taken:
        for counts in vhost.counts.of_exchange(exchange):
            counts.confirm += 1
    if trace is not None:
        trace.confirmed(connection, 1, message, 1, is_taken)
    return Published(queues, is_taken)
