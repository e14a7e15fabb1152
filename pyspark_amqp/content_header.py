"""Content headers (AMQP 0-9-1 §4.2.6.1) to the properties and headers of a row, and back.

The decoder does not fail on invalid properties: it returns the valid ones with an error text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from struct import Struct
from struct import error as StructError
from typing import Any, Final

# In the order of their flags, from bit 15 down; `headers` is between the second and the third.
STRINGS: Final = (
    *("content_type", "content_encoding", "correlation_id", "reply_to", "expiration", "message_id"),
    *("type", "user_id", "app_id"),
)
NAMES: Final = (
    *("content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id", "reply_to"),
    *("expiration", "message_id", "timestamp", "type", "user_id", "app_id"),
)
FLAGS: Final = {name: 1 << (15 - index) for index, name in enumerate(NAMES)}
_PLAN: Final = tuple((index, name, FLAGS[name]) for index, name in enumerate(NAMES))
HEADERS: Final = NAMES.index("headers")
TIMESTAMP: Final = NAMES.index("timestamp")
# datetime ends with the year 9999, and so do the rows in Python.
TIMESTAMP_S_MAX: Final = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())
NESTING_MAX: Final = 100
STRING: Final = ord("S")

OFFSET_HEADER: Final = "x-stream-offset"
# The header's name and type as octets, and the position of its value in a table that begins with it.
OFFSET_ENTRY: Final = bytes((len(OFFSET_HEADER),)) + OFFSET_HEADER.encode() + b"l"
VALUE_AT: Final = 4 + len(OFFSET_ENTRY)
# Position of the flags in a content header, and of the first property.
PROPERTIES_AT: Final = 12
_FIRST_AT: Final = 14
_CONTENT_TYPE, _CONTENT_ENCODING, _HEADERS = 0b1000_0000, 0b0100_0000, 0b0010_0000

_U16, _U32, _U64 = Struct(">H"), Struct(">I"), Struct(">Q")
_START: Final = Struct(">HHQH")
# By octet, as RabbitMQ reads and writes them, which differs from the specification.
_FIXED: Final[dict[int, tuple[Struct, Callable[[Any], Any]]]] = {
    ord("t"): (Struct(">B"), bool),
    ord("b"): (Struct(">b"), int),
    ord("B"): (Struct(">B"), int),
    ord("s"): (Struct(">h"), int),
    ord("U"): (Struct(">h"), int),
    ord("u"): (_U16, int),
    ord("I"): (Struct(">i"), int),
    ord("i"): (_U32, int),
    ord("l"): (Struct(">q"), int),
    ord("L"): (Struct(">q"), int),
    ord("f"): (Struct(">f"), float),
    ord("d"): (Struct(">d"), float),
    ord("T"): (_U64, int),
}


class Malformed(ValueError):
    """The octets are not valid properties or not a valid table."""


class TooDeep(Malformed):
    """The octets are tables or arrays in more than NESTING_MAX others."""


class Binary(bytes):
    """A value of AMQP's type for octets."""


class Nested(bytes):
    """The octets of a table or an array with too many others inside."""


def decode_table(octets: bytes, start: int = 0, depth: int = 0) -> tuple[dict[str, Any], int]:
    """Return a field table, which starts with its length, and its end.

    Invalid UTF-8 remains `bytes`, and an entry that is nested too deep is `Nested`. Raise Malformed.
    """
    try:
        (size,) = _U32.unpack_from(octets, start)
        at, end = start + 4, start + 4 + size
        if end > len(octets):
            raise Malformed("a table that is too long")
        if depth > NESTING_MAX:
            raise TooDeep
        table: dict[str, Any] = {}
        while at < end:
            length = octets[at]
            at += 1 + length
            name = octets[at - length : at].decode("utf-8", "backslashreplace")
            if octets[at] == STRING:
                # Most keys and values are, and this is by far the fastest way.
                last = at + 5 + _U32.unpack_from(octets, at + 1)[0]
                if last <= end:
                    try:
                        table[name] = octets[at + 5 : last].decode()
                        at = last
                        continue
                    except UnicodeDecodeError:
                        pass
            try:
                table[name], at = _decode_value(octets, at, depth)
            except TooDeep:
                if depth:
                    raise
                last = at + 5 + _U32.unpack_from(octets, at + 1)[0]
                table[name], at = Nested(octets[at:last]), last
        if at != end:
            raise Malformed("a table whose length is wrong")
    except (StructError, IndexError):
        raise Malformed("a table that is cut off") from None
    return table, end


def _decode_value(octets: bytes, at: int, depth: int) -> tuple[Any, int]:
    kind = octets[at]
    at += 1
    if kind in _FIXED:
        struct, convert = _FIXED[kind]
        return convert(struct.unpack_from(octets, at)[0]), at + struct.size
    if kind == ord("V"):
        return None, at
    if kind == ord("D"):
        scale, (value,) = octets[at], Struct(">i").unpack_from(octets, at + 1)
        return Decimal(value).scaleb(-scale), at + 5
    if kind == ord("F"):
        return decode_table(octets, at, depth + 1)
    (size,) = _U32.unpack_from(octets, at)
    at, end = at + 4, at + 4 + size
    if end > len(octets):
        raise Malformed("a value that is too long")
    if kind == ord("x"):
        return Binary(octets[at:end]), end
    if kind == STRING:
        value = octets[at:end]
        try:
            return value.decode(), end
        except UnicodeDecodeError:
            return value, end
    if kind != ord("A"):
        raise Malformed(f"a value of the unknown type {kind:#04x}")
    if depth > NESTING_MAX:
        raise TooDeep
    values = []
    while at < end:
        value, at = _decode_value(octets, at, depth + 1)
        values.append(value)
    return values, end


