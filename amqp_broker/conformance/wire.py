"""AMQP 0-9-1 as octets, for a client that may send anything and shows everything it receives.

pamqp provides the layout of each method. Its values are not used: it validates (scenarios send invalid values), sorts
tables, and drops type tags (transcripts show them).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

from pamqp import base, commands

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
FRAME_KINDS = (METHOD, HEADER, BODY, HEARTBEAT)
FRAME_END = b"\xce"
BASIC = commands.Basic.frame_id

Method = type[base.Frame]


class Access:
    """The access class, which AMQP 0-9-1 dropped and RabbitMQ still answers; pamqp does not know it."""

    class Request(base.Frame):
        __slots__: ClassVar[list[str]] = ["realm", "exclusive", "passive", "active", "write", "read"]  # noqa: RUF023
        index: ClassVar[int] = 0x001E000A
        name: ClassVar[str] = "Access.Request"
        synchronous: ClassVar[bool] = True
        valid_responses: ClassVar[list[str]] = ["Access.RequestOk"]
        _realm = "shortstr"
        _exclusive = _passive = _active = _write = _read = "bit"

    class RequestOk(base.Frame):
        __slots__: ClassVar[list[str]] = ["ticket"]
        index: ClassVar[int] = 0x001E000B
        name: ClassVar[str] = "Access.RequestOk"
        _ticket = "short"


METHODS: dict[int, Method] = {
    **commands.INDEX_MAPPING,
    Access.Request.index: Access.Request,
    Access.RequestOk.index: Access.RequestOk,
}
METHOD_BY_NAME: dict[str, Method] = {method.name: method for method in METHODS.values()}


class Field(NamedTuple):
    """A table value with its type tag: `Field("l", 5)`. A plain Python value gets the tag of `tagged`."""

    tag: str
    value: Any


class Pairs(list[tuple[str, Field]]):
    """A table as on the wire, in order and with repeated keys."""


# A list of pairs, for tables in which order or repeated keys matter.
Table = Mapping[str, Any] | Iterable[tuple[str, Any]]


def frame(kind: int, channel: int, payload: bytes, end: bytes = FRAME_END) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + end


# --- Encode


def shortstr(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(">B", len(data)) + data


def longstr(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(">I", len(data)) + data


def table(value: Table) -> bytes:
    pairs = value.items() if isinstance(value, Mapping) else value
    return longstr(b"".join(shortstr(key) + tagged(item) for key, item in pairs))


def array(value: Iterable[Any]) -> bytes:
    return longstr(b"".join(tagged(item) for item in value))


def _packer(layout: str) -> Callable[[Any], bytes]:
    return struct.Struct(">" + layout).pack


_ENCODE_TAG: dict[str, Callable[[Any], bytes]] = {
    **{tag: _packer(layout) for tag, layout in zip("tbBsuIilLfdT", "?bBhHiIqqfdQ", strict=True)},
    "S": longstr,
    "x": longstr,
    "F": table,
    "A": array,
    "D": lambda value: struct.pack(">BI", *value),
    "V": lambda _: b"",
}


def as_field(value: Any) -> Field:
    """Return a table value with its tag; Python's types get pika's tags."""
    return value if isinstance(value, Field) else Field(_tag_of(value), value)


def tagged(value: Any) -> bytes:
    """Return a table value as octets, with its tag."""
    field = as_field(value)
    return field.tag.encode() + _ENCODE_TAG[field.tag](field.value)


def _tag_of(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return "I" if -(2**31) <= value < 2**31 else "l"
    return {bool: "t", float: "d", str: "S", bytes: "x", dict: "F", list: "A", type(None): "V"}[type(value)]


_ENCODE: dict[str, Callable[[Any], bytes]] = {
    "octet": _packer("B"),
    "short": _packer("H"),
    "long": _packer("I"),
    "longlong": _packer("Q"),
    "timestamp": _packer("Q"),
    "shortstr": shortstr,
    "longstr": longstr,
    "table": table,
}
_ZERO: dict[str, Any] = {"shortstr": "", "longstr": "", "table": {}}


def method_payload(method: Method, fields: Mapping[str, Any]) -> bytes:
    """Return the payload of a method frame; missing fields are zero, empty or false."""
    unknown = fields.keys() - set(method.attributes())
    assert not unknown, f"{method.name} has no {unknown}"
    out, bits = bytearray(struct.pack(">I", method.index)), []
    for name in method.attributes():
        kind = method.amqp_type(name)
        if kind == "bit":  # no method has more than eight in a row
            bits.append(bool(fields.get(name)))
            continue
        out += _octet_of(bits) + _ENCODE[kind](fields.get(name, _ZERO.get(kind, 0)))
        bits = []
    return bytes(out + _octet_of(bits))


def _octet_of(bits: list[bool]) -> bytes:
    return bytes([sum(bit << position for position, bit in enumerate(bits))]) if bits else b""


def header_payload(body_size: int, properties: Mapping[str, Any], class_id: int = BASIC, weight: int = 0) -> bytes:
    """Return the payload of a content header frame."""
    flags, values = 0, bytearray()
    for name, flag in commands.Basic.Properties.flags.items():
        if name in properties:
            flags |= flag
            values += _ENCODE[commands.Basic.Properties.amqp_type(name)](properties[name])
    return struct.pack(">HHQH", class_id, weight, body_size, flags) + bytes(values)


# --- Decode


class Reader:
    """Reads values from the front of `data`."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.offset = 0

    def take(self, size: int) -> bytes:
        piece = self.data[self.offset : self.offset + size]
        assert len(piece) == size, f"{size} bytes are needed, {len(piece)} are there"
        self.offset += size
        return piece

    def unpack(self, layout: str) -> Any:
        (value,) = struct.unpack(">" + layout, self.take(struct.calcsize(">" + layout)))
        return value

    def text(self, length_layout: str) -> str | bytes:
        data = self.take(self.unpack(length_layout))
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data

    def table(self) -> Pairs:
        inner, pairs = Reader(self.take(self.unpack("I"))), Pairs()
        while inner.offset < len(inner.data):
            key = inner.text("B")
            pairs.append((str(key), inner.tagged()))
        return pairs

    def array(self) -> list[Field]:
        inner, items = Reader(self.take(self.unpack("I"))), []
        while inner.offset < len(inner.data):
            items.append(inner.tagged())
        return items

    def tagged(self) -> Field:
        tag = self.take(1).decode("latin-1")
        match tag:
            case "S" | "x":
                return Field(tag, self.text("I"))
            case "F":
                return Field(tag, self.table())
            case "A":
                return Field(tag, self.array())
            case "D":
                return Field(tag, (self.unpack("B"), self.unpack("I")))
            case "V":
                return Field(tag, None)
        return Field(tag, self.unpack("?bBhHiIqqfdQ"["tbBsuIilLfdT".index(tag)]))

    def by_kind(self, kind: str) -> Any:
        match kind:
            case "shortstr":
                return self.text("B")
            case "longstr":
                return self.text("I")
            case "table":
                return self.table()
        return self.unpack({"octet": "B", "short": "H", "long": "I", "longlong": "Q", "timestamp": "Q"}[kind])


def read_method(payload: bytes) -> tuple[Method, dict[str, Any]]:
    reader = Reader(payload)
    method, fields = METHODS[reader.unpack("I")], {}
    bits, position = 0, 8
    for name in method.attributes():
        kind = method.amqp_type(name)
        if kind != "bit":
            fields[name], position = reader.by_kind(kind), 8
            continue
        if position == 8:
            bits, position = reader.unpack("B"), 0
        fields[name] = bool(bits >> position & 1)
        position += 1
    return method, fields


def read_header(payload: bytes) -> tuple[int, dict[str, Any]]:
    """Return the body size and the properties that are present."""
    reader = Reader(payload)
    assert reader.unpack("H") == BASIC, "a content header of another class"
    assert reader.unpack("H") == 0, "a weight"
    body_size, flags = reader.unpack("Q"), reader.unpack("H")
    present = [name for name, flag in commands.Basic.Properties.flags.items() if flags & flag]
    return body_size, {name: reader.by_kind(commands.Basic.Properties.amqp_type(name)) for name in present}
