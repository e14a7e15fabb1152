"""Records of a store with damaged pages, read without LMDB.

The checksum of a record proves its key and its octets, so a record is taken wherever it is found. It may be in a leaf
that the trees reach, and in the rest of a damaged leaf. Where a damaged page hides a part of a tree, all pages are
searched that are not free. Free pages have records of the past, and are left out. The form of a record shows its table.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, NamedTuple, TypeAlias

from amqp_broker.store import chunks, pages
from amqp_broker.store.pages import (
    BRANCH,
    DEPTH_MAX,
    IS_ON_OVERFLOW,
    IS_TABLE,
    KEY_BYTES_MAX,
    LEAF,
    NODE_HEAD,
    NUMBER,
    OVERFLOW,
    OVERFLOW_HEAD,
    PAGE_BYTES,
    PAGE_HEAD,
    TREE,
    DamagedFile,
    Meta,
    Tree,
)
from amqp_broker.store.seal import SEAL_BYTES, DamagedRecord, unseal

FORMAT_KEY: Final = b"format"
NEXT_RANGE: Final = b"next_range"
POSITION: Final = struct.Struct(">QQ")

# Takes the table, the key and the sealed octets of a record. The first one of a key counts.
Put: TypeAlias = Callable[[str, bytes, bytes], object]


@dataclass
class Salvage:
    """The numbers of damaged pages, the number of records that each table should have, and the format."""

    page_count: int
    # False if the meta page of the newest commit may be the one that is damaged.
    is_newest: bool
    damaged: set[int] = field(default_factory=set)
    entries: dict[str, int] = field(default_factory=dict)
    format: int | None = None


class Node(NamedTuple):
    """An entry of a page; `rest` has all octets of the page behind the key."""

    size: int
    flags: int
    key: bytes
    rest: bytes


def salvage(path: Path, tables: Collection[str], put: Put) -> Salvage:
    """Pass each record of a file that can be read to `put`. Raise DamagedFile if no meta page is left, and OSError."""
    with path.open("rb", buffering=0) as file:
        metas = _metas(file)
        if not metas:
            raise DamagedFile("both of its meta pages are damaged")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as octets:
            found = Salvage(metas[0].last_page + 1, len(metas) == 2)
            _Salvaging(octets, metas[0], found, tables, put).run(file)
            return found


def _metas(file: IO[bytes]) -> list[Meta]:
    """Return the usable meta pages, the newest one first."""
    found = []
    for offset in (0, PAGE_BYTES):
        try:
            meta = pages.read_meta_at(file, offset)
        except (DamagedFile, pages.ForeignFile):
            continue
        try:
            # Each commit frees pages under its number, which betrays a changed number in a meta page.
            last = max((commit for commit, _ in pages.free_entries(file, meta)[0]), default=0)
        except DamagedFile:
            last = 0
        found.append((last, meta.commit, meta))
    return [meta for _, _, meta in sorted(found, key=lambda one: one[:2], reverse=True)]


class _Salvaging:
    def __init__(self, octets: mmap.mmap, meta: Meta, found: Salvage, tables: Collection[str], put: Put) -> None:
        self._octets = octets
        self._meta = meta
        self._page_bytes = meta.page_bytes
        self._found = found
        self._tables = tables
        self._put = put
        self._seen: set[int] = set()
        # None if the list of free pages is damaged.
        self._free: set[int] | None = None

    def run(self, file: IO[bytes]) -> None:
        try:
            entries, own = pages.free_entries(file, self._meta)
        except DamagedFile:
            self._found.damaged.add(self._meta.free.root)
        else:
            self._seen.update(own)
            self._free = {number for _, numbers in entries for number in numbers}
        if self._meta.tables.depth:
            self._walk(self._meta.tables.root, DEPTH_MAX, b"", None)
        if self._found.damaged and self._free is not None:
            self._take_hidden(self._free)

    def _walk(self, number: int, depth: int, low: bytes, high: bytes | None) -> None:
        """Take the records below a page, whose keys are from `low` on and below `high`."""
        if number in self._seen or not depth:
            return
        page = self._page(number)
        if page is None or (self._free is not None and number in self._free):
            self._found.damaged.add(number)
            return
        self._seen.add(number)
        found, _, flags, lower, _ = PAGE_HEAD.unpack_from(page)
        if found == number and flags == BRANCH and PAGE_HEAD.size < lower <= len(page):
            self._walk_branch(number, page, depth, low, high)
            return
        is_whole = found == number and flags == LEAF
        places = _places(page)
        taken = [entry for at in places if (entry := self._entry(page, at)) is not None]
        if not is_whole and any(node.key < low or (high is not None and node.key >= high) for node, _ in taken):
            # It is another page, perhaps of the past.
            taken = []
        if not is_whole or not places or len(taken) < len(places):
            self._found.damaged.add(number)
        for node, value in taken:
            if node.flags == IS_TABLE and node.key.decode(errors="replace") not in self._tables:
                # A damaged name: the leaves below it are found without it.
                self._found.damaged.add(number)
            self._take(node, value)

    def _walk_branch(self, number: int, page: bytes, depth: int, low: bytes, high: bytes | None) -> None:
        nodes = [_node(page, at) for at in _listed(page)]
        if None in nodes or not nodes:
            self._found.damaged.add(number)
        children = [node for node in nodes if node is not None]
        # The first key of a branch is empty.
        bounds = [low, *(node.key for node in children[1:]), high]
        for index, node in enumerate(children):
            self._walk(node.size | node.flags << 32, depth - 1, bounds[index] or b"", bounds[index + 1])

    def _take_hidden(self, free: set[int]) -> None:
        """Take the records of leaves that are in use, and that the trees do not reach any more."""
        number = 2
        # A damaged meta page may name a last page far behind the end of the file.
        last = min(self._meta.last_page, len(self._octets) // self._page_bytes - 1)
        while number <= last:
            page = self._page(number)
            if page is not None and number not in free and number not in self._seen:
                found, _, flags, _, _ = PAGE_HEAD.unpack_from(page)
                if found == number and flags == LEAF:
                    self._walk(number, 1, b"", None)
                elif found == number and flags == OVERFLOW:
                    # The octets of a client's message may look like anything.
                    number += max(OVERFLOW_HEAD.unpack_from(page)[3], 1) - 1
            number += 1

    def _take(self, node: Node, value: bytes) -> None:
        key = node.key
        if node.flags == IS_TABLE:
            if (name := key.decode(errors="replace")) in self._tables:
                tree = Tree(*TREE.unpack(value))
                self._found.entries[name] = tree.entries
                if tree.depth:
                    self._walk(tree.root, DEPTH_MAX, b"", None)
        elif key == FORMAT_KEY:
            (self._found.format,) = struct.unpack(">Q", value)
        else:
            self._put(_table_of(key, value), key, value)

    def _entry(self, page: bytes, at: int) -> tuple[Node, bytes] | None:
        """Return the node at a place of a leaf with its value; None if it is damaged."""
        node = _node(page, at)
        if node is None:
            return None
        size, flags, key, rest = node
        if flags == IS_ON_OVERFLOW and len(rest) >= NUMBER.size:
            rest = self._overflow(NUMBER.unpack_from(rest)[0], size)
        value = rest[:size]
        if flags == IS_TABLE:
            is_whole = size == len(value) == TREE.size
        elif key == FORMAT_KEY:
            is_whole = size == len(value) == NUMBER.size
        else:
            is_whole = size == len(value) and _is_sealed(key, value)
        return (node, value) if is_whole and flags in (0, IS_ON_OVERFLOW, IS_TABLE) else None

    def _overflow(self, number: int, size: int) -> bytes:
        """Return the value on consecutive pages. The checksum decides whether it is the right one."""
        if not 2 <= number <= self._meta.last_page:
            return b""
        start = number * self._page_bytes + OVERFLOW_HEAD.size
        return self._octets[start : start + size]

    def _page(self, number: int) -> bytes | None:
        start = number * self._page_bytes
        page = self._octets[start : start + self._page_bytes] if 2 <= number <= self._meta.last_page else b""
        return page if len(page) == self._page_bytes else None


def _listed(page: bytes) -> list[int]:
    """Return the places of a page's nodes as its head lists them; none if the head is impossible."""
    _, _, _, lower, upper = PAGE_HEAD.unpack_from(page)
    if not PAGE_HEAD.size < lower <= upper <= len(page) or lower % 2:
        return []
    return list(struct.unpack_from(f"={(lower - PAGE_HEAD.size) // 2}H", page, PAGE_HEAD.size))


