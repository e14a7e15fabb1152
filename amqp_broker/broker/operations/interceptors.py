"""Interceptors of published messages, which note when and where a message was published.

Source: rabbit_msg_interceptor_timestamp.erl, rabbit_msg_interceptor_routing_node.erl, mc_amqpl.erl of RabbitMQ 4.3.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from amqp_broker.settings.settings import OVERWRITE

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Properties
    from amqp_broker.settings.settings import Settings

TIME_HEADER: Final = "timestamp_in_ms"
NODE_HEADER: Final = "x-routed-by"


class InterceptingBroker(Protocol):
    """The broker of a publisher."""

    now: int
    node: str

    @property
    def settings(self) -> Settings: ...


def intercept(broker: InterceptingBroker, properties: Properties) -> None:
    """Note the time and the node of a publish in its properties, as the settings say."""
    headers = dict(properties.headers or {})
    mode = broker.settings.publish_time_header
    if mode:
        if mode == OVERWRITE or TIME_HEADER not in headers:
            headers[TIME_HEADER] = broker.now
        if mode == OVERWRITE or properties.timestamp is None:
            properties.timestamp = broker.now // 1000
    mode = broker.settings.publish_node_header
    if mode and (mode == OVERWRITE or NODE_HEADER not in headers):
        headers[NODE_HEADER] = broker.node
    properties.headers = {key: headers[key] for key in sorted(headers)}
