"""Files of captured messages, a JSON object per line: writing and reading (docs/replay.md).

    {"format": "amqp-broker capture", "version": 1, "vhost": "/", "started_at_ms": 1700000000000}
    {"at_us": 1250, "exchange": "", "routing_key": "orders", "user": "guest", "properties": {...}, "body": "..."}
    {"skipped": 3}

A binary body is `body_base64`. `properties` are those of the HTTP API. If JSON cannot represent them exactly (it has
one type of integers, AMQP has seven), `properties_base64` contains the property list as on the wire, which takes
precedence.
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
from amqp_broker.management.documents import nested_json
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
    """A file is not a valid capture; the text states the line and the reason."""


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
    message = captured.message
    entry: dict[str, Any] = {
        "at_us": captured.at_us,
        "exchange": message.exchange,
        "routing_key": message.routing_key,
    }
    if captured.mandatory:
        entry["mandatory"] = True
    entry["user"] = captured.user
    entry["properties"] = readable = json_of(message.properties().as_dict())
    if not _is_exact(readable, message.property_list):
        entry["properties_base64"] = base64.b64encode(message.property_list).decode()
    try:
        entry["body"] = message.body.decode()
    except UnicodeDecodeError:
        entry["body_base64"] = base64.b64encode(message.body).decode()
    return _line(entry)


def _is_exact(readable: Any, property_list: bytes) -> bool:
    try:
        return properties_of(readable).encode() == property_list
    except InvalidProperty:
        return False


def _line(entry: dict[str, Any]) -> bytes:
    try:
        return _json(entry, is_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        # A name that is not UTF-8: its octets are lone surrogates, which JSON has only as escapes.
        return _json(entry, is_ascii=True).encode() + b"\n"


def _json(entry: dict[str, Any], *, is_ascii: bool) -> str:
    try:
        return json.dumps(entry, ensure_ascii=is_ascii)
    except RecursionError:
        return nested_json.write(entry, lambda leaf: json.dumps(leaf, ensure_ascii=is_ascii))


# Reading


def read_header(line: bytes) -> Header:
    """Return the first line. Raise CaptureFileError."""
    entry = _object(line, 1)
    if entry.get("format") != FORMAT:
        raise CaptureFileError(f"this is not a capture file: its first line lacks the format '{FORMAT}'")
    if entry.get("version") != VERSION:
        raise CaptureFileError(
            f"this capture file has version {entry.get('version')}; only version {VERSION} is supported"
        )
    vhost, started_at_ms = entry.get("vhost"), entry.get("started_at_ms")
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
            raise CaptureFileError(f"line {number} is incomplete; remove it to replay the messages before it")
        entry = _object(line, number)
        if "skipped" in entry:
            yield Skipped(_whole(entry, "skipped", number))
            continue
        captured = _captured(entry, number)
        if captured.at_us < at_us:
            raise CaptureFileError(f"line {number}: at_us is {captured.at_us}, before the line above it")
        at_us = captured.at_us
        yield captured
    if number == 0:
        raise CaptureFileError("this is not a capture file: it is empty")


def _object(line: bytes, number: int) -> dict[str, Any]:
    try:
        try:
            entry = json.loads(line)
        except RecursionError:
            entry = nested_json.read(line.decode())
    except ValueError:
        raise CaptureFileError(f"{_place(number)} is not JSON") from None
    if not isinstance(entry, dict):
        raise CaptureFileError(f"{_place(number)} is not a JSON object")
    return entry


def _place(number: int) -> str:
    return "this is not a capture file: its first line" if number == 1 else f"line {number}"


def _whole(entry: dict[str, Any], name: str, number: int) -> int:
    value = entry.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= AT_US_MAX:
        raise CaptureFileError(f"line {number}: {name} must be a non-negative whole number")
    return value


def _captured(entry: dict[str, Any], number: int) -> CapturedMessage:
    unknown = set(entry) - _KEYS
    if unknown:
        raise CaptureFileError(f"line {number}: unknown fields: {', '.join(sorted(unknown))}")
    names = [_name(entry, "exchange", number), _name(entry, "routing_key", number)]
    user, mandatory = entry.get("user", ""), entry.get("mandatory", False)
    if not isinstance(user, str) or not isinstance(mandatory, bool):
        raise CaptureFileError(f"line {number}: user must be a string, and mandatory true or false")
    property_list, body = _property_list(entry, number), _body(entry, number)
    header = CONTENT.pack(60, 0, len(body)) + property_list
    if len(header) > FRAME_MAX - 8:
        raise CaptureFileError(f"line {number}: the properties do not fit into a frame")
    content = content_frames(1, header, body, FRAME_MAX)
    return CapturedMessage(_whole(entry, "at_us", number), Message(Address(*names), content, 1, False), mandatory, user)


def _name(entry: dict[str, Any], key: str, number: int) -> str:
    name = entry.get(key)
    if not isinstance(name, str) or len(name.encode("utf-8", "surrogatepass")) > 3 * SHORTSTR_BYTES_MAX:
        raise CaptureFileError(f"line {number}: {key} must be a string of at most {SHORTSTR_BYTES_MAX} octets")
    try:
        octets = name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise CaptureFileError(f"line {number}: {key} is not valid text") from None
    if len(octets) > SHORTSTR_BYTES_MAX:
        raise CaptureFileError(f"line {number}: {key} must be a string of at most {SHORTSTR_BYTES_MAX} octets")
    return name


def _property_list(entry: dict[str, Any], number: int) -> bytes:
    if "properties_base64" in entry:
        property_list = _octets(entry, "properties_base64", number)
        try:
            Properties.decode(property_list)
        except (MalformedProperties, fields.MalformedTable) as error:
            raise CaptureFileError(f"line {number}: properties_base64: {error}") from None
        return property_list
    given = entry.get("properties", {})
    # The HTTP API ignores unknown properties; here, a misspelt name would change the replayed message.
    unknown = set(given) - _PROPERTIES if isinstance(given, dict) else set()
    if unknown:
        raise CaptureFileError(f"line {number}: unknown properties: {', '.join(sorted(unknown))}")
    try:
        return properties_of(given).encode()
    except InvalidProperty as error:
        raise CaptureFileError(f"line {number}: {error}") from None
    except UnicodeEncodeError:
        raise CaptureFileError(f"line {number}: a property is not valid text") from None


def _body(entry: dict[str, Any], number: int) -> bytes:
    if ("body" in entry) is ("body_base64" in entry):
        raise CaptureFileError(f"line {number}: there must be body or body_base64")
    if "body_base64" in entry:
        return _octets(entry, "body_base64", number)
    try:
        body: bytes = entry["body"].encode()
    except (AttributeError, UnicodeEncodeError):
        raise CaptureFileError(f"line {number}: body is not valid text") from None
    return body


def _octets(entry: dict[str, Any], name: str, number: int) -> bytes:
    try:
        return base64.b64decode(entry[name], validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise CaptureFileError(f"line {number}: {name} is not base64") from None