def _places(page: bytes) -> list[int]:
    """Return the places of the nodes of a leaf, also if the numbers in its head are damaged."""
    listed, upper = _listed(page), PAGE_HEAD.unpack_from(page)[4]
    if listed and min(listed) == upper:
        return listed
    possible = _possible_places(page)
    return next((places for places in possible if min(places) == upper), listed or (possible or [[]])[-1])


def _possible_places(page: bytes) -> list[list[int]]:
    """Return lists of places, the longest last. As in pages of LMDB, the nodes there leave no gap before the end."""
    possible: list[list[int]] = []
    places: list[int] = []
    taken, first = 0, len(page)
    for at in struct.unpack_from(f"={(len(page) - PAGE_HEAD.size) // 2}H", page, PAGE_HEAD.size):
        node = _node(page, at)
        if node is None or at < PAGE_HEAD.size + 2 * len(places) + 2:
            break
        octets = NODE_HEAD.size + len(node.key) + (NUMBER.size if node.flags == IS_ON_OVERFLOW else node.size)
        taken, first = taken + octets + octets % 2, min(first, at)
        places.append(at)
        if first + taken == len(page):
            possible.append(list(places))
    return possible


def _node(page: bytes, at: int) -> Node | None:
    """Return the node at a place; None if it is impossible."""
    if at > len(page) - NODE_HEAD.size:
        return None
    size, flags, key_bytes = NODE_HEAD.unpack_from(page, at)
    key_at = at + NODE_HEAD.size
    if key_bytes > KEY_BYTES_MAX or key_at + key_bytes > len(page):
        return None
    return Node(size, flags, page[key_at : key_at + key_bytes], page[key_at + key_bytes :])


def _is_sealed(key: bytes, value: bytes) -> bool:
    try:
        unseal(key, value)
    except DamagedRecord:
        return False
    return len(value) > SEAL_BYTES


def _table_of(key: bytes, value: bytes) -> str:
    """Return the table of a whole record."""
    if len(key) == NUMBER.size:
        return "windows"
    if len(key) != POSITION.size:
        return "meta" if key == NEXT_RANGE else "definitions"
    if len(value) == NUMBER.size + SEAL_BYTES:
        return "garbage"
    try:
        chunks.decode_head(POSITION.unpack(key)[1], value)
    except DamagedRecord:
        return "messages"
    return "chunks"
