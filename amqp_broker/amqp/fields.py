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

import math
import struct
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from amqp_broker.amqp import nested

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
Block: TypeAlias = "dict[str, Any] | list[Any]"

# letter -> (Python type, format)
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
_NO_LENGTH: Final = bytes(4)
_EMPTY_TABLE: Final = b"F" + _NO_LENGTH
_EMPTY_ARRAY: Final = b"A" + _NO_LENGTH
_LONG_STRING: Final = ord("S")
_BLOCKS: Final[dict[int, type[Any]]] = {ord("F"): dict, ord("A"): list}


class MalformedTable(ValueError):
    """The octets are not a field table."""


class RepeatedKeys(dict[str, Any]):
    """A decoded table whose octets had a key more than once: it has the first values, `last` the last ones."""

    def __init__(self, first: Table, last: Table) -> None:
        super().__init__(first)
        self.last = last


class EncodedList(list[Any]):
    """A list that knows its encoding as a field value. It is not changed any more."""

    __slots__ = ("octets",)

    def __init__(self, values: Iterable[Any], octets: bytes) -> None:
        super().__init__(values)
        self.octets = octets

    @classmethod
    def of(cls, values: list[Any]) -> EncodedList:
        """Return a list with its encoding."""
        # A table with one key, which is empty.
        return cls(values, encode_table({"": values})[5:])

    def after(self, first: Any) -> EncodedList:
        """Return a list with a value more at the front; only that is encoded."""
        items = EncodedList.of([first]).octets[5:] + self.octets[5:]
        return EncodedList([first, *self], b"A" + _LENGTH.pack(len(items)) + items)


def type_name(value: Value) -> str:
    """Return RabbitMQ's name of a value's type, as its error texts print it: `longstr`, `signedint`, `bool`."""
    return _TYPE_NAMES[type(value)]


_PRINTED_BITS_MAX: Final = 2048


def erlang_term(value: Value | bytes) -> str:
    """Return a value as Erlang prints it in RabbitMQ's texts; strings and binaries look the same."""
    if value is None:
        return "undefined"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{{{value.scale},{value.unscaled}}}"
    if isinstance(value, (dict, list)):
        return nested.joined(value, _parts_of_term)
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    if not isinstance(value, bytes):
        if isinstance(value, int) and value.bit_length() > _PRINTED_BITS_MAX:
            # Python refuses to print thousands of digits.
            return f"an integer of {value.bit_length()} bits"
        return str(value)
    if value and all(32 <= octet < 127 or octet in b"\b\t\n\v\f\r\x1b" for octet in value):
        escapes = {8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 27: "\\e", 34: '\\"', 92: "\\\\"}
        return '<<"' + "".join(escapes.get(octet, chr(octet)) for octet in value) + '">>'
    return f"<<{','.join(map(str, value))}>>"


def _parts_of_term(block: Any) -> Iterator[Any]:
    keys = [f"{erlang_term(key)}," for key in block] if isinstance(block, dict) else [""] * len(block)
    yield "["
    for number, (key, item) in enumerate(zip(keys, _items(block), strict=True)):
        yield f"{',' if number else ''}{{{key}{type_name(item)},"
        yield item if isinstance(item, (dict, list)) else erlang_term(item)
        yield "}"
    yield "]"


def _items(block: Any) -> Iterable[Any]:
    return block.values() if isinstance(block, dict) else block


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
    if isinstance(value, (list, tuple, dict)):
        return nested.joined(value, _parts_of_json_term)
    return erlang_term(value) if isinstance(value, (str, int, float)) else str(value)


def _parts_of_json_term(block: Any) -> Iterator[Any]:
    is_map = isinstance(block, dict)
    keys = [f"{json_term(key)} => " for key in block] if is_map else [""] * len(block)
    yield "#{" if is_map else "["
    for number, (key, item) in enumerate(zip(keys, _items(block), strict=True)):
        yield f"{',' if number else ''}{key}"
        yield item if isinstance(item, (list, tuple, dict)) else json_term(item)
    yield "}" if is_map else "]"


def is_integer(value: Value) -> bool:
    """Return whether a value has one of the integer types; a bool and a timestamp have not."""
    return isinstance(value, int) and not isinstance(value, (bool, Timestamp))


def is_finite(value: Any) -> bool:
    """Return whether no number in a value is NaN or infinite."""
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, float):
            if not math.isfinite(item):
                return False
        elif isinstance(item, list):
            rest += item
        elif isinstance(item, dict):
            rest += item.values()
            if isinstance(item, RepeatedKeys):
                rest += item.last.values()
    return True


