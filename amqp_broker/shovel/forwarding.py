"""Changes that a shovel makes to messages: properties, and headers that name the shovel.

A message whose shovel changes nothing keeps its octets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amqp_broker.amqp import fields
from amqp_broker.shovel.shovel_definition import LOCAL

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message, Properties
    from amqp_broker.shovel.shovel import Shovel

FORWARD_HEADER: Final = "x-shovelled"
INVALID_HEADERS: Final = "x-invalid-headers"
TIMESTAMP_HEADER: Final = "x-shovelled-timestamp"
LOCAL_TIMESTAMP_HEADER: Final = "x-opt-shovelled-timestamp"


def changed(shovel: Shovel, message: Message) -> Message:
    """Return the message with the definition's properties and headers, or unchanged to the octet."""
    definition = shovel.definition
    adds_headers = definition.adds_forward_headers or definition.adds_timestamp_header
    if not definition.publish_properties and not adds_headers:
        return message
    properties: Properties = message.properties()
    for name, value in definition.publish_properties.items():
        setattr(properties, name, value)
    if adds_headers:
        properties.headers = {**(properties.headers or {}), **_headers(shovel, properties.headers or {})}
    return message.with_properties(properties)


def _headers(shovel: Shovel, before: fields.Table) -> fields.Table:
    """Return the headers that the definition adds to these; those of a local destination have other names."""
    if shovel.definition.destination.protocol == LOCAL:
        return _local_headers(shovel)
    definition, added = shovel.definition, dict[str, Any]()
    if definition.adds_timestamp_header:
        added[TIMESTAMP_HEADER] = fields.Long(shovel.now() // 1000)
    if definition.adds_forward_headers:
        tables = before.get(FORWARD_HEADER)
        if tables is not None and not isinstance(tables, list):
            # A header of another kind is kept among the invalid ones, as RabbitMQ does.
            others = before.get(INVALID_HEADERS)
            added[INVALID_HEADERS] = {**(others if isinstance(others, dict) else {}), FORWARD_HEADER: [tables]}
            tables = []
        added[FORWARD_HEADER] = [forward_header(shovel), *(tables or [])]
    return added


def _local_headers(shovel: Shovel) -> fields.Table:
    added = dict[str, Any]()
    if shovel.definition.adds_forward_headers:
        added["x-opt-shovelled-by"] = shovel.cluster_name
        added["x-opt-shovel-type"] = shovel.definition.type
        added["x-opt-shovel-name"] = shovel.name
    if shovel.definition.adds_timestamp_header:
        added[LOCAL_TIMESTAMP_HEADER] = fields.Long(shovel.now())
    return added


def forward_header(shovel: Shovel) -> dict[str, str]:
    """Return the table that says which shovel has forwarded a message, from where and to where."""
    source, destination = shovel.definition.source, shovel.definition.destination
    is_static = shovel.definition.static is not None
    # RabbitMQ shows the exchange of a local destination together with a key only, and none of a static shovel.
    is_shown = not is_static and (
        destination.protocol != LOCAL or None not in (destination.exchange, destination.routing_key)
    )
    table = {
        "shovelled-by": shovel.cluster_name,
        "shovel-type": shovel.definition.type,
        "shovel-name": shovel.name,
        "shovel-vhost": None if is_static else shovel.vhost,
        "src-uri": source.shown_uri,
        "dest-uri": destination.shown_uri,
        "src-queue": None if is_static else source.queue,
        "src-exchange": source.exchange,
        "src-exchange-key": source.routing_key,
        "dest-queue": destination.queue,
        "dest-exchange": destination.exchange if is_shown else None,
        "dest-exchange-key": destination.routing_key if is_shown else None,
    }
    return {key: value for key, value in table.items() if value is not None}
