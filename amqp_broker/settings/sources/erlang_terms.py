"""A reader of Erlang terms, the format of enabled_plugins and advanced.config.

Lists and tuples become Python's, strings and binaries `str`, atoms `Atom`. Source: Erlang reference manual, "Data
Types".
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

DEPTH_MAX: Final = 50

_TOKEN: Final = re.compile(
    r"""(?P<space>(?:\s|%[^\n]*)+)
      | (?P<number>-?[0-9]+(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?)?)
      | (?P<atom>[a-zß-öø-ÿ][0-9A-Za-zÀ-ÖØ-öø-ÿ_@]*)
      | (?P<quoted>'(?:[^'\\]|\\.)*')
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<mark><<|>>|/utf8|[][{},.])""",
    re.VERBOSE | re.DOTALL,
)
# In a string, binary or quoted atom: an octal or hexadecimal number, a control character, or a letter.
_ESCAPE: Final = re.compile(
    r"\\(?:(?P<octal>[0-7]{1,3})|x(?P<two>[0-9a-fA-F]{2})|x\{(?P<hex>[0-9a-fA-F]+)\}|\^(?P<control>[@-_a-z])|(?P<one>.))",
    re.DOTALL,
)
_ESCAPED: Final = {"b": "\b", "d": "\x7f", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "s": " ", "t": "\t", "v": "\v"}
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
            return self._number(token)
        if kind == "atom":
            return Atom(token)
        unquoted = _ESCAPE.sub(self._unescaped, token[1:-1])
        return Atom(unquoted) if kind == "quoted" else unquoted

    def _number(self, token: str) -> int | float:
        try:
            number = float(token) if "." in token else int(token)
        except ValueError:
            # Python reads no number of more than 4300 digits.
            raise self.error() from None
        if isinstance(number, float) and math.isinf(number):
            raise self.error()
        return number

    def _unescaped(self, found: re.Match[str]) -> str:
        """Return the character of an escape sequence."""
        one = found["one"]
        if one is not None:
            return _ESCAPED.get(one, one)
        if found["control"] is not None:
            return chr(ord(found["control"]) & 0x1F)
        if found["octal"] is not None:
            return chr(int(found["octal"], 8))
        code = int(found["two"] or found["hex"], 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise self.error()
        return chr(code)

    def _collection(self, start: str, depth: int) -> Any:
        end, items = _ENDS[start], []
        while self._token != end or self._kind != "mark":
            items.append(self.term(depth + 1))
            if start == "<<" and self._token == "/utf8":
                self.take()
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
