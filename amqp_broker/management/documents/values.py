"""Field tables as JSON, and JSON as field tables, in RabbitMQ's mapping.

A JSON integer becomes a long, a number with a point a double. The way back loses the type of integers, and the
difference between octets and text, and between times and numbers. Source: rabbit_misc.erl, to_amqp_table, amqp_table.
"""

from __future__ import annotations

import math
from typing import Any, Final

from amqp_broker.amqp import fields, nested
from amqp_broker.amqp.errors import InvalidParameter

# Octets of a shortstr: the key of a field, a name, a routing key.
SHORTSTR_BYTES_MAX: Final = 255
LONG_MIN: Final = -(1 << 63)
LONG_MAX: Final = (1 << 63) - 1
TIMESTAMP_MAX: Final = (1 << 64) - 1
# Levels of a value in the answers of this broker's own endpoints: libraries for JSON take 64 at least, with what is
# around. RabbitMQ's API shows all levels, and so does this broker there.
LEVELS_MAX: Final = 50
TOO_DEEP: Final = f"nested deeper than {LEVELS_MAX} levels: basic.get delivers it whole"
# Erlang's atom for void, as JSON.
UNDEFINED: Final = "undefined"


def table_of(value: Any) -> fields.Table:
    """Return the field table of a JSON object; null and [] are empty tables. Raise InvalidParameter.

    RabbitMQ refuses null in a table; here it is `void`, so that an import restores any exported table.
    """
    if value is None or value == []:
        return {}
    if not isinstance(value, dict):
        raise InvalidParameter(f"arguments should be a dictionary, actually was {fields.json_term(value)}")
    return {_key(key): _field(item, key) for key, item in value.items()}


def json_of(value: Any) -> Any:
    """Return a field, or a table of fields, as JSON; octets that are not UTF-8 become U+FFFD."""
    return nested.mapped(value, text_of, _json_of_leaf)


def shown(value: Any) -> Any:
    """Return a field, or a table of fields, as JSON that any library reads, without its deepest levels."""
    return json_of(nested.cut(value, LEVELS_MAX, TOO_DEEP))


def json_of_table(table: Any) -> Any:
    """Return a table of fields as the JSON of RabbitMQ's API, in which void is the text "undefined"."""
    return nested.mapped(table, text_of, lambda value: UNDEFINED if value is None else _json_of_leaf(value))


def _json_of_leaf(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text_of(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, fields.Decimal):
        return float(value.unscaled / 10**value.scale)
    if isinstance(value, float):
        # JSON has no infinity and no NaN.
        return float(value) if math.isfinite(value) else None
    return int(value)


def text_of(text: str) -> str:
    """Return text of AMQP as text of JSON: octets that are not UTF-8 become U+FFFD."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _field(value: Any, key: str) -> Any:
    def leaf(item: Any) -> Any:
        if isinstance(item, bool) or not isinstance(item, int):
            return item
        if LONG_MIN <= item <= LONG_MAX:
            return fields.Long(item)
        if LONG_MAX < item <= TIMESTAMP_MAX:
            # Only a time can have been exported so.
            return fields.Timestamp(item)
        raise InvalidParameter(f"argument '{key}' is {item}, which 64 bits do not hold")

    return nested.mapped(value, _key, leaf)


def _key(key: str) -> str:
    if len(key.encode()) > SHORTSTR_BYTES_MAX:
        raise InvalidParameter(f"argument '{key[:20]}…' has a name longer than {SHORTSTR_BYTES_MAX} octets")
    return key


def has_null(value: Any) -> bool:
    """Return whether there is a null in an object or an array, at any depth."""
    rest = [value]
    while rest:
        outer = rest.pop()
        within = outer.values() if isinstance(outer, dict) else outer if isinstance(outer, list) else ()
        for item in within:
            if item is None:
                return True
            rest.append(item)
    return False
