"""A reader of Erlang terms, the format of enabled_plugins and advanced.config: what `file:consult` reads.

Lists and tuples become Python's, strings and binaries `str`, characters numbers, atoms `Atom`. Settings need no other
terms; those are read all the same, so that one of them does not lose the file. Source: Erlang reference manual, "Data
Types"; erl_parse.erl, normalise.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from typing import Any, Final

DEPTH_MAX: Final = 50
# The highest base of a number: digits, and the letters of the Latin alphabet.
BASE_MAX: Final = 36
CODE_POINT_MAX: Final = 0x10FFFF

_ESCAPED_CHARACTER: Final = r"\\(?:[0-7]{1,3}|x[0-9a-fA-F]{2}|x\{[0-9a-fA-F]+\}|\^.|.)"
_TOKEN: Final = re.compile(
    rf"""(?P<space>(?:\s|%[^\n]*)+)
      | (?P<number>[0-9]+(?:_[0-9]+)*(?:\#[0-9A-Za-z]+(?:_[0-9A-Za-z]+)*
            |\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?)?)
      | (?P<character>\$(?:{_ESCAPED_CHARACTER}|[^\\]))
      | (?P<atom>[a-zß-öø-ÿ][0-9A-Za-zÀ-ÖØ-öø-ÿ_@]*)
      | (?P<quoted>'(?:[^'\\]|\\.)*')
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<mark><<|>>|=>|[][{{}}(),.|/:\#+-])""",
    re.VERBOSE | re.DOTALL,
)
# In a string, binary or quoted atom: an octal or hexadecimal number, a control character, or a letter.
_ESCAPE: Final = re.compile(
    r"\\(?:(?P<octal>[0-7]{1,3})|x(?P<two>[0-9a-fA-F]{2})|x\{(?P<hex>[0-9a-fA-F]+)\}|\^(?P<control>[@-_a-z])|(?P<one>.))",
    re.DOTALL,
)
_ESCAPED: Final = {"b": "\b", "d": "\x7f", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "s": " ", "t": "\t", "v": "\v"}
_ENDS: Final = {"[": "]", "{": "}", "<<": ">>", "(": ")"}
# Words that are no atoms without quotation marks.
_RESERVED: Final = frozenset(
    (
        *(
            "after",
            "and",
            "andalso",
            "band",
            "begin",
            "bnot",
            "bor",
            "bsl",
            "bsr",
            "bxor",
            "case",
            "catch",
            "cond",
            "div",
        ),
        *("end", "fun", "if", "let", "not", "of", "or", "orelse", "receive", "rem", "try", "when", "xor"),
    )
)
# Codecs of the types of segments in a binary that stand for characters.
_CODECS: Final = {"utf8": "utf-8", "utf16": "utf-16", "utf32": "utf-32"}
_SEGMENT_WORDS: Final = frozenset(
    (
        *(*_CODECS, "integer", "float", "binary", "bytes", "bitstring", "bits", "signed", "unsigned"),
        *("big", "little", "native", "unit"),
    )
)
_FLOATS: Final = {16: "e", 32: "f", 64: "d"}
# More bits than a segment of a setting has.
SEGMENT_BITS_MAX: Final = 1 << 16


class Atom(str):
    """An atom: a name that is its own value."""

    __slots__ = ()


@dataclass(frozen=True)
class ImproperList:
    """A list whose tail is no list, such as `[1 | 2]`."""

    items: list[Any]
    tail: Any


@dataclass(frozen=True)
class Map:
    """A map, such as `#{a => 1}`, as it is written: of equal keys, the last counts."""

    pairs: list[tuple[Any, Any]]


