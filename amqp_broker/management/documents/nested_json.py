"""JSON of any depth, for the documents that readers and writers with a recursion of their own refuse.

RabbitMQ shows and takes field tables as deep as a frame holds them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

from amqp_broker.amqp import nested
from amqp_broker.broker.scheduling.portions import Steps, finished

# Levels that a request may have. RabbitMQ no longer publishes a message of this depth.
LEVELS_MAX: Final = 100_000
# Values that are read in a step.
STEP_VALUES: Final = 50

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_END: Final[dict[type[Any], str]] = {dict: "}", list: "]"}


class TooDeep(ValueError):
    """A document has more levels than LEVELS_MAX."""

    def __init__(self) -> None:
        super().__init__(f"the values are nested deeper than {LEVELS_MAX} levels")


class TooManyValues(ValueError):
    """A document has more values than it may have."""

    def __init__(self, values_max: int) -> None:
        super().__init__(f"the document has more than {values_max} values")


def write(value: Any, leaf: Callable[[Any], str]) -> str:
    """Return the JSON of nested dicts and lists; `leaf` returns that of any other value."""

    def parts(block: Any) -> Iterator[Any]:
        is_object = isinstance(block, dict)
        keys = [f"{leaf(key)}:" for key in block] if is_object else [""] * len(block)
        yield "{" if is_object else "["
        for number, (key, item) in enumerate(zip(keys, block.values() if is_object else block, strict=True)):
            yield f"{',' if number else ''}{key}"
            yield item if isinstance(item, (dict, list)) else leaf(item)
        yield "}" if is_object else "]"

    return nested.joined(value, parts) if isinstance(value, (dict, list)) else leaf(value)


def refuse_constant(name: str) -> NoReturn:
    """Raise ValueError for a word that Python reads as a number."""
    raise ValueError(f"{name} is not a JSON number")


def finite(number: str) -> float:
    """Return a number with a fraction or an exponent. Raise ValueError for one that no float can be: 1e999."""
    value = float(number)
    if math.isinf(value):
        raise ValueError(f"{number} is too large")
    return value


_SCALARS: Final = json.JSONDecoder(parse_float=finite, parse_constant=refuse_constant)


def require_encodable(value: Any) -> None:
    """Raise UnicodeEncodeError for a text that AMQP cannot encode: one with a lone surrogate."""

    def encoded(part: Any) -> Any:
        return part.encode() if isinstance(part, str) else part

    nested.mapped(value, encoded, encoded)


def read(text: str) -> Any:
    """Return the value of a JSON text. Raise ValueError, and TooDeep."""
    return finished(reading(text, len(text) + 1, is_for_amqp=False))


def reading(text: str, values_max: int, *, is_for_amqp: bool = True) -> Steps[Any]:
    """Do `read` in steps. Raise TooManyValues, too, and with `is_for_amqp` UnicodeEncodeError for a lone surrogate."""
    whole: list[Any] = []
    blocks: list[Any] = [whole]
    key, at, count = "", 0, 0
    while True:
        count += 1
        if count > values_max:
            raise TooManyValues(values_max)
        if count % STEP_VALUES == 0:
            yield
        at = _skip(text, at)
        is_block = text.startswith(("{", "["), at)
        value: Any
        if is_block:
            value = {} if text[at] == "{" else []
        else:
            value, at = _SCALARS.raw_decode(text, at)
            if is_for_amqp and isinstance(value, str):
                value.encode()
        if isinstance(blocks[-1], dict):
            blocks[-1][key] = value
        else:
            blocks[-1].append(value)
        if is_block:
            blocks.append(value)
            if len(blocks) > LEVELS_MAX:
                raise TooDeep
            at = _skip(text, at + 1)
        if not is_block or text.startswith(_END[type(value)], at):
            at = _close(text, at, blocks)
        if not blocks:
            return whole[0]
        if isinstance(blocks[-1], dict):
            key, at = _key(text, at)
            if is_for_amqp:
                key.encode()


def _skip(text: str, at: int) -> int:
    """Return the place behind the white space."""
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _close(text: str, at: int, blocks: list[Any]) -> int:
    """Leave the blocks that end behind a value; return the place of the next value, if any is open."""
    while len(blocks) > 1:
        at = _skip(text, at)
        if text.startswith(",", at):
            return _skip(text, at + 1)
        if not text.startswith(_END[type(blocks[-1])], at):
            raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
        blocks.pop()
        at += 1
    blocks.pop()
    if _skip(text, at) != len(text):
        raise json.JSONDecodeError("Extra data", text, at)
    return at


def _key(text: str, at: int) -> tuple[str, int]:
    """Return the key of an object's member and the place behind its colon."""
    if not text.startswith('"', at):
        raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
    key, at = _SCALARS.raw_decode(text, at)
    at = _skip(text, at)
    if not text.startswith(":", at):
        raise json.JSONDecodeError("Expecting ':' delimiter", text, at)
    return key, at + 1
