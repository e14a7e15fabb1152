"""What a name in a path must be to be one of AMQP's."""

from __future__ import annotations

from typing import Final

from amqp_broker.management.request import bad_request

NAME_BYTES_MAX: Final = 255


def octets_of(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def check_name(field: str, name: str) -> None:
    """Raise Refusal, in RabbitMQ's words, for what is too long for a shortstr."""
    size = len(octets_of(name))
    if size > NAME_BYTES_MAX:
        raise bad_request(f"{field} should be less than 255 bytes, actually was {size}\n")
