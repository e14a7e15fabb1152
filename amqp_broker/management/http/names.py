"""Names in a request, checked against AMQP's bounds."""

from __future__ import annotations

from typing import Final

from amqp_broker.management.http.answers import bad_request

NAME_BYTES_MAX: Final = 255


def octets_of(name: str) -> bytes:
    """Return the octets of a name as they were in the path."""
    return name.encode("utf-8", "surrogateescape")


def check_name(field: str, name: str) -> None:
    """Raise Refusal, in RabbitMQ's words, for a name that is too long for a shortstr."""
    size = len(octets_of(name))
    if size > NAME_BYTES_MAX:
        raise bad_request(f"{field} should be less than 255 bytes, actually was {size}\n")
