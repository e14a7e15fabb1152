"""JSON of the API: answers as octets, and field tables in requests.

A name or a value of AMQP may be any octets; octets that are not UTF-8 become U+FFFD, as in RabbitMQ.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from amqp_broker.amqp import fields, nested
from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.management.documents import nested_json
from amqp_broker.management.documents.disposable import Disposable
from amqp_broker.management.documents.values import has_null, table_of, text_of
from amqp_broker.management.http.answers import bad_request

# Longer lists are encoded in steps, this many items at once.
ITEMS_MAX: Final = 32
# Depth of lists and objects down to which long lists are looked for.
DEPTH_MAX: Final = 4

_encode: Final = msgspec.json.Encoder().encode


def encode(value: Any) -> bytes:
    """Return a value as JSON."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, RecursionError):
        readable = _readable(value)
    try:
        return _encode(readable)
    except RecursionError:
        return nested_json.write(readable, lambda leaf: _encode(leaf).decode()).encode()


def encoded(value: Any) -> Steps[list[bytes]]:
    """Return `encode(value)` as parts, made in steps. Disposable lists are empty then, if they are long."""
    parts: list[bytes] = []
    yield from _add(parts, value, DEPTH_MAX)
    return parts


def _add(parts: list[bytes], value: Any, depth: int) -> Steps[None]:
    if not _is_long(value, depth):
        parts.append(encode(value))
        yield
    elif isinstance(value, Mapping):
        before = b"{"
        for key, item in value.items():
            parts.append(before + encode(key) + b":")
            yield from _add(parts, item, depth - 1)
            before = b","
        parts.append(b"}")
    else:
        items, before = value.taken() if isinstance(value, Disposable) else iter(value), b"["
        while some := list(islice(items, ITEMS_MAX)):
            if any(_is_long(item, depth - 1) for item in some):
                for item in some:
                    parts.append(before)
                    yield from _add(parts, item, depth - 1)
                    before = b","
            else:
                parts.append(before + encode(some)[1:-1])
                before = b","
                yield
        parts.append(b"]")


def _is_long(value: Any, depth: int) -> bool:
    """Return whether a value has a long list, or is one."""
    if not depth or not isinstance(value, (list, dict)):
        return False
    items = value if isinstance(value, list) else value.values()
    return len(value) > ITEMS_MAX * 2 or any(_is_long(item, depth - 1) for item in items)


def _readable(value: Any) -> Any:
    return nested.mapped(value, text_of, _readable_leaf)


def _readable_leaf(value: Any) -> Any:
    if isinstance(value, str):
        return text_of(value)
    if isinstance(value, Mapping):
        return _readable(dict(value))
    return _readable(list(value)) if isinstance(value, tuple) else value


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
