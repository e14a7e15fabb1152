"""Recordings of what was published, as lines of JSON: how they are written and read (docs/replay.md).

    {"format": "amqp-broker recording", "version": 1, "vhost": "/", "started_at_ms": 1700000000000}
    {"at_us": 1250, "exchange": "", "routing_key": "orders", "user": "guest", "properties": {...}, "body": "..."}
    {"skipped": 3}

A body that is no text is `body_base64`. `properties` are as the HTTP API has them; where JSON cannot say them exactly
(it has one kind of integer, AMQP has seven), `properties_base64` has the property list as on the wire, and counts.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from amqp_broker import fields
from amqp_broker.broker.recording import Recorded
from amqp_broker.management.messages import properties_of
from amqp_broker.management.request import Refusal
from amqp_broker.management.values import SHORTSTR_BYTES_MAX, json_of
from amqp_broker.message import CONTENT, PROPERTIES, Address, MalformedProperties, Message, Properties, content_frames

FORMAT: Final = "amqp-broker recording"
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


class RecordingError(ValueError):
    """This is no recording; the text says where and why."""


class Header(NamedTuple):
    """What the first line says."""

    vhost: str
    started_at_ms: int


class Skipped(NamedTuple):
    """So many messages were published here, and are missing."""

    messages: int


# Writing


def header_line(vhost: str, started_at_ms: int) -> bytes:
    return _line({"format": FORMAT, "version": VERSION, "vhost": vhost, "started_at_ms": started_at_ms})


def skipped_line(count: int) -> bytes:
    return _line({"skipped": count})


def message_line(recorded: Recorded) -> bytes:
    message, told = recorded.message, dict[str, Any]()
    told |= {"at_us": recorded.at_us, "exchange": message.exchange, "routing_key": message.routing_key}
    if recorded.mandatory:
        told["mandatory"] = True
    told["user"] = recorded.user
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
    except Refusal:
        return False


def _line(told: dict[str, Any]) -> bytes:
    try:
        return json.dumps(told, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        # A name that is not UTF-8: its octets are lone surrogates, which JSON has only as escapes.
        return json.dumps(told).encode() + b"\n"


# Reading


def read_header(line: bytes) -> Header:
    """Raises RecordingError."""
    told = _object(line, 1)
    if told.get("format") != FORMAT:
        raise RecordingError("this is no recording: its first line does not say so")
    if told.get("version") != VERSION:
        raise RecordingError(f"this recording has version {told.get('version')}, and {VERSION} is what is understood")
    vhost, started_at_ms = told.get("vhost"), told.get("started_at_ms")
    if not isinstance(vhost, str) or not isinstance(started_at_ms, int):
        raise RecordingError("line 1: vhost and started_at_ms are missing")
    return Header(vhost, started_at_ms)


def read(lines: Iterable[bytes]) -> Iterator[Recorded | Skipped]:
    """What the lines of a recording tell, the header among them. Raises RecordingError at the line that is wrong."""
    at_us, number = 0, 0
    for number, line in enumerate(lines, 1):
        if number == 1:
            read_header(line)
            continue
        if not line.endswith(b"\n"):
            raise RecordingError(f"line {number} is cut short; without it, what is before it can be replayed")
        told = _object(line, number)
        if "skipped" in told:
            yield Skipped(_whole(told, "skipped", number))
            continue
        recorded = _recorded(told, number)
        if recorded.at_us < at_us:
            raise RecordingError(f"line {number}: at_us is {recorded.at_us}, before the line above it")
        at_us = recorded.at_us
        yield recorded
    if number == 0:
        raise RecordingError("this is no recording: it is empty")


def _object(line: bytes, number: int) -> dict[str, Any]:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        what = "this is no recording: its first line" if number == 1 else f"line {number}"
        raise RecordingError(f"{what} is no JSON") from None
    if not isinstance(told, dict):
        raise RecordingError("this is no recording" if number == 1 else f"line {number} is no object of JSON")
    return told


def _whole(told: dict[str, Any], name: str, number: int) -> int:
    value = told.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= AT_US_MAX:
        raise RecordingError(f"line {number}: {name} must be a whole number from 0 on")
    return value


def _recorded(told: dict[str, Any], number: int) -> Recorded:
    unknown = set(told) - _KEYS
    if unknown:
        raise RecordingError(f"line {number}: unknown: {', '.join(sorted(unknown))}")
    names = [_name(told, "exchange", number), _name(told, "routing_key", number)]
    user, mandatory = told.get("user", ""), told.get("mandatory", False)
    if not isinstance(user, str) or not isinstance(mandatory, bool):
        raise RecordingError(f"line {number}: user must be a string, and mandatory true or false")
    property_list, body = _property_list(told, number), _body(told, number)
    header = CONTENT.pack(60, 0, len(body)) + property_list
    if len(header) > FRAME_MAX - 8:
        raise RecordingError(f"line {number}: the properties do not fit into a frame")
    content = content_frames(1, header, body, FRAME_MAX)
    return Recorded(_whole(told, "at_us", number), Message(Address(*names), content, 1, False), mandatory, user)


def _name(told: dict[str, Any], key: str, number: int) -> str:
    name = told.get(key)
    if not isinstance(name, str) or len(name.encode("utf-8", "surrogatepass")) > 3 * SHORTSTR_BYTES_MAX:
        raise RecordingError(f"line {number}: {key} must be a string of at most {SHORTSTR_BYTES_MAX} octets")
    try:
        octets = name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise RecordingError(f"line {number}: {key} is no text") from None
    if len(octets) > SHORTSTR_BYTES_MAX:
        raise RecordingError(f"line {number}: {key} must be a string of at most {SHORTSTR_BYTES_MAX} octets")
    return name


def _property_list(told: dict[str, Any], number: int) -> bytes:
    if "properties_base64" in told:
        property_list = _octets(told, "properties_base64", number)
        try:
            Properties.decode(property_list)
        except (MalformedProperties, fields.MalformedTable) as error:
            raise RecordingError(f"line {number}: properties_base64: {error}") from None
        return property_list
    given = told.get("properties", {})
    # The HTTP API passes over what is no property. Here a name that is misspelt would be a message that differs.
    unknown = set(given) - _PROPERTIES if isinstance(given, dict) else set()
    if unknown:
        raise RecordingError(f"line {number}: unknown properties: {', '.join(sorted(unknown))}")
    try:
        return properties_of(given).encode()
    except Refusal as refusal:
        raise RecordingError(f"line {number}: {_sentence_of(refusal.reason)}") from None
    except UnicodeEncodeError:
        raise RecordingError(f"line {number}: a property is no text") from None


def _sentence_of(reason: Any) -> str:
    """What the HTTP API refuses with a term of Erlang (`["not_int", "priority"]`), in words."""
    match reason:
        case ["not_int", name]:
            return f"{name} must be a whole number"
        case ["not_string", name]:
            return f"{name} must be a string"
    return str(reason)


def _body(told: dict[str, Any], number: int) -> bytes:
    if ("body" in told) is ("body_base64" in told):
        raise RecordingError(f"line {number}: there must be body or body_base64")
    if "body_base64" in told:
        return _octets(told, "body_base64", number)
    try:
        body: bytes = told["body"].encode()
    except (AttributeError, UnicodeEncodeError):
        raise RecordingError(f"line {number}: body is no text") from None
    return body


def _octets(told: dict[str, Any], name: str, number: int) -> bytes:
    try:
        return base64.b64decode(told[name], validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise RecordingError(f"line {number}: {name} is no base64") from None
