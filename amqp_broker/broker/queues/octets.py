"""The size of a message, as queues count it.

Quorum queues of RabbitMQ 4.3 count flags and list of the properties as they were published, and the body. Delivery
counts and deaths, which RabbitMQ adds to the headers later, do not count. Source: mc_amqpl.erl (size), rabbit_fifo.erl
(maybe_enqueue). All others count the body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqp_broker.amqp.message import CONTENT, FRAME, SpecialMessage
from amqp_broker.broker.queues.before_death import properties_before_death

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message


def octets_of(message: Message, with_properties: bool) -> int:
    """Return the size of the body, or that of properties and body."""
    if not with_properties:
        return message.body_bytes
    if isinstance(message, SpecialMessage) and message.has_died:
        return len(properties_before_death(message).encode()) + message.body_bytes
    header_bytes: int = FRAME.unpack_from(message.content)[2]
    return header_bytes - CONTENT.size + message.body_bytes
