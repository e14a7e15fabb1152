"""The format of rabbitmq.conf: lines `key = value`, and comments from # to the end of the line.

As in cuttlefish, which RabbitMQ uses: white space around a value is dropped and quotation marks are kept, except single
ones around a whole value; # begins no comment between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
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


# Stands for a point that does not separate the parts of a key.
ESCAPED_POINT: Final = "\0"


def parts(key: str) -> list[str]:
    """Return the parts of a key between its points."""
    return [part.replace(ESCAPED_POINT, ".") for part in key.split(".")]


def latest(entries: Iterable[Entry]) -> dict[str, Entry]:
    """Return the last entry of each key, in the order in which the keys first appear."""
    return {entry.key: entry for entry in entries}
