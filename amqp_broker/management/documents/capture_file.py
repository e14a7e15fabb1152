"""Files of captured messages, a JSON object per line: writing and reading (docs/replay.md).

    {"format": "amqp-broker capture", "version": 1, "vhost": "/", "started_at_ms": 1700000000000}
    {"at_us": 1250, "exchange": "", "routing_key": "orders", "user": "guest", "properties": {...}, "body": "..."}
    {"skipped": 3}

A binary body is `body_base64`. `properties` are those of the HTTP API. If JSON cannot represent them exactly (it has
one type of integers, AMQP has seven), `properties_base64` has the property list as on the wire, and takes precedence.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import (
    CONTENT,
    PROPERTIES,
    Address,
    MalformedProperties,
    Message,
    Properties,
    content_frames,
)
from amqp_broker.broker.observe.capture import CapturedMessage
from amqp_broker.management.documents.properties import InvalidProperty, properties_of
from amqp_broker.management.documents.values import SHORTSTR_BYTES_MAX, json_of

FORMAT: Final = "amqp-broker capture"
VERSION: Final = 1
FRAME_MAX: Final = 131_072
AT_US_MAX: Final = 1 << 62

_KEYS: Final = frozenset(
    {
        *("at_us", "exchange", "routing_key", "mandatory", "user"),
        *("properties", "properties_base64", "body", "body_base64"),
    }
)
_PROPERTIES: Final = frozenset(name for name, _, _ in PROPERTIES)


class CaptureFileError(ValueError):
    """A file is not a valid capture; the text says where and why."""


class Header(NamedTuple):
    """The first line of a capture."""

    vhost: str
    started_at_ms: int


class Skipped(NamedTuple):
    """A number of messages that were published at this point and are missing."""

    messages: int


# Writing


def header_line(vhost: str, started_at_ms: int) -> bytes:
    return _line({"format": FORMAT, "version": VERSION, "vhost": vhost, "started_at_ms": started_at_ms})


def skipped_line(count: int) -> bytes:
    return _line({"skipped": count})


def message_line(captured: CapturedMessage) -> bytes:
    message, told = captured.message, dict[str, Any]()
    told |= {"at_us": captured.at_us, "exchange": message.exchange, "routing_key": message.routing_key}
    if captured.mandatory:
        told["mandatory"] = True
    told["user"] = captured.user
    told["properties"] = readable = json_of(message.properties().as_dict())
    if not _is_exact(readable, message.property_list):
        told["properties_base64"] = base64.b64encode(message.property_list).decode()
    try:
        told["body"] = message.body.decode()
    except UnicodeDecodeError:
        told["body_base64"] = base64.b64encode(message.body).decode()
    return _line(told)


def _is_exact(readable: Any, property_list: bytes) -> bool:
    try:
        return properties_of(readable).encode() == property_list
    except InvalidProperty:
        return False


def _line(told: dict[str, Any]) -> bytes:
    try:
        return json.dumps(told, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        # A name that is not UTF-8: its octets are lone surrogates, which JSON has only as escapes.
        return json.dumps(told).encode() + b"\n"


# Reading


def read_header(line: bytes) -> Header:
    """Return the first line. Raise CaptureFileError."""
    told = _object(line, 1)
    if told.get("format") != FORMAT:
        raise CaptureFileError("this is no capture: its first line does not say so")
    if told.get("version") != VERSION:
        raise CaptureFileError(f"this capture has version {told.get('version')}, and {VERSION} is what is understood")
    vhost, started_at_ms = told.get("vhost"), told.get("started_at_ms")
    if not isinstance(vhost, str) or not isinstance(started_at_ms, int):
        raise CaptureFileError("line 1: vhost and started_at_ms are missing")
    return Header(vhost, started_at_ms)


def read(lines: Iterable[bytes]) -> Iterator[CapturedMessage | Skipped]:
    """Yield the messages in the lines of a capture, which begin with the header. Raise CaptureFileError."""
    at_us, number = 0, 0
    for number, line in enumerate(lines, 1):
        if number == 1:
            read_header(line)
            continue
        if not line.endswith(b"\n"):
            raise CaptureFileError(f"line {number} is cut short; without it, what is before it can be replayed")
        told = _object(line, number)
        if "skipped" in told:
            yield Skipped(_whole(told, "skipped", number))
            continue
        captured = _captured(told, number)
        if captured.at_us < at_us:
            raise CaptureFileError(f"line {number}: at_us is {captured.at_us}, before the line above it")
        at_us = captured.at_us
        yield captured
    if number == 0:
        raise CaptureFileError("this is no capture: it is empty")


def _object(line: bytes, number: int) -> dict[str, Any]:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        what = "this is no capture: its first line" if number == 1 else f"line {number}"
        raise CaptureFileError(f"{what} is no JSON") from None
    if not isinstance(told, dict):
        raise CaptureFileError("this is no capture" if number == 1 else f"line {number} is no object of JSON")
    return told


def _whole(told: dict[str, Any], name: str, number: int) -> int:
    value = told.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= AT_US_MAX:
        raise CaptureFileError(f"line {number}: {name} must be a whole number from 0 on")
    return value


def _captured(told: dict[str, Any], number: int) -> CapturedMessage:
    unknown = set(told) - _KEYS
    if unknown:
        raise CaptureFileError(f"line {number}: unknown: {', '.join(sorted(unknown))}")
    names = [_name(told, "exchange", number), _name(told, "routing_key", number)]
    user, mandatory = told.get("user", ""), told.get("mandatory", False)
    if not isinstance(user, str) or not isinstance(mandatory, bool):
        raise CaptureFileError(f"line {number}: user must be a string, and mandatory true or false")
    property_list, body = _property_list(told, number), _body(told, number)
    header = CONTENT.pack(60, 0, len(body)) + property_list
    if len(header) > FRAME_MAX - 8:
        raise CaptureFileError(f"line {number}: the properties do not fit into a frame")
    content = content_frames(1, header, body, FRAME_MAX)
    return CapturedMessage(_whole(told, "at_us", number), Message(Address(*names), content, 1, False), mandatory, user)


def _name(told: dict[str, Any], key: str, number: int) -> str:
    name = told.get(key)
    if not isinstance(name, str) or len(name.encode("utf-8", "surrogatepass")) > 3 * SHORTSTR_BYTES_MAX:
        raise CaptureFileError(f"line {number}: {key} must be a string of at most {SHORTSTR_BYTES_MAX} octets")
    try:
        octets = name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise CaptureFileError(f"line {number}: {key} is no text") from None
    if len(octets) > SHORTSTR_BYTES_MAX:
        raise CaptureFileError(f"line {number}: {key} must be a string of at most {SHORTSTR_BYTES_MAX} octets")
    return name


def _property_list(told: dict[str, Any], number: int) -> bytes:
    if "properties_base64" in told:
        property_list = _octets(told, "properties_base64", number)
        try:
            Properties.decode(property_list)
        except (MalformedProperties, fields.MalformedTable) as error:
            raise CaptureFileError(f"line {number}: properties_base64: {error}") from None
        return property_list
    given = told.get("properties", {})
    # The HTTP API passes over what is no property. Here a name that is misspelt would be a message that differs.
    unknown = set(given) - _PROPERTIES if isinstance(given, dict) else set()
    if unknown:
        raise CaptureFileError(f"line {number}: unknown properties: {', '.join(sorted(unknown))}")
    try:
        return properties_of(given).encode()
    except InvalidProperty as error:
        raise CaptureFileError(f"line {number}: {error}") from None
    except UnicodeEncodeError:
        raise CaptureFileError(f"line {number}: a property is no text") from None


def _body(told: dict[str, Any], number: int) -> bytes:
    if ("body" in told) is ("body_base64" in told):
        raise CaptureFileError(f"line {number}: there must be body or body_base64")
    if "body_base64" in told:
        return _octets(told, "body_base64", number)
    try:
        body: bytes = told["body"].encode()
    except (AttributeError, UnicodeEncodeError):
        raise CaptureFileError(f"line {number}: body is no text") from None
    return body


def _octets(told: dict[str, Any], name: str, number: int) -> bytes:
    try:
        return base64.b64decode(told[name], validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise CaptureFileError(f"line {number}: {name} is no base64") from None