@cache
def _present(flags: int) -> list[tuple[int, str]]:
    """Return positions and names of the properties that are present."""
    return [(index, name) for index, name, flag in _PLAN if flags & flag]


def decode(header: bytes, allows_ms: bool = False) -> tuple[list[Any], str | None]:
    """Return the values of a content header frame's payload by `NAMES`, and an error text or None.

    `headers` is the table's octets. `timestamp` is milliseconds since 1970, although AMQP has seconds. With
    `allows_ms`, a number that is too large for seconds is one of milliseconds.
    """
    values: list[Any] = [None] * len(NAMES)
    problem = None
    try:
        (flags,) = _U16.unpack_from(header, 12)
        at = 14
        for index, name in _present(flags):
            if index == HEADERS:
                end = at + 4 + _U32.unpack_from(header, at)[0]
                if end > len(header):
                    raise Malformed("headers that are cut off")
                values[index] = header[at:end]
                at = end
            elif name in ("delivery_mode", "priority"):
                values[index] = header[at]
                at += 1
            elif index == TIMESTAMP:
                (seconds,) = _U64.unpack_from(header, at)
                at += 8
                if seconds <= TIMESTAMP_S_MAX:
                    values[index] = seconds * 1000
                elif allows_ms and seconds <= TIMESTAMP_S_MAX * 1000:
                    values[index] = seconds
                else:
                    problem = f"timestamp {seconds} is after the year 9999"
            else:
                length = header[at]
                at += 1 + length
                octets = header[at - length : at]
                if len(octets) < length:
                    raise Malformed(f"{name} is cut off")
                try:
                    values[index] = octets.decode()
                except UnicodeDecodeError:
                    values[index] = octets.decode("utf-8", "backslashreplace")
                    problem = f"{name} is not UTF-8"
    except (StructError, IndexError):
        problem = "properties that are cut off"
    except Malformed as malformed:
        problem = str(malformed)
    return values, problem


def offset_at(header: bytes) -> int:
    """Return the position of the offset's 8 octets, or 0 if it is not the first of the headers."""
    if len(header) < _FIRST_AT:
        return 0
    flags, at = header[PROPERTIES_AT], _FIRST_AT
    if not flags & _HEADERS:
        return 0
    if flags & (_CONTENT_TYPE | _CONTENT_ENCODING):
        for flag in (_CONTENT_TYPE, _CONTENT_ENCODING):
            if flags & flag and at < len(header):
                at += 1 + header[at]
    return at + VALUE_AT if header.startswith(OFFSET_ENTRY, at + 4) else 0


def as_text(value: Any) -> str:
    """Return a header's value as text: strings unchanged, octets with backslashes, other values as JSON.

    In a table or an array, a decimal is a JSON string, as JSON's readers would make a float of a number.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value) if type(value) in (int, Decimal) else _as_json(value)


_as_json: Final = json.JSONEncoder(default=as_text, ensure_ascii=False).encode


def encode(values: Mapping[str, Any], body_size: int) -> bytes:
    """Return the payload of a content header frame with these properties, without those that are None.

    `headers` is the octets of a table. Raise ValueError that names an invalid property.
    """
    flags, parts = 0, []
    for _, name, flag in _PLAN:
        value = values.get(name)
        if value is None:
            continue
        flags |= flag
        if name == "headers":
            parts.append(value)
        elif name in ("delivery_mode", "priority"):
            if not 0 <= value <= 255:
                raise ValueError(f"{name} must be from 0 to 255, not {value}")
            parts.append(bytes((value,)))
        elif name == "timestamp":
            if value < 0:
                raise ValueError("timestamp is before 1970, which AMQP cannot represent")
            parts.append(_U64.pack(value))
        else:
            parts.append(short_string(value, name))
    return _START.pack(60, 0, body_size, flags) + b"".join(parts)


def short_string(text: str, name: str) -> bytes:
    """Return the encoded string. Raise ValueError if it is longer than 255 octets."""
    octets = text.encode()
    if len(octets) > 255:
        raise ValueError(f"{name} has {len(octets)} octets; AMQP allows 255")
    return bytes((len(octets),)) + octets


def encode_texts(table: Mapping[str, str | None]) -> bytes:
    """Return the field table of these strings with its length. Raise ValueError for the name of a header."""
    parts = []
    for name, value in table.items():
        parts.append(short_string(name, "the name of a header"))
        if value is None:
            parts.append(b"V")
        else:
            octets = value.encode()
            parts.append(b"S" + _U32.pack(len(octets)) + octets)
    octets = b"".join(parts)
    return _U32.pack(len(octets)) + octets
