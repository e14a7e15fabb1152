"""Routing: the endpoints of a path, whose names may be any octets, percent-encoded.

A segment is decoded once, after the path was split, so that `%2F` is a part of a name. `.` and `..` are resolved after
decoding; an empty last segment does not count (cowboy_router.erl, split_path). An empty segment before it is the name
of the default exchange.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote_to_bytes

from amqp_broker.management.http.endpoint import Endpoint

_BROKEN: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
# More than the path of any endpoint has.
SEGMENTS_MAX: Final = 32
# Paths with names of exchanges.
WITH_EXCHANGES: Final = ("/api/exchanges/{vhost}/", "/api/bindings/{vhost}/")
# Key of the segments that may be any name.
_ANY: Final = ""


class BrokenPath(ValueError):
    """A percent sign without two hexadecimal digits."""


class _Node:
    """A segment of the tree: the nodes below it, and the endpoints by method of a path that ends here."""

    __slots__ = ("below", "by_method", "may_name_default_exchange", "names")

    def __init__(self) -> None:
        self.below: dict[str, _Node] = {}
        self.by_method: dict[str, Endpoint] = {}
        self.names: list[str] = []
        self.may_name_default_exchange = False


class Paths:
    """A tree of segments that leads to the endpoints of a path."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self._root = _Node()
        for endpoint in endpoints:
            node, names = self._root, []
            for segment in filter(None, endpoint.path.split("/")):
                if segment.startswith("{"):
                    names.append(segment.strip("{}"))
                    segment = _ANY
                node = node.below.setdefault(segment, _Node())
            if not node.by_method:
                node.names = names
                node.may_name_default_exchange = endpoint.path.startswith(WITH_EXCHANGES)
            assert names == node.names, f"{endpoint} has other names than the other methods of its path"
            node.by_method[endpoint.method] = endpoint

    def find(self, path: str) -> tuple[Mapping[str, Endpoint], dict[str, str]] | None:
        """Return the endpoints of a raw path by method, and the names in it. Raise BrokenPath."""
        segments = segments_of(path)
        if len(segments) > SEGMENTS_MAX:
            return None
        values: list[str] = []
        end = _walk(self._root, segments, 0, values)
        if end is None or ("" in values and not end.may_name_default_exchange):
            return None
        return end.by_method, dict(zip(end.names, values, strict=True))


def _walk(node: _Node, segments: list[str], at: int, values: list[str]) -> _Node | None:
    """Return the node to which the segments from `at` on lead, and append the names among them to `values`."""
    if at == len(segments):
        return node if node.by_method else None
    segment = segments[at]
    # The node below it for any name has the empty key, too.
    if segment and segment in node.below:
        found = _walk(node.below[segment], segments, at + 1, values)
        if found is not None:
            return found
    if _ANY not in node.below:
        return None
    values.append(segment)
    found = _walk(node.below[_ANY], segments, at + 1, values)
    if found is None:
        values.pop()
    return found


def segments_of(path: str) -> list[str]:
    """Return the decoded segments; octets that are not UTF-8 become surrogate escapes. Raise BrokenPath."""
    if _BROKEN.search(path):
        raise BrokenPath(path)
    segments: list[str] = []
    pieces = path.removeprefix("/").split("/")
    if not pieces[-1]:
        pieces.pop()
    for piece in pieces:
        segment = unquote_to_bytes(piece.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
        if segment == "..":
            del segments[-1:]
        elif segment != ".":
            segments.append(segment)
    return segments


def query_of(text: str) -> dict[str, str]:
    """Return the parameters of a query; of several with one name, the first."""
    query: dict[str, str] = {}
    for name, value in parse_qsl(text, keep_blank_values=True, errors="surrogateescape"):
        query.setdefault(name, value)
    return query
