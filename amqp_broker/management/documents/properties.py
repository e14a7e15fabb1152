"""Message properties in JSON, with the names of AMQP. Source: rabbit_mgmt_format.erl, to_basic_properties."""

from __future__ import annotations

from typing import Any, Final

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.amqp.message import PROPERTIES, Properties
from amqp_broker.management.documents.values import SHORTSTR_BYTES_MAX, has_null, table_of

TIMESTAMP_MAX: Final = (1 << 64) - 1
_NUMBERS: Final = {"octet": 255, "timestamp": TIMESTAMP_MAX}


class InvalidProperty(ValueError):
    """A property has a wrong value; `reason` is RabbitMQ's answer: a text, or the elements of an Erlang tuple."""

    def __init__(self, reason: Any, sentence: str = "") -> None:
        super().__init__(sentence or reason)
        self.reason = reason


def properties_of(given: Any) -> Properties:
    """Return the properties in a JSON object; other keys are ignored. Raise InvalidProperty."""
    if not isinstance(given, dict):
        raise InvalidProperty("properties must be an object")
    return Properties(**{name: _value(name, kind, given[name]) for name, _, kind in PROPERTIES if name in given})


def _value(name: str, kind: str, value: Any) -> Any:
    if kind == "table":
        return _headers(value)
    if kind == "shortstr":
        if not isinstance(value, str):
            raise InvalidProperty(["not_string", name], f"{name} must be a string")
        if len(value.encode()) > SHORTSTR_BYTES_MAX:
            raise InvalidProperty(f"{name} is longer than {SHORTSTR_BYTES_MAX} octets")
        return value
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidProperty(["not_int", name], f"{name} must be a whole number")
    if not 0 <= value <= _NUMBERS[kind]:
        raise InvalidProperty(f"{name} must be from 0 to {_NUMBERS[kind]}, actually was {value}")
    return value


def _headers(given: Any) -> fields.Table:
    if not isinstance(given, (dict, list)) or (isinstance(given, list) and given):
        raise InvalidProperty("headers must be an object")
    if has_null(given):
        raise InvalidProperty("null_not_allowed")
    try:
        return table_of(given)
    except InvalidParameter as error:
        raise InvalidProperty(str(error)) from None
