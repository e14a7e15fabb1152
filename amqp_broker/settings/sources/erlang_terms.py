"""A reader of Erlang terms, the format of enabled_plugins and advanced.config.

Lists and tuples become Python's, strings and binaries `str`, atoms `Atom`. Source: Erlang reference manual, "Data
Types".
"""

from __future__ import annotations

import re
from typing import Any, Final

DEPTH_MAX: Final = 50

_TOKEN: Final = re.compile(
    r"""(?P<space>(?:\s|%[^\n]*)+)
      | (?P<number>-?\d+(?:\.\d+(?:[eE][-+]?\d+)?)?)
      | (?P<atom>[a-z][\w@]*)
      | (?P<quoted>'(?:[^'\\]|\\.)*')
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<mark><<|>>|[][{},.])""",
    re.VERBOSE | re.DOTALL,
)
_ENDS: Final = {"[": "]", "{": "}", "<<": ">>"}


class Atom(str):
    """An atom: a name that is its own value."""

    __slots__ = ()


class TermError(ValueError):
    """A text is not a term; the message begins with the line."""


def read(text: str) -> Any:
    """Return the only term of a text, whose full stop may be missing. Raises TermError."""
    reader = _Reader(text)
    term = reader.term(0)
    if reader.peek() == ".":
        reader.take()
    if reader.peek():
        raise reader.error()
    return term


def read_whole(text: str) -> Any:
    """Return the term of a text that has no full stop, as an argument of the virtual machine. Raises TermError."""
    reader = _Reader(text)
    term = reader.term(0)
    if reader.peek():
        raise reader.error()
    return term


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._end = 0
        self._kind = self._token = ""
        self.take()

    def error(self) -> TermError:
        line = self._text.count("\n", 0, self._end) + 1
        return TermError(f"line {line}: this is not an Erlang term")

    def peek(self) -> str:
        """Return the next token, "" at the end; quoted tokens keep their quotation marks."""
        return self._token if self._kind != "end" else ""

    def take(self) -> str:
        """Return the next token and advance past it."""
        taken = self._token
        while True:
            if self._end == len(self._text):
                self._kind, self._token = "end", ""
                return taken
            found = _TOKEN.match(self._text, self._end)
            if found is None:
                raise self.error()
            self._end = found.end()
            if found.lastgroup != "space":
                self._kind, self._token = str(found.lastgroup), found.group()
                return taken

    def term(self, depth: int) -> Any:
        if depth > DEPTH_MAX:
            raise self.error()
        kind = self._kind
        if kind == "mark" and self._token in _ENDS:
            return self._collection(self.take(), depth)
        if kind in ("mark", "end"):
            raise self.error()
        token = self.take()
        if kind == "number":
            return float(token) if "." in token else int(token)
        if kind == "atom":
            return Atom(token)
        unquoted = re.sub(r"\\(.)", r"\1", token[1:-1], flags=re.DOTALL)
        return Atom(unquoted) if kind == "quoted" else unquoted

    def _collection(self, start: str, depth: int) -> Any:
        end, items = _ENDS[start], []
        while self._token != end or self._kind != "mark":
            items.append(self.term(depth + 1))
            if self._kind != "mark" or self._token not in (",", end):
                raise self.error()
            if self._token == ",":
                self.take()
        self.take()
        if start == "[":
            return items
        if start == "{":
            return tuple(items)
        if not all(isinstance(item, str) for item in items):
            raise self.error()
        return "".join(items)
