"""The clients: each folder of compat with a `row.py` declares its clients in `ROWS`."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

COMPAT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Row:
    """A client and the program that plays the scenarios with it.

    The folder of its `row.py` is copied. In the copy, the commands of `install` run in order, then `command` with the
    scenarios as additional arguments. A command that several rows of a folder share runs once.
    """

    # In lower case, as in `make compat CLIENT=name`. A row is also selected by its language or its folder.
    name: str
    language: str
    # The client's version, pinned by its build file.
    version: str
    command: Sequence[str]
    install: Sequence[Sequence[str]] = ()
    # Required programs, with the Debian package of each.
    programs: Sequence[tuple[str, str]] = ()
    # The reason why the client is not available at all; the table shows it.
    absent: str = ""
    # Scenarios that need a newer RabbitMQ than the one that is installed, with the reason of each. They are played at
    # amqp-broker alone.
    newer_only: Mapping[str, str] = field(default_factory=dict)
    # Timeout for a result; clients with longer ones are installed first.
    timeout_s: float = 60.0
    # About how long the build takes if that is minutes; the longest builds start first.
    build_s: float = 0.0
    # Required programs that Debian does not package. A machine without them does not play the client: results from
    # another machine are kept, and CI does not fail.
    needs: Sequence[str] = ()


@dataclass(frozen=True)
class Client:
    """A row and its folder."""

    row: Row
    folder: Path

    @property
    def slug(self) -> str:
        """Return its name as a part of other names."""
        return re.sub(r"\W+", "-", self.row.name).strip("-")

    @property
    def words(self) -> set[str]:
        """Return its names on the command line."""
        return {self.row.name, self.row.language.lower(), self.folder.name}

    @property
    def unplayed(self) -> str:
        """Return the reason why this machine does not play it, or an empty string."""
        lacking = [program for program in self.row.needs if not shutil.which(program)]
        return f"it needs {' and '.join(lacking)}, which Debian does not package" if lacking else ""


def clients(root: Path = COMPAT) -> list[Client]:
    """Return all clients by language and name. Raise ValueError for a duplicate name."""
    found = [Client(row, path.parent) for path in root.glob("*/row.py") for row in _declared(path)]
    names = [client.row.name for client in found]
    if len(set(names)) < len(names):
        raise ValueError(f"two rows have one name: {sorted(name for name in names if names.count(name) > 1)}")
    return sorted(found, key=lambda client: (client.row.language.lower(), client.row.name))


def chosen(known: list[Client], words: Sequence[str]) -> list[Client]:
    """Return the clients whose name, language or folder is among the words, or all if there are none.

    Raise ValueError for an unknown word, with the known ones.
    """
    unknown = set(words).difference(*(client.words for client in known))
    if unknown:
        there = " ".join(sorted(set().union(*(client.words for client in known))))
        raise ValueError(f"there is no client {' '.join(sorted(unknown))}; there are {there}")
    return [client for client in known if not words or client.words & set(words)]


def of_day(known: list[Client], day: int) -> list[Client]:
    """Return the third of the clients that play on a day. Those of a language stay together: they share installations.

    Clients whose build takes minutes, which are those of Rust, play when all do.
    """
    languages: dict[str, list[Client]] = {}
    for client in known:
        languages.setdefault(client.row.language, []).append(client)
    thirds: list[list[Client]] = [[], [], []]
    for group in sorted(languages.values(), key=len, reverse=True):
        min(thirds, key=len).extend(group)
    return [client for client in thirds[day % 3] if not client.row.build_s]


def _declared(path: Path) -> Iterator[Row]:
    spec = importlib.util.spec_from_file_location(f"compat_row_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield from module.ROWS
