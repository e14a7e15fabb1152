"""AMQP field tables: bytes to Python values and back, with the type of every value kept.

pamqp's codec does not keep the integer type of a value, which RabbitMQ's error texts name (`of type 'signedint'`), and
it reads past the end of a truncated value. Here `encode_table(decode_table(data))` is `data` again, except for
duplicate keys, `L`, and a bool of neither 0 nor 1.

    S str (octets that are not UTF-8 survive as surrogate escapes)   x bytes      V None     t bool
    I int   b Byte   B UnsignedByte   s Short   u UnsignedShort   i UnsignedInt   l, L Long
    d float   f Float32   D Decimal   T Timestamp   F dict   A list
Source: RabbitMQ, "AMQP 0-9-1 Errata", section 3 (its letters differ from the specification's).
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple, TypeAlias

# Levels of nesting beyond which a table is refused, to protect the stack. Real tables have two or three.
DEPTH_MAX: Final = 64
# Names in the log are cut beyond this.
SHOWN_CHARACTERS_MAX: Final = 1000


class Byte(int):
    pass


class UnsignedByte(int):
    pass


class Short(int):
    pass


class UnsignedShort(int):
    pass


class UnsignedInt(int):
    pass


class Long(int):
    pass


class Float32(float):
    pass


class Timestamp(int):
    """Seconds since the epoch, unsigned 64 bits. Not every value a client may send is a datetime."""


class Decimal(NamedTuple):
    scale: int
    unscaled: int


Value: TypeAlias = "bool | int | float | str | bytes | Decimal | list[Any] | dict[str, Any] | None"
Table: TypeAlias = "dict[str, Any]"

# letter -> (Python type, struct format, RabbitMQ's name)
_NUMBERS: Final[dict[int, tuple[Any, struct.Struct]]] = {
    ord("I"): (int, struct.Struct(">i")),
    ord("b"): (Byte, struct.Struct(">b")),
    ord("B"): (UnsignedByte, struct.Struct(">B")),
    ord("s"): (Short, struct.Struct(">h")),
    ord("u"): (UnsignedShort, struct.Struct(">H")),
    ord("i"): (UnsignedInt, struct.Struct(">I")),
    ord("l"): (Long, struct.Struct(">q")),
    ord("L"): (Long, struct.Struct(">q")),
    ord("d"): (float, struct.Struct(">d")),
    ord("f"): (Float32, struct.Struct(">f")),
    ord("T"): (Timestamp, struct.Struct(">Q")),
    ord("t"): (bool, struct.Struct(">?")),
}
_TYPE_NAMES: Final[dict[type, str]] = {
    str: "longstr",
    bytes: "binary",
    type(None): "void",
    bool: "bool",
    int: "signedint",
    Byte: "byte",
    UnsignedByte: "unsignedbyte",
    Short: "short",
    UnsignedShort: "unsignedshort",
    UnsignedInt: "unsignedint",
    Long: "long",
    float: "double",
    Float32: "float",
    Decimal: "decimal",
    Timestamp: "timestamp",
    dict: "table",
    list: "array",
}
_ENCODERS: Final[dict[type, tuple[bytes, struct.Struct]]] = {
    kind: (bytes([letter]), packer) for letter, (kind, packer) in _NUMBERS.items() if letter != ord("L")
}
_LENGTH: Final = struct.Struct(">I")
_DECIMAL: Final = struct.Struct(">BI")


class MalformedTable(ValueError):
    """The octets are not a field table."""


class RepeatedKeys(dict[str, Any]):
    """A decoded table whose octets had a key more than once: it has the first values, `last` the last ones."""

    def __init__(self, first: Table, last: Table) -> None:
        super().__init__(first)
        self.last = last


def type_name(value: Value) -> str:
    """Return RabbitMQ's name of a value's type, as its error texts print it: `longstr`, `signedint`, `bool`."""
    return _TYPE_NAMES[type(value)]


def erlang_term(value: Value | bytes) -> str:
    """Return a value as Erlang prints it in RabbitMQ's texts; strings and binaries look the same."""
    if value is None:
        return "undefined"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{{{value.scale},{value.unscaled}}}"
    if isinstance(value, dict):
        return f"[{','.join(f'{{{erlang_term(key)},{typed_term(item)}}}' for key, item in value.items())}]"
    if isinstance(value, list):
        return f"[{','.join(f'{{{typed_term(item)}}}' for item in value)}]"
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    if not isinstance(value, bytes):
        return str(value)
    if value and all(32 <= octet < 127 or octet in b"\b\t\n\v\f\r\x1b" for octet in value):
        escapes = {8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 27: "\\e", 34: '\\"', 92: "\\\\"}
        return '<<"' + "".join(escapes.get(octet, chr(octet)) for octet in value) + '">>'
    return f"<<{','.join(map(str, value))}>>"


def erlang_string(text: str) -> str:
    """Return a text as Erlang prints it where it prints a term."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def printable(text: str) -> str:
    """Return a client's name for a log: printable, on one line, and not too long."""
    if len(text) > SHOWN_CHARACTERS_MAX:
        text = text[:SHOWN_CHARACTERS_MAX] + "..."
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)


