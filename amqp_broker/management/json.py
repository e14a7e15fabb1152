"""JSON: what the API answers, as octets, and the tables in what it is asked.

A name or a value of AMQP may be any octets; those that are no UTF-8 become U+FFFD, as RabbitMQ's encoder has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from amqp_broker import fields
from amqp_broker.errors import InvalidParameter
from amqp_broker.management.request import bad_request
from amqp_broker.management.values import table_of, text_of

_encode: Final = msgspec.json.Encoder().encode


def encode(value: Any) -> bytes:
    """A value as JSON."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(_readable(value))


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return text_of(value)
    if isinstance(value, Mapping):
        return {text_of(key): _readable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_readable(item) for item in value]
    return value


def to_table(value: Any) -> fields.Table:
    """The field table that an object in a request is. Raises Refusal.

    Unlike in definitions, which must come back as they were exported, null is refused, as RabbitMQ does.
    """
    if has_null(value):
        raise bad_request("null_not_allowed")
    try:
        return table_of(value)
    except InvalidParameter as error:
        raise bad_request(str(error)) from None


def has_null(value: Any, is_within: bool = False) -> bool:
    """Whether there is a null within an object or an array."""
    if isinstance(value, dict):
        return any(has_null(item, True) for item in value.values())
    if isinstance(value, list):
        return any(has_null(item, True) for item in value)
    return is_within and value is None
