"""The properties that a dead letter had before it died, read from its history.

Source: RabbitMQ, "Dead Letter Exchanges" (`x-death`, `original-expiration`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from amqp_broker.amqp.fields import Table
    from amqp_broker.amqp.message import Message, Properties, SpecialMessage

# Starts of the headers with the history of a dead letter.
_DEATH_HEADERS: Final = ("x-death", "x-first-death-", "x-last-death-")


def with_expiration(message: SpecialMessage) -> Message:
    """Return a dead letter with the expiration that it had before it died."""
    properties = message.properties()
    expiration = _original_expiration(properties.headers or {})
    if expiration is None:
        return message
    properties.expiration = expiration
    return message.with_properties(properties)


def properties_before_death(message: SpecialMessage) -> Properties:
    """Return the properties of a dead letter with its expiration and without its history."""
    properties = message.properties()
    headers = properties.headers or {}
    properties.expiration = _original_expiration(headers) or properties.expiration
    others = {key: value for key, value in headers.items() if not key.startswith(_DEATH_HEADERS)}
    properties.headers = others if others or message.had_empty_table else None
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
