"""Interceptors note when and where a message was published, and when it was delivered.

Source: rabbit_msg_interceptor_timestamp.erl, rabbit_msg_interceptor_routing_node.erl, mc_amqpl.erl of RabbitMQ 4.3.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amqp_broker.amqp import fields
from amqp_broker.amqp.stamped_message import StampedMessage
from amqp_broker.settings.settings import OVERWRITE

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.broker import Broker

TIME_HEADER: Final = "timestamp_in_ms"
NODE_HEADER: Final = "x-routed-by"
DELIVERY_HEADER: Final = "x-opt-rabbitmq-sent-time"


def intercept(broker: Broker, message: Message) -> Message:
    """Return a published message with its time and node, as the settings say."""
    properties = message.properties()
    timestamp = properties.timestamp
    headers = dict(properties.headers or {})
    mode = broker.settings.publish_time_header
    if mode:
        if mode == OVERWRITE or TIME_HEADER not in headers:
            headers[TIME_HEADER] = broker.now
        if mode == OVERWRITE or timestamp is None:
            properties.timestamp = broker.now // 1000
    mode = broker.settings.publish_node_header
    if mode and (mode == OVERWRITE or NODE_HEADER not in headers):
        headers[NODE_HEADER] = broker.node
    properties.headers = {key: headers[key] for key in sorted(headers)}
    intercepted = message.with_properties(properties)
    if properties.timestamp == timestamp:
        return intercepted
    properties.timestamp = timestamp
    return StampedMessage.with_list(intercepted, properties.encode())


def as_sent(broker: Broker, message: Message) -> Message:
    """Return a message as it is delivered now: with the time, if the settings say so."""
    if not broker.settings.delivery_time_header:
        return message
    properties = message.properties()
    headers = {**(properties.headers or {}), DELIVERY_HEADER: fields.Long(broker.now)}
    properties.headers = {key: headers[key] for key in sorted(headers)}
    return message.with_properties(properties)
