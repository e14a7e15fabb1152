"""Codec of the methods that are not on the hot path, between payload bytes and pamqp's method objects.

pamqp has the catalogue of methods, their fields and types. The octets are read and written here, because pamqp reads a
truncated field as an empty one, and refuses to write names that RabbitMQ accepts.
"""

from __future__ import annotations

import re
import struct
from typing import Any, Final

from pamqp import base, commands

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import Disconnect, FrameError
from amqp_broker.amqp.frames import unknown_frame
from amqp_broker.amqp.message import FRAME_METHOD, shortstr

_INTEGERS: Final = {
    "octet": struct.Struct(">B"),
    "short": struct.Struct(">H"),
    "long": struct.Struct(">I"),
    "longlong": struct.Struct(">Q"),
    "timestamp": struct.Struct(">Q"),
}


class AccessRequest(base.Frame):
    """A method of class access, which AMQP 0-9 removed. Old clients send it; pamqp does not have it."""

    __slots__ = ["realm", "exclusive", "passive", "active", "write", "read"]  # noqa: RUF023 - the order on the wire
    index = frame_id = 30 << 16 | 10
    name = "Access.Request"
    _realm = "shortstr"
    _exclusive = _passive = _active = _write = _read = "bit"


class AccessRequestOk(base.Frame):
    __slots__ = ["ticket"]
    index = frame_id = 30 << 16 | 11
    name = "Access.RequestOk"
    _ticket = "short"
    ticket: int


METHODS: Final[dict[int, type[base.Frame]]] = {
    **commands.INDEX_MAPPING,
    AccessRequest.index: AccessRequest,
    AccessRequestOk.index: AccessRequestOk,
}


_FIELDS: Final[dict[type[base.Frame], tuple[tuple[str, str], ...]]] = {
    kind: tuple((name, kind.amqp_type(name)) for name in kind.attributes()) for kind in METHODS.values()
}


def name_of(method: base.Frame | type[base.Frame]) -> str:
    """Return the name of a method as the specification has it, such as `basic.recover-async`."""
    class_name, _, name = method.name.partition(".")
    return f"{class_name.lower()}.{re.sub('(?<!^)(?=[A-Z])', '-', name).lower()}"


def decode_method(payload: bytes) -> base.Frame:
    """Decode a method frame's payload; a longstr becomes bytes, a table the values of `amqp_broker.amqp.fields`.

    Raises Disconnect for a method that AMQP 0-9-1 does not have and for a malformed table (RabbitMQ drops such
    peers), and FrameError where the fields do not fill the payload exactly.
    """
    if len(payload) < 4:
        raise unknown_frame(FRAME_METHOD, payload)
    kind = METHODS.get(int.from_bytes(payload[:4], "big"))
    if kind is None:
        raise Disconnect(f"unknown class and method id {payload[:4].hex()}")
    method = kind.__new__(kind)  # without pamqp's checks of values
    try:
        offset = _decode_fields(method, payload)
    except fields.MalformedTable as error:
        raise Disconnect(str(error)) from None
    except (struct.error, IndexError):
        offset = -1
    if offset != len(payload):
        raise FrameError(f"cannot decode <<{','.join(map(str, payload[4:]))}>>")
    return method


def _decode_fields(method: base.Frame, payload: bytes) -> int:
    offset, bit = 4, 0
    for name, kind in _FIELDS[type(method)]:
        value: Any
        if kind == "bit":
            # Consecutive bits share an octet, the first in its lowest place (spec 4.2.5.2).
            value = bool(payload[offset] >> bit & 1)
            bit += 1
            setattr(method, name, value)
            continue
        if bit:
            offset, bit = offset + 1, 0
        integer = _INTEGERS.get(kind)
        if integer is not None:
            (value,) = integer.unpack_from(payload, offset)
            offset += integer.size
        elif kind == "table":
            value, offset = fields.decode_table(payload, offset)
            if not fields.is_finite(value):
                raise fields.MalformedTable("a number is not finite, which Erlang does not read")
        else:
            value, offset = _decode_string(kind, payload, offset)
        setattr(method, name, value)
    return offset + 1 if bit else offset


def _decode_string(kind: str, payload: bytes, offset: int) -> tuple[str | bytes, int]:
    if kind == "shortstr":
        start, length = offset + 1, payload[offset]
    else:
        start, length = offset + 4, _INTEGERS["long"].unpack_from(payload, offset)[0]
    end = start + length
    if end > len(payload):
        raise IndexError("a string reaches beyond the payload")
    data = payload[start:end]
    if kind == "longstr":
        return data, end
    try:
        return data.decode("utf-8"), end
    except UnicodeDecodeError:
        raise FrameError("Malformed UTF-8 in shortstr", method_id=0) from None


def encode_method(method: base.Frame) -> bytes:
    """Return a method's payload: class and method id, then its fields."""
    pieces = [method.index.to_bytes(4, "big")]
    bits = bit = 0
    for name, kind in _FIELDS[type(method)]:
        value: Any = getattr(method, name)
        if kind == "bit":
            bits |= bool(value) << bit
            bit += 1
            continue
        if bit:
            pieces.append(bytes([bits]))
            bits = bit = 0
        if kind == "shortstr":
            pieces.append(shortstr(value or ""))
        elif kind == "longstr":
            data = value if isinstance(value, bytes) else (value or "").encode()
            pieces.append(len(data).to_bytes(4, "big") + data)
        elif kind == "table":
            pieces.append(fields.encode_table(value or {}))
        else:
            pieces.append(_INTEGERS[kind].pack(value))
    if bit:
        pieces.append(bytes([bits]))
    return b"".join(pieces)
