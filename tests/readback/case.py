"""A write, and how it is read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.readback.node import Node

Step = Callable[[Node], object]


@dataclass(frozen=True)
class Case:
    """The write of an endpoint or a command, and the value that is read afterwards, but not before.

    `is_kept` says that it is read after a restart as well, beside what all others have written.
    """

    name: str
    write: Step
    read: Callable[[Node], Any]
    expected: Any = None
    before: Sequence[Step] = ()
    is_kept: bool = False
    # It stops or empties the broker, so it has a broker of its own.
    is_alone: bool = False

    def play(self, node: Node) -> None:
        for step in self.before:
            step(node)
        assert self.read(node) != self.expected, "the reading finds the same before the write"
        self.write(node)
        found = self.read(node)
        assert found == self.expected, f"{found!r} instead of {self.expected!r}"


def put(path: str, body: Any = None) -> Step:
    return lambda node: node.write("PUT", path, body)


def post(path: str, body: Any = None) -> Step:
    return lambda node: node.write("POST", path, body)


def delete(path: str, body: Any = None) -> Step:
    return lambda node: node.write("DELETE", path, body)


def ctl(line: str, *words: str, tool: str = "ctl") -> Step:
    """Run a command: the words of a line, and further ones that contain spaces."""
    return lambda node: node.ctl(*line.split(), *words, tool=tool)


def row(command: str, *columns: str, **there: Any) -> Callable[[Node], Any]:
    """Read columns of the row that a command lists, or whether there is one."""

    def read(node: Node) -> Any:
        found = node.row(command, **there)
        return found is not None if not columns else found and [found[column] for column in columns]

    return read


def seen(path: str, *keys: str) -> Callable[[Node], Any]:
    """Read a value of an answer of the HTTP API, or whether there is one."""

    def read(node: Node) -> Any:
        found = node.get(path)
        if not keys:
            return found is not None
        for key in keys:
            found = found and found.get(key)
        return found

    return read
