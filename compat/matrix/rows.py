"""The clients: each folder of compat with a `row.py` declares them in its `ROWS`."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

COMPAT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Row:
    """A client and the program that plays the scenarios with it.

    The folder of its `row.py` is copied; in the copy the commands of `install` are run in order, and then `command`
    with the scenarios as further arguments.
    """

    # Lower case, as in `make compat CLIENT=name`. A row is also chosen by its language or its folder.
    name: str
    language: str
    # Of the client, as its build file pins it.
    version: str
    command: Sequence[str]
    install: Sequence[Sequence[str]] = ()
    # What must be on the machine: a program to the Debian package that is installed where there is none.
    programs: Sequence[tuple[str, str]] = ()
    # Why the client cannot be had at all; it then stands in the table with this.
    absent: str = ""
    # Longest wait for a result.
    timeout_s: float = 60.0


@dataclass(frozen=True)
class Client:
    """A row and the folder in which it was found."""

    row: Row
    folder: Path

    @property
    def slug(self) -> str:
        """Its name as a part of other names."""
        return re.sub(r"\W+", "-", self.row.name).strip("-")

    @property
    def is_tested(self) -> bool:
        """Whether the tests play it (`test_clients.py`): what it needs is there for them anyway."""
        return self.row.language in ("Go", "Python") and not self.row.absent

    @property
    def words(self) -> set[str]:
        """What it may be called on the command line."""
        return {self.row.name, self.row.language.lower(), self.folder.name}


def clients(root: Path = COMPAT) -> list[Client]:
    """All clients, by language and name; ValueError if two have one name."""
    found = [Client(row, path.parent) for path in root.glob("*/row.py") for row in _declared(path)]
    names = [client.row.name for client in found]
    if len(set(names)) < len(names):
        raise ValueError(f"two rows have one name: {sorted(name for name in names if names.count(name) > 1)}")
    return sorted(found, key=lambda client: (client.row.language.lower(), client.row.name))


def chosen(known: list[Client], words: Sequence[str]) -> list[Client]:
    """Those whose name, language or folder is among the words, or all if there are none.

    ValueError with what there is if a word means none.
    """
    unknown = set(words).difference(*(client.words for client in known))
    if unknown:
        there = " ".join(sorted(set().union(*(client.words for client in known))))
        raise ValueError(f"there is no client {' '.join(sorted(unknown))}; there are {there}")
    return [client for client in known if not words or client.words & set(words)]


def of_the_day(known: list[Client], day: int, count: int) -> list[Client]:
    """So many of the clients, other ones each day until all had their turn; `day` counts from anywhere."""
    first = day * count % len(known) if known else 0
    return [*known[first:], *known[:first]][:count]


def _declared(path: Path) -> Iterator[Row]:
    spec = importlib.util.spec_from_file_location(f"compat_row_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield from module.ROWS