def typed_term(value: Value) -> str:
    """Return a field's type and value as Erlang prints them: `byte,5`, `longstr,<<"a">>`."""
    return f"{type_name(value)},{erlang_term(value)}"


def json_term(value: object) -> str:
    """Return a value from JSON as Erlang prints it in RabbitMQ's texts."""
    if value is None:
        return "null"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(json_term, value))}]"
    if isinstance(value, dict):
        return f"#{{{','.join(f'{json_term(key)} => {json_term(item)}' for key, item in value.items())}}}"
    return erlang_term(value) if isinstance(value, (str, int, float)) else str(value)


def is_integer(value: Value) -> bool:
    """Return whether a value has one of the integer types; a bool and a timestamp have not."""
    return isinstance(value, int) and not isinstance(value, (bool, Timestamp))


def decode_table(data: bytes, offset: int = 0) -> tuple[Table, int]:
    """Decode the table whose length prefix is at `offset`; return it and the offset behind it.

    Of a duplicate key the first value counts, as in RabbitMQ's lookups. Raise MalformedTable.
    """
    try:
        return _decode_table(data, offset, 0)
    except (struct.error, IndexError, OverflowError) as error:
        raise MalformedTable(f"truncated field table: {error}") from None


def _decode_table(data: bytes, offset: int, depth: int) -> tuple[Table, int]:
    end = _end_of_block(data, offset, depth)
    offset += 4
    table: Table = {}
    repeated: Table = {}
    while offset < end:
        key_end = offset + 1 + data[offset]
        key = data[offset + 1 : key_end].decode("utf-8", "surrogateescape")
        value, offset = _decode_value(data, key_end, depth)
        if key in table:
            repeated[key] = value
        else:
            table[key] = value
    if offset != end:
        raise MalformedTable("a field table's entries do not fill its length")
    if repeated and not depth:
        table = RepeatedKeys(table, {**table, **repeated})
    return table, end


def _end_of_block(data: bytes, offset: int, depth: int) -> int:
    (length,) = _LENGTH.unpack_from(data, offset)
    end: int = offset + 4 + length
    if end > len(data):
        raise MalformedTable("a length reaches beyond the data")
    if depth > DEPTH_MAX:
        raise MalformedTable(f"tables are nested deeper than {DEPTH_MAX} levels")
    return end


def _decode_value(data: bytes, offset: int, depth: int) -> tuple[Value, int]:
    letter = data[offset]
    offset += 1
    number = _NUMBERS.get(letter)
    if number is not None:
        kind, packer = number
        (value,) = packer.unpack_from(data, offset)
        return (value if type(value) is kind else kind(value)), offset + packer.size
    match letter:
        case 0x53:  # S
            end = _end_of_block(data, offset, depth)
            return data[offset + 4 : end].decode("utf-8", "surrogateescape"), end
        case 0x46:  # F
            return _decode_table(data, offset, depth + 1)
        case 0x41:  # A
            return _decode_array(data, offset, depth + 1)
        case 0x78:  # x
            end = _end_of_block(data, offset, depth)
            return data[offset + 4 : end], end
        case 0x56:  # V
            return None, offset
        case 0x44:  # D
            return Decimal(*_DECIMAL.unpack_from(data, offset)), offset + 5
    raise MalformedTable(f"unknown field type {chr(letter)!r}")


def _decode_array(data: bytes, offset: int, depth: int) -> tuple[list[Any], int]:
    end = _end_of_block(data, offset, depth)
    offset += 4
    values = []
    while offset < end:
        value, offset = _decode_value(data, offset, depth)
        values.append(value)
    if offset != end:
        raise MalformedTable("an array's values do not fill its length")
    return values, end


def encode_table(table: Table) -> bytes:
    """Encode a table with its length prefix. A plain int becomes `I`, or `l` where 32 bits do not hold it."""
    entries = b"".join(_encode_key(key) + _encode_value(value) for key, value in table.items())
    return _LENGTH.pack(len(entries)) + entries


def _encode_key(key: str) -> bytes:
    encoded = key.encode("utf-8", "surrogateescape")
    return bytes([len(encoded)]) + encoded


def _encode_value(value: Value) -> bytes:
    kind = type(value)
    if kind is int and isinstance(value, int) and not -0x80000000 <= value < 0x80000000:
        kind = Long
    number = _ENCODERS.get(kind)
    if number is not None:
        letter, packer = number
        return letter + packer.pack(value)
    if isinstance(value, str):
        encoded = value.encode("utf-8", "surrogateescape")
        return b"S" + _LENGTH.pack(len(encoded)) + encoded
    if isinstance(value, dict):
        return b"F" + encode_table(value)
    if isinstance(value, list):
        encoded = b"".join(map(_encode_value, value))
        return b"A" + _LENGTH.pack(len(encoded)) + encoded
    if isinstance(value, bytes):
        return b"x" + _LENGTH.pack(len(value)) + value
    if isinstance(value, Decimal):
        return b"D" + _DECIMAL.pack(*value)
    assert value is None, f"not a field value: {value!r}"
    return b"V"
