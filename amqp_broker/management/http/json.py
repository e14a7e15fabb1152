"""JSON of the API: answers as octets, and field tables in requests.

A name or a value of AMQP may be any octets; octets that are not UTF-8 become U+FFFD, as in RabbitMQ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.management.documents.values import has_null, table_of, text_of
from amqp_broker.management.http.answers import bad_request

_encode: Final = msgspec.json.Encoder().encode


def encode(value: Any) -> bytes:
    """Return a value as JSON."""
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
    """Return the field table of an object in a request. Raise Refusal for anything else.

    RabbitMQ refuses null here, other than in definitions, which must come back as they were exported.
    """
    if has_null(value):
        raise bad_request("null_not_allowed")
    try:
        return table_of(value)
    except InvalidParameter as error:
        raise bad_request(str(error)) from None
