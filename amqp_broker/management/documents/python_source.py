"""Values as Python's source, on one line and without characters that a reader does not see."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.amqp.fields import Decimal, Timestamp

# Imports of a module, by the words that need them.
IMPORTS: Final = {
    "datetime.fromtimestamp(": "from datetime import UTC, datetime",
    "Decimal(": "from decimal import Decimal",
}
# The last second that Python has a datetime for: the end of the year 9999.
TIMESTAMP_MAX: Final = 253_402_300_799


def source(value: Any) -> str:
    """Return a value of a field table as Python's source. Raise InvalidParameter for one that a client cannot send."""
    if isinstance(value, Timestamp):
        if value > TIMESTAMP_MAX:
            raise InvalidParameter(f"pika cannot send the time {int(value)}")
        return f"datetime.fromtimestamp({int(value)}, UTC)"
    if isinstance(value, Decimal):
        return f"Decimal('{value.unscaled}E-{value.scale}')"
    if isinstance(value, bool) or value is None:
        return repr(value)
    if isinstance(value, int):
        return repr(int(value))
    if isinstance(value, float):
        if math.isnan(value):
            raise InvalidParameter("a test cannot expect NaN, which does not equal itself")
        return repr(float(value)) if math.isfinite(value) else f"float('{float(value)}')"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{source(key)}: {source(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(source(one) for one in value) + "]"
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidParameter(f"pika cannot send {value!r}, which is not UTF-8") from None
        # repr writes escapes for line breaks, and for characters that are not seen or change the direction.
        return repr(value)
    if isinstance(value, bytes):
        return repr(value)
    raise InvalidParameter(f"a test cannot have the value {value!r}")


def with_arguments(arguments: Mapping[str, Any]) -> str:
    """Return keyword arguments for the end of a call."""
    return "".join(f", {name}={source(value)}" for name, value in arguments.items())
