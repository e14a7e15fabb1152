"""JSON: what the API answers, as octets, and field tables in both directions.

A name or a value of AMQP may be any octets; those that are no UTF-8 become U+FFFD, as RabbitMQ's encoder has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from amqp_broker import fields
from amqp_broker.management.request import bad_request

# As deep as a field table may come from a client.
DEPTH_MAX: Final = fields.DEPTH_MAX
_LONG_MIN: Final = -(2**63)
_LONG_MAX: Final = 2**63 - 1
_SCALE_MAX: Final = 300
_KEY_BYTES_MAX: Final = 255

_encode: Final = msgspec.json.Encoder().encode


def encode(value: Any) -> bytes:
    """A value as JSON."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(_readable(value))


def text(value: str) -> str:
    """A name as JSON shows it: octets that are no UTF-8 replaced."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping):
        return {text(key): _readable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_readable(item) for item in value]
    return value


def of_table(table: Mapping[str, Any]) -> dict[str, Any]:
    """A field table as JSON has it (rabbit_mgmt_format.erl, amqp_table): types are lost, octets become text."""
    return {key: of_field(value) for key, value in table.items()}


def of_field(value: fields.Value) -> Any:
    """A field as JSON has it: a timestamp is its seconds, a decimal a number."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, fields.Decimal):
        return value.unscaled / 10**value.scale if value.scale <= _SCALE_MAX else 0.0
    if isinstance(value, list):
        return [of_field(item) for item in value]
    return of_table(value)


def to_table(value: Any) -> fields.Table:
    """An object of JSON as the field table that RabbitMQ makes of it (rabbit_misc:to_amqp_table). Raises Refusal.

    Whole numbers are `long`, others `double`; null is refused. Nothing at all and `[]` are an empty table.
    """
    if value is None or value == []:
        return {}
    if not isinstance(value, dict):
        raise bad_request("arguments must be a JSON object")
    return {_key(key): _to_field(item, 1) for key, item in value.items()}


def _key(key: str) -> str:
    if len(key.encode()) > _KEY_BYTES_MAX:
        raise bad_request("a key of a table has 255 octets at most")
    return key


def _to_field(value: Any, depth: int) -> fields.Value:
    if value is None:
        raise bad_request("null_not_allowed")
    if isinstance(value, (str, bool, float)):
        return value
    if isinstance(value, int):
        if not _LONG_MIN <= value <= _LONG_MAX:
            raise bad_request("a whole number of a table has 64 bits at most")
        return fields.Long(value)
    if depth == DEPTH_MAX:
        raise bad_request("arguments are nested too deep")
    if isinstance(value, list):
        return [_to_field(item, depth + 1) for item in value]
    return {_key(key): _to_field(item, depth + 1) for key, item in value.items()}
