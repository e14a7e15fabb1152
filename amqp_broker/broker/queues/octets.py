"""The size of a message, as queues count it.

Quorum queues of RabbitMQ 4.3 count flags and list of the properties as they were published, and the body. Delivery
counts and deaths, which RabbitMQ adds to the headers later, do not count. Source: mc_amqpl.erl (size), rabbit_fifo.erl
(maybe_enqueue). All others count the body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amqp_broker.amqp.message import CONTENT, FRAME, SpecialMessage

if TYPE_CHECKING:
    from amqp_broker.amqp.fields import Table
    from amqp_broker.amqp.message import Message, Properties

# Starts of the headers with the history of a dead letter.
DEATH_HEADERS: Final = ("x-death", "x-first-death-", "x-last-death-")


def octets_of(message: Message, with_properties: bool) -> int:
    """Return the size of the body, or that of properties and body."""
    if not with_properties:
        return message.body_bytes
    if isinstance(message, SpecialMessage) and message.has_died:
        return len(_before_deaths(message).encode()) + message.body_bytes
    header_bytes: int = FRAME.unpack_from(message.content)[2]
    return header_bytes - CONTENT.size + message.body_bytes


def with_expiration(message: SpecialMessage) -> Message:
    """Return a dead letter with the expiration that it had before it died."""
    properties = message.properties()
    expiration = _original_expiration(properties.headers or {})
    if expiration is None:
        return message
    properties.expiration = expiration
    return message.with_properties(properties)


def _before_deaths(message: SpecialMessage) -> Properties:
    """Return the properties of a dead letter with its expiration and without its history."""
    properties = message.properties()
    headers = properties.headers or {}
    properties.expiration = _original_expiration(headers) or properties.expiration
    properties.headers = {key: value for key, value in headers.items() if not key.startswith(DEATH_HEADERS)} or None
    return properties


def _original_expiration(headers: Table) -> str | None:
    """Return the expiration of the oldest death that has one."""
    deaths = headers.get("x-death")
    expirations = [
        death["original-expiration"]
        for death in (deaths if isinstance(deaths, list) else ())
        if isinstance(death, dict) and isinstance(death.get("original-expiration"), str)
    ]
    return expirations[-1] if expirations else None