def decode_table(data: bytes, offset: int = 0) -> tuple[Table, int]:
    """Decode the table whose length prefix is at `offset`; return it and the offset behind it.

    Of a duplicate key the first value counts, as in RabbitMQ's lookups. Raise MalformedTable.
    """
    try:
        return _decode_table(data, offset)
    except (struct.error, IndexError, OverflowError) as error:
        raise MalformedTable(f"truncated field table: {error}") from None


def _decode_table(data: bytes, offset: int) -> tuple[Table, int]:
    end_of_table = end = _end_of_block(data, offset)
    offset += 4
    table: Table = {}
    repeated: Table = {}
    block: Any = table
    is_table = True
    # The blocks around the one that is being read: each, whether it is a table, and its end.
    stack: list[tuple[Any, bool, int]] = []
    while True:
        while offset < end:
            if is_table:
                key_end = offset + 1 + data[offset]
                key = data[offset + 1 : key_end].decode("utf-8", "surrogateescape")
                offset = key_end
            value: Any
            inner: type[Any] | None = None
            if data[offset] == _LONG_STRING:
                # Most values are.
                end_of_value = _end_of_block(data, offset + 1)
                value = data[offset + 5 : end_of_value].decode("utf-8", "surrogateescape")
                offset = end_of_value
            elif (inner := _BLOCKS.get(data[offset])) is None:
                value, offset = _decode_value(data, offset)
            else:
                value = inner()
            if not is_table:
                block.append(value)
            elif key not in block:
                block[key] = value
            elif block is table:
                repeated[key] = value
            if inner is not None:
                stack.append((block, is_table, end))
                block, is_table, end = value, inner is dict, _end_of_block(data, offset + 1)
                offset += 5
        if offset != end:
            parts = "a field table's entries" if is_table else "an array's values"
            raise MalformedTable(f"{parts} do not fill its length")
        if not stack:
            return (RepeatedKeys(table, {**table, **repeated}) if repeated else table), end_of_table
        block, is_table, end = stack.pop()


def _end_of_block(data: bytes, offset: int) -> int:
    (length,) = _LENGTH.unpack_from(data, offset)
    end: int = offset + 4 + length
    if end > len(data):
        raise MalformedTable("a length reaches beyond the data")
    return end


def _decode_value(data: bytes, offset: int) -> tuple[Any, int]:
    """Return the value at `offset`, which is no string and no block, and the offset behind it."""
    letter = data[offset]
    offset += 1
    number = _NUMBERS.get(letter)
    if number is not None:
        kind, packer = number
        (value,) = packer.unpack_from(data, offset)
        return (value if type(value) is kind else kind(value)), offset + packer.size
    match letter:
        case 0x78:  # x
            end = _end_of_block(data, offset)
            return data[offset + 4 : end], end
        case 0x56:  # V
            return None, offset
        case 0x44:  # D
            return Decimal(*_DECIMAL.unpack_from(data, offset)), offset + 5
    raise MalformedTable(f"unknown field type {chr(letter)!r}")


def encode_table(table: Table) -> bytes:
    """Encode a table with its length prefix. A plain int becomes `I`, or `l` where 32 bits do not hold it."""
    data = bytearray(_NO_LENGTH)
    start = 0
    rest: Iterator[Any] = iter(table.items())
    is_table = True
    # The blocks around the one that is being written: where each starts, whether it is a table, and what is left.
    stack: list[tuple[int, bool, Iterator[Any]]] = []
    while True:
        for item in rest:
            if is_table:
                key, value = item
                encoded = key.encode("utf-8", "surrogateescape")
                data.append(len(encoded))
                data += encoded
            else:
                value = item
            if isinstance(value, (dict, list)):
                if not isinstance(value, EncodedList):
                    break
                data += value.octets
            else:
                data += _encode_value(value)
        else:
            _LENGTH.pack_into(data, start, len(data) - start - 4)
            if not stack:
                return bytes(data)
            start, is_table, rest = stack.pop()
            continue
        stack.append((start, is_table, rest))
        is_table = isinstance(value, dict)
        rest = iter(value.items() if isinstance(value, dict) else value)
        data += _EMPTY_TABLE if is_table else _EMPTY_ARRAY
        start = len(data) - 4


def _encode_value(value: Value) -> bytes:
    if isinstance(value, str):
        encoded = value.encode("utf-8", "surrogateescape")
        return b"S" + _LENGTH.pack(len(encoded)) + encoded
    kind = type(value)
    if kind is int and isinstance(value, int) and not -0x80000000 <= value < 0x80000000:
        kind = Long
    number = _ENCODERS.get(kind)
    if number is not None:
        letter, packer = number
        return letter + packer.pack(value)
    if isinstance(value, bytes):
        return b"x" + _LENGTH.pack(len(value)) + value
    if isinstance(value, Decimal):
        return b"D" + _DECIMAL.pack(*value)
    assert value is None, f"not a field value: {value!r}"
    return b"V"
