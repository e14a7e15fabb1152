"""The differences of two transcripts, as names of methods and fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

Lines = list[str]

# A line of a connection: its channel, the direction, and the rest.
_LINE = re.compile(r"\w+[<>] (?P<rest>.*)", re.DOTALL)


def fields(question: str, rabbitmq: Lines, amqp_broker: Lines) -> set[str]:
    """Return the fields and methods in which two transcripts differ: `basic.deliver redelivered`."""
    found = set[str]()
    for kind, begin, end, other_begin, other_end in SequenceMatcher(None, rabbitmq, amqp_broker, False).get_opcodes():
        if kind != "equal":
            found.update(_of_lines(rabbitmq[begin:end], amqp_broker[other_begin:other_end]))
    return found


def _of_lines(there: Lines, here: Lines) -> Iterator[str]:
    """Yield the differences of two runs of lines that have no line in common."""
    is_same_length = len(there) == len(here)
    for one, other in zip(there, here, strict=True) if is_same_length else ():
        if name_of(one) == name_of(other):
            yield from _of_values(one, other)
        else:
            yield f"{name_of(one)}: not here"
            yield f"{name_of(other)}: only here"
    if not is_same_length:
        yield from (f"{name_of(line)}: not here" for line in there)
        yield from (f"{name_of(line)}: only here" for line in here)


def _of_values(there: str, here: str) -> Iterator[str]:
    one, other = values_of(there), values_of(here)
    different = [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]
    yield from (f"{name_of(there)} {name}" for name in different)
    if not different:
        yield name_of(there)


def name_of(line: str) -> str:
    """Return the method of a line, `content` for properties and body, or the line's first words."""
    match = _LINE.fullmatch(line)
    rest = match["rest"] if match else line
    if rest.startswith("   "):
        return "content"
    if rest.startswith("protocol header"):
        return "protocol header"
    return rest if rest.startswith("the broker") else rest.partition(" ")[0].rstrip(":")


def values_of(line: str) -> dict[str, str]:
    """Return the fields of a line as texts; a value may contain spaces within quotes and brackets."""
    parts, begin, depth, quote = [], 0, 0, ""
    for index, letter in enumerate(line):
        if quote:
            if letter == quote and line[index - 1] != "\\":
                quote = ""
        elif letter in "'\"":
            quote = letter
        elif letter in "{[(":
            depth += 1
        elif letter in "}])":
            depth -= 1
        elif letter == " " and not depth:
            parts.append(line[begin:index])
            begin = index + 1
    parts.append(line[begin:])
    pairs = (part.partition("=") for part in parts)
    return {name: value for name, equals, value in pairs if equals}