@dataclass(frozen=True)
class Function:
    """A reference to a function, such as `fun lists:reverse/1`."""

    module: Atom
    name: Atom
    arity: int


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

    def _is_at(self, mark: str) -> bool:
        return self._kind == "mark" and self._token == mark

    def _expect(self, mark: str) -> None:
        if not self._is_at(mark):
            raise self.error()
        self.take()

    def term(self, depth: int) -> Any:
        if depth > DEPTH_MAX:
            raise self.error()
        kind, token = self._kind, self._token
        if kind == "end":
            raise self.error()
        if kind == "mark":
            return self._marked(token, depth)
        if token == "fun":
            return self._function()
        if kind == "string":
            return self._string()
        self.take()
        if kind == "number":
            return self._number(token)
        if kind == "character":
            return self._character(token)
        if kind == "quoted":
            return Atom(self._unquoted(token))
        if token in _RESERVED:
            raise self.error()
        return Atom(token)

    def _marked(self, token: str, depth: int) -> Any:
        self.take()
        if token in ("+", "-"):
            return self._signed(token, depth)
        if token == "[":
            return self._list(depth)
        if token == "{":
            items = self._items("}", depth)
            self._expect("}")
            return tuple(items)
        if token == "#":
            self._expect("{")
            return self._map(depth)
        if token == "<<":
            return self._binary(depth)
        if token == "(":
            term = self.term(depth + 1)
            self._expect(")")
            return term
        raise self.error()

    def _signed(self, sign: str, depth: int) -> int | float:
        number = self.term(depth + 1)
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise self.error()
        return -number if sign == "-" else number

    def _items(self, end: str, depth: int) -> list[Any]:
        """Return the terms up to a mark, or to the tail of a list."""
        items: list[Any] = []
        if not self._is_at(end):
            items.append(self.term(depth + 1))
            while self._is_at(","):
                self.take()
                items.append(self.term(depth + 1))
        return items

    def _list(self, depth: int) -> Any:
        items = self._items("]", depth)
        if not self._is_at("|") or not items:
            self._expect("]")
            return items
        self.take()
        is_string = self._kind == "string"
        tail = self.term(depth + 1)
        self._expect("]")
        if is_string:
            tail = [ord(character) for character in tail]
        if isinstance(tail, list):
            return items + tail
        if isinstance(tail, ImproperList):
            return ImproperList(items + tail.items, tail.tail)
        return ImproperList(items, tail)

    def _map(self, depth: int) -> Map:
        pairs: list[tuple[Any, Any]] = []
        while not self._is_at("}") or pairs:
            key = self.term(depth + 1)
            self._expect("=>")
            pairs.append((key, self.term(depth + 1)))
            if not self._is_at(","):
                break
            self.take()
        self._expect("}")
        return Map(pairs)

    def _string(self) -> str:
        """Return a string; adjacent ones are one."""
        parts: list[str] = []
        while self._kind == "string":
            parts.append(self._unquoted(self.take()))
        return "".join(parts)

    def _unquoted(self, token: str) -> str:
        return _ESCAPE.sub(self._unescaped, token[1:-1])

    def _unescaped(self, found: re.Match[str]) -> str:
        """Return the character of an escape sequence."""
        one = found["one"]
        if one is not None:
            return _ESCAPED.get(one, one)
        if found["control"] is not None:
            return chr(ord(found["control"]) & 0x1F)
        if found["octal"] is not None:
            return chr(int(found["octal"], 8))
        return self._character_of(int(found["two"] or found["hex"], 16))

    def _character_of(self, code: int) -> str:
        if not 0 <= code <= CODE_POINT_MAX or 0xD800 <= code < 0xE000:
            raise self.error()
        return chr(code)

    def _character(self, token: str) -> int:
        character = token[1:] if len(token) == 2 else _ESCAPE.sub(self._unescaped, token[1:])
        return ord(character)

    def _number(self, token: str) -> int | float:
        digits = token.replace("_", "")
        base, mark, of_base = digits.partition("#")
        try:
            if mark:
                if not 2 <= int(base) <= BASE_MAX:
                    raise self.error()
                return int(of_base, int(base))
            number = float(digits) if "." in digits else int(digits)
        except ValueError:
            # A digit that the base does not have. Python reads no number of more than 4300 digits.
            raise self.error() from None
        if isinstance(number, float) and math.isinf(number):
            raise self.error()
        return number

    def _function(self) -> Function:
        self.take()
        if self._kind not in ("atom", "quoted"):
            raise self.error()
        module = self.term(0)
        self._expect(":")
        name = self.term(0)
        self._expect("/")
        if self._kind != "number" or not isinstance(module, Atom) or not isinstance(name, Atom):
            raise self.error()
        return Function(module, name, int(self._number(self.take())))

    # Binaries

    def _binary(self, depth: int) -> str:
        """Return the text of a binary, in UTF-8 if it is that, else in Latin-1."""
        octets = bytearray()
        if not self._is_at(">>"):
            octets += self._segment(depth)
            while self._is_at(","):
                self.take()
                octets += self._segment(depth)
        self._expect(">>")
        try:
            return octets.decode()
        except UnicodeDecodeError:
            return octets.decode("latin-1")

    def _segment(self, depth: int) -> bytes:
        """Return the octets of a segment `Value:Size/Type-Type`."""
        term = self.term(depth + 1)
        size: Any = None
        if self._is_at(":"):
            self.take()
            size = self.term(depth + 1)
            if not isinstance(size, int) or not 0 <= size <= SEGMENT_BITS_MAX:
                raise self.error()
        types = self._types()
        codec = next((_CODECS[one] for one in types if one in _CODECS), "")
        values = [ord(character) for character in term] if type(term) is str else [term]
        try:
            if codec:
                order = "-le" if "little" in types and codec != "utf-8" else "" if codec == "utf-8" else "-be"
                return "".join(map(self._character_of, values)).encode(codec + order)
            return b"".join(self._octets(value, size, types) for value in values)
        except (TypeError, struct.error, OverflowError):
            raise self.error() from None

    def _types(self) -> set[str]:
        types: set[str] = set()
        if self._is_at("/"):
            while not types or self._is_at("-"):
                self.take()
                if self._kind != "atom" or self._token not in _SEGMENT_WORDS:
                    raise self.error()
                types.add(self.take())
                if "unit" in types and self._is_at(":"):
                    self.take()
                    self.take()
        return types

    def _octets(self, value: Any, size: int | None, types: set[str]) -> bytes:
        """Return a number in whole octets: settings have no others."""
        if "float" in types:
            return struct.pack(("<" if "little" in types else ">") + _FLOATS.get(size or 64, "d"), value)
        if isinstance(value, Atom) or not isinstance(value, int):
            raise TypeError
        bits = 8 if size is None else size
        return (value & ((1 << bits) - 1)).to_bytes((bits + 7) // 8, "little" if "little" in types else "big")
