"""Field tables as JSON, and JSON as field tables, in RabbitMQ's mapping.

An integer of JSON becomes a long, a number with a point a double. The way back forgets which of the many types an
integer had, that octets are no text, and that a time is no number. Source: rabbit_misc.erl, to_amqp_table, amqp_table.
"""

from __future__ import annotations

import math
from typing import Any, Final

from amqp_broker import fields
from amqp_broker.errors import InvalidParameter

# Octets of the key of a field, which is a shortstr, as names and routing keys are.
SHORTSTR_BYTES_MAX: Final = 255
LONG_MIN: Final = -(1 << 63)
LONG_MAX: Final = (1 << 63) - 1


def table_of(value: Any) -> fields.Table:
    """The field table that an object of JSON is; null and [] are empty ones. Raises InvalidParameter.

    RabbitMQ refuses null within; here it is `void`, so that whatever a client gave comes back from an export.
    """
    if value is None or value == []:
        return {}
    if not isinstance(value, dict):
        raise InvalidParameter(f"arguments should be a dictionary, actually was {fields.json_term(value)}")
    return {_key(key): _field(item, key, 1) for key, item in value.items()}


def json_of(value: Any) -> Any:
    """A field, or a table of them, as JSON; what is no text has a sign in the place of its octets."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text_of(value)
    if isinstance(value, dict):
        return {text_of(key): json_of(item) for key, item in value.items()}
    if isinstance(value, list):
        return [json_of(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, fields.Decimal):
        return float(value.unscaled / 10**value.scale)
    if isinstance(value, float):
        # JSON has no word for what is no number.
        return float(value) if math.isfinite(value) else None
    return int(value)


def text_of(text: str) -> str:
    """A text of AMQP as one of JSON: octets that are not UTF-8 have a sign in their place."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _field(value: Any, key: str, depth: int) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, (str, float)):
        return value
    if isinstance(value, int):
        if not LONG_MIN <= value <= LONG_MAX:
            raise InvalidParameter(f"argument '{key}' is {value}, which 64 bits do not hold")
        return fields.Long(value)
    if depth >= fields.DEPTH_MAX:
        raise InvalidParameter(f"argument '{key}' is nested deeper than {fields.DEPTH_MAX} levels")
    if isinstance(value, list):
        return [_field(item, key, depth + 1) for item in value]
    return {_key(name): _field(item, key, depth + 1) for name, item in value.items()}


def _key(key: str) -> str:
    if len(key.encode()) > SHORTSTR_BYTES_MAX:
        raise InvalidParameter(f"argument '{key[:20]}…' has a name longer than {SHORTSTR_BYTES_MAX} octets")
    return key
