"""Parsing the JSON of definitions and snapshots, which must be encodable for AMQP."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from amqp_broker.broker.scheduling.portions import Steps, finished
from amqp_broker.management.documents import nested_json
from amqp_broker.management.documents.definition import DefinitionsError

# The only form of a lone surrogate, which cannot be encoded for AMQP.
ESCAPE: Final = "\\u"
# Characters of a document that is read at once if it is not read item by item, and the values of a longer one.
AT_ONCE_CHARACTERS_MAX: Final = 128 * 1024
VALUES_MAX: Final = 1_000_000

_SPACE: Final = r"[ \t\n\r]*+"
_OPEN: Final = re.compile(rf"{_SPACE}\{{{_SPACE}").match
_NAME: Final = re.compile(rf'"([^"\\\x00-\x1f]*)"{_SPACE}:{_SPACE}').match
_LIST: Final = re.compile(rf"\[{_SPACE}(?!\])").match
_COMMA: Final = re.compile(rf"{_SPACE},{_SPACE}").match
_LIST_END: Final = re.compile(rf"{_SPACE}\]").match
_END: Final = re.compile(rf"{_SPACE}\}}{_SPACE}\Z").match
_DECODER: Final = json.JSONDecoder(parse_float=nested_json.finite, parse_constant=nested_json.refuse_constant)
_value_at: Final = _DECODER.raw_decode


class NotJSON(DefinitionsError):
    """A document is not JSON; RabbitMQ's API calls this `failed_to_parse_json`."""


def parse(octets: bytes) -> Any:
    """Return the document in octets; no octets are an empty document. Raise NotJSON."""
    return finished(parsing(octets))


def parsing(octets: bytes) -> Steps[Any]:
    """Do `parse` in steps."""
    if not octets:
        return {}
    try:
        text = octets.decode("utf-8-sig")
        try:
            document = yield from _object(text)
        except (ValueError, RecursionError):
            document = yield from _whole(text)
    except UnicodeError:
        raise NotJSON("not JSON: the text is not valid UTF-8") from None
    except ValueError as error:
        raise NotJSON(f"not JSON: {error}") from None
    return document


def _whole(text: str) -> Steps[Any]:
    if len(text) <= AT_ONCE_CHARACTERS_MAX:
        try:
            document = _DECODER.decode(text)
        except RecursionError:
            pass
        else:
            if ESCAPE in text:
                nested_json.require_encodable(document)
            return document
    return (yield from nested_json.reading(text, VALUES_MAX))


def _object(text: str) -> Steps[dict[str, Any]]:
    """Return the object in a text; the lists of its members are read item by item, a step each.

    Raise ValueError for anything that is not read here: what is wrong with it, if anything, is for `_whole` to say.
    """
    document: dict[str, Any] = {}
    place = _OPEN(text)
    while place and (name := _NAME(text, place.end())):
        document[name[1]], at = yield from _member(text, name.end())
        place = _COMMA(text, at)
        if place is None and _END(text, at):
            return document
        if len(document) % nested_json.STEP_VALUES == 0:
            yield
    raise ValueError


def _member(text: str, at: int) -> Steps[tuple[Any, int]]:
    """Return the value at a place, and the place behind it. Raise ValueError."""
    place, items = _LIST(text, at), list[Any]()
    if place is None:
        return _checked(text, at)
    while place:
        item, at = _checked(text, place.end())
        items.append(item)
        place = _COMMA(text, at)
        yield
    end = _LIST_END(text, at)
    if end is None:
        raise ValueError
    return items, end.end()


def _checked(text: str, at: int) -> tuple[Any, int]:
    value, end = _value_at(text, at)
    if text.find(ESCAPE, at, end) >= 0:
        nested_json.require_encodable(value)
    return value, end
