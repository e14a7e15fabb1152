"""Headers with their AMQP types, in rows: a map from names to structs of a type and a text.

A map of strings loses the types. A variant would lose the unsigned ones, and is written by its binary format only. This
map keeps all types, plain SQL reads and makes it, and it goes through Parquet and other formats.

The types have Spark's names where there are such: `cast(headers['x-delay'].value AS int)`.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from decimal import Decimal
from struct import Struct
from struct import error as StructError
from typing import Any, Final, NamedTuple

from pyspark_amqp.content_header import Malformed, short_string

KIND: Final = "map<string,struct<type:string,value:string>>"
# JSON in JSON: with each level, the backslashes of the innermost text double. Deeper values stay encoded.
NESTING_MAX: Final = 10

# A type and its text, which for tables and arrays is JSON of such values, and for `encoded` Base64 of an AMQP value.
Value = Mapping[str, Any]


class InvalidHeader(ValueError):
    """A header cannot be written; the text names it."""


class Fixed(NamedTuple):
    """A type of fixed size: its octet and struct in AMQP, and what reads its text."""

    octet: bytes
    struct: Struct
    parse: Callable[[str], Any]


def _parse_boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


FIXED: Final = {
    "boolean": Fixed(b"t", Struct(">?"), _parse_boolean),
    "tinyint": Fixed(b"b", Struct(">b"), int),
    "unsigned tinyint": Fixed(b"B", Struct(">B"), int),
    "smallint": Fixed(b"s", Struct(">h"), int),
    "unsigned smallint": Fixed(b"u", Struct(">H"), int),
    "int": Fixed(b"I", Struct(">i"), int),
    "unsigned int": Fixed(b"i", Struct(">I"), int),
    "bigint": Fixed(b"l", Struct(">q"), int),
    "float": Fixed(b"f", Struct(">f"), float),
    "double": Fixed(b"d", Struct(">d"), float),
    # In seconds since 1970, as far as these may go.
    "timestamp": Fixed(b"T", Struct(">Q"), int),
}
# With the other octets that RabbitMQ reads for two of them.
_FIXED_BY_OCTET: Final = {
    **{fixed.octet[0]: (name, fixed.struct) for name, fixed in FIXED.items()},
    ord("U"): ("smallint", FIXED["smallint"].struct),
    ord("L"): ("bigint", FIXED["bigint"].struct),
}
_SIZED: Final = {ord("S"): "string", ord("x"): "binary", ord("F"): "table", ord("A"): "array"}
TYPES: Final = ("string", *FIXED, "decimal", "binary", "table", "array", "void", "encoded")
_U32: Final = Struct(">I")
_DECIMAL: Final = Struct(">Bi")


def read_table(octets: bytes) -> tuple[dict[str, Value], str | None]:
    """Return the headers of a field table that starts with its length, and a problem or None. Raise Malformed.

    A string that is not UTF-8 is a problem, and its octets have backslashes in the text.
    """
    reading = _Reading(octets)
    try:
        (size,) = _U32.unpack_from(octets)
        if size + 4 != len(octets):
            raise Malformed("a table whose length is wrong")
        return reading.table(4, len(octets), 0), reading.problem
    except (StructError, IndexError):
        raise Malformed("a table that is cut off") from None


class _Reading:
    def __init__(self, octets: bytes) -> None:
        self.octets = octets
        self.problem: str | None = None

    def table(self, at: int, end: int, depth: int) -> dict[str, Value]:
        table = {}
        while at < end:
            start = at + 1
            at = start + self.octets[at]
            name = self.octets[start:at].decode("utf-8", "backslashreplace")
            table[name], at = self.value(at, end, depth, name)
        return table

    def value(self, at: int, limit: int, depth: int, name: str) -> tuple[Value, int]:
        """Return the value at this position, which ends before the limit, and its end; `name` is for problems."""
        octets = self.octets
        kind = octets[at]
        at += 1
        text: str | None
        if kind in _FIXED_BY_OCTET:
            type_, struct = _FIXED_BY_OCTET[kind]
            end = at + struct.size
            number = struct.unpack_from(octets, at)[0]
            text = str(number).lower() if type_ == "boolean" else str(number)
        elif kind == ord("D"):
            scale, value = _DECIMAL.unpack_from(octets, at)
            type_, text, end = "decimal", str(Decimal(value).scaleb(-scale)), at + _DECIMAL.size
        elif kind == ord("V"):
            type_, text, end = "void", None, at
        elif kind in _SIZED:
            type_ = _SIZED[kind]
            start = at + 4
            end = start + _U32.unpack_from(octets, at)[0]
            if end > limit:
                raise Malformed("a value that is too long")
            if type_ in ("table", "array") and depth >= NESTING_MAX:
                return {"type": "encoded", "value": b64encode(octets[at - 1 : end]).decode()}, end
            text = self.sized(type_, start, end, depth, name)
        else:
            raise Malformed(f"a value of the unknown type {kind:#04x}")
        if end > limit:
            raise Malformed("a value that is cut off")
        return {"type": type_, "value": text}, end

    def sized(self, type_: str, at: int, end: int, depth: int, name: str) -> str:
        if type_ == "table":
            return json.dumps(self.table(at, end, depth + 1), ensure_ascii=False)
        if type_ == "array":
            values = []
            while at < end:
                value, at = self.value(at, end, depth + 1, name)
                values.append(value)
            return json.dumps(values, ensure_ascii=False)
        part = self.octets[at:end]
        if type_ == "binary":
            return b64encode(part).decode()
        try:
            return part.decode()
        except UnicodeDecodeError:
            self.problem = f"header {name} is not UTF-8"
            return part.decode("utf-8", "backslashreplace")


def write_table(table: Mapping[str, Value | None]) -> bytes:
    """Return the field table with its length. Raise ValueError that names the header."""
    parts = []
    for name, value in table.items():
        parts += [short_string(name, "the name of a header"), _written(value, name, 0)]
    octets = b"".join(parts)
    return _U32.pack(len(octets)) + octets


def _written(value: Any, name: str, depth: int) -> bytes:
    """Return the octets of a value with its type."""
    if value is None:
        return b"V"
    if not isinstance(value, Mapping) or not value.keys() <= {"type", "value"} or depth > NESTING_MAX:
        raise InvalidHeader(f"header {name}: a table or an array has JSON of values with 'type' and 'value'")
    type_, text = value.get("type"), value.get("value")
    if type_ not in TYPES:
        raise InvalidHeader(f"header {name}: there is no type '{type_}'; there are {', '.join(TYPES)}")
    if text is None or type_ == "void":
        return b"V"
    if not isinstance(text, str):
        raise InvalidHeader(f"header {name}: the value of a {type_} is a text, not {json.dumps(text)}")
    try:
        if type_ in FIXED:
            octet, struct, parse = FIXED[type_]
            return octet + struct.pack(parse(text))
        if type_ == "decimal":
            return b"D" + _decimal(Decimal(text))
        if type_ == "encoded":
            return _encoded(b64decode(text, validate=True))
        octet, octets = _sized(type_, text, name, depth)
    except InvalidHeader:
        raise
    except (StructError, ArithmeticError, LookupError, ValueError, RecursionError):
        what = "encoded value" if type_ == "encoded" else type_
        raise InvalidHeader(f"header {name}: '{text}' is no {what}") from None
    return octet + _U32.pack(len(octets)) + octets


def _decimal(number: Decimal) -> bytes:
    """Return scale and value, which needs a number without places to have no exponent."""
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise StructError("not finite")
    value = int("".join(map(str, digits)))
    if value and exponent > 9:
        raise StructError("more than 32 bits")
    value *= 10 ** min(max(exponent, 0), 9)
    return _DECIMAL.pack(max(-exponent, 0), -value if sign else value)


def _encoded(octets: bytes) -> bytes:
    """Return the octets if they are one value. Raise StructError or IndexError."""
    # Ends of the tables and arrays around a position, and which of them are tables.
    around: list[tuple[int, bool]] = []
    at = 0
    while True:
        if around and around[-1][1]:
            at += 1 + octets[at]
        kind = octets[at]
        at += 1
        if kind in _FIXED_BY_OCTET:
            at += _FIXED_BY_OCTET[kind][1].size
        elif kind == ord("D"):
            at += _DECIMAL.size
        elif kind in _SIZED:
            (size,) = _U32.unpack_from(octets, at)
            at += 4
            if _SIZED[kind] in ("table", "array") and size:
                around.append((at + size, _SIZED[kind] == "table"))
                continue
            at += size
        elif kind != ord("V"):
            raise StructError("an unknown type")
        while around and at == around[-1][0]:
            around.pop()
        if around and at > around[-1][0]:
            raise StructError("a length is wrong")
        if not around:
            break
    if at != len(octets):
        raise StructError("a length is wrong")
    return octets


def _sized(type_: str, text: str, name: str, depth: int) -> tuple[bytes, bytes]:
    """Return the octet of the type and the octets of the value."""
    if type_ == "string":
        return b"S", text.encode()
    if type_ == "binary":
        return b"x", b64decode(text, validate=True)
    inner = json.loads(text)
    if type_ == "table" and isinstance(inner, dict):
        parts = [short_string(key, "the name of a header") + _written(inner[key], name, depth + 1) for key in inner]
        return b"F", b"".join(parts)
    if type_ == "array" and isinstance(inner, list):
        return b"A", b"".join(_written(value, name, depth + 1) for value in inner)
    raise StructError("another kind of JSON")
