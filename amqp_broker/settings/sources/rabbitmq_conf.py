"""The format of rabbitmq.conf: lines `key = value`, and comments from # to the end of the line.

As in cuttlefish, which RabbitMQ uses: white space around a value is dropped and quotation marks are kept, except single
ones around a whole value; # begins no comment between them. `$(NAME)` stands for another key or a variable of the
environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

_SETTING: Final = re.compile(r"\s*(?P<key>(?:[\w.-]|\\.)+)\s*=\s*(?:'(?P<quoted>[^']*)'|(?P<value>[^#]*?))\s*(?:#.*)?")
_EMPTY: Final = re.compile(r"\s*(?:#.*)?")


class Entry(NamedTuple):
    """A key, its value as text, and its place: `rabbitmq.conf:3`."""

    key: str
    value: str
    place: str


def parse(text: str, name: str) -> tuple[list[Entry], list[str]]:
    """Return the entries of a file called `name`, and the places of invalid lines."""
    entries, wrong = [], []
    for number, line in enumerate(re.split(r"\r?\n", text.removeprefix("\ufeff")), 1):
        place = f"{name}:{number}"
        if _EMPTY.fullmatch(line):
            continue
        found = _SETTING.fullmatch(line)
        value = "" if found is None else (found["quoted"] if found["quoted"] is not None else found["value"])
        if found is None or not value:
            wrong.append(place)
            continue
        entries.append(Entry(found["key"].replace("\\.", ESCAPED_POINT), value, place))
    return entries, wrong


_REFERENCE: Final = re.compile(r"\$\(([^)]*)\)")


class _WrongReference(ValueError):
    """A reference to nothing, or to itself; the message completes "the key ..."."""


def substituted(entries: Sequence[Entry], environment: Mapping[str, str]) -> tuple[list[Entry], list[str]]:
    """Replace each `$(NAME)` in values by the value of that key, or of that variable; return errors as well.

    Source: cuttlefish_generator.erl, value_sub.
    """
    if not any("$(" in entry.value for entry in entries):
        return list(entries), []
    values = {entry.key: entry.value for entry in entries}

    def expanded(key: str, value: str, inside: tuple[str, ...]) -> str:
        if key in inside:
            raise _WrongReference(f"refers to itself: {' -> '.join((*inside, key))}")

        def referred(found: re.Match[str]) -> str:
            name = found[1].strip()
            of_name = values.get(name, environment.get(name))
            if of_name is None:
                raise _WrongReference(f"refers to '{name}', which is neither a key nor a variable of the environment")
            return expanded(name, of_name, (*inside, key))

        return _REFERENCE.sub(referred, value)

    complete, wrong = [], []
    for entry in entries:
        try:
            complete.append(entry._replace(value=expanded(entry.key, entry.value, ())))
        except _WrongReference as error:
            wrong.append(f"{entry.place}: {entry.key} {error}")
    return complete, wrong


# Stands for a point that does not separate the parts of a key.
ESCAPED_POINT: Final = "\0"


def parts(key: str) -> list[str]:
    """Return the parts of a key between its points."""
    return [part.replace(ESCAPED_POINT, ".") for part in key.split(".")]


def latest(entries: Iterable[Entry]) -> dict[str, Entry]:
    """Return the last entry of each key, in the order in which the keys first appear."""
    return {entry.key: entry for entry in entries}
