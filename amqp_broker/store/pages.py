"""A check of LMDB's file with plain reads, before LMDB trusts it.

LMDB maps its file into memory and follows the page numbers in it. In a truncated file it touches pages beyond the end,
which ends the process (SIGBUS); a wrong page leads it anywhere. So the pages are checked first: those of the small
tables when a broker opens the store, all of them for `store verify`.

A broker may write meanwhile, if the checking process has a read transaction open: LMDB does not reuse pages that were
in use when it began.

The layout is LMDB 0.9's (mdb.c: MDB_meta, MDB_page, MDB_node, MDB_db) on a machine of 64 bits, in its own byte order:

    page 0 and 1   meta: the roots of two trees, the last page and the number of a commit; the newer one is valid
    branch, leaf   16 octets of header, 2 octets per node for its place, and the nodes from the end of the page on
    overflow       a value that is too large for a leaf, on consecutive pages
    tree of free   number of a commit -> the pages that it freed
    tree of tables name -> root of the table's tree
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from operator import add
from pathlib import Path
from typing import IO, Final, NamedTuple, TypeAlias

MAGIC: Final = 0xBEEFC0DE
VERSION: Final = 1
BRANCH: Final = 0x01
LEAF: Final = 0x02
OVERFLOW: Final = 0x04
META: Final = 0x08
IS_ON_OVERFLOW: Final = 0x01
IS_TABLE: Final = 0x02
INTEGER_KEYS: Final = 0x08
# The size of pages where the system has pages of that size.
PAGE_BYTES: Final = 4096
NO_PAGE: Final = (1 << 64) - 1
KEY_BYTES_MAX: Final = 511
# The tables whose keys all have one size.
KEY_BYTES: Final = {"windows": 8, "messages": 16, "chunks": 16, "garbage": 16}
DEPTH_MAX: Final = 32
# A broker may commit between the reads of the two meta pages.
META_ATTEMPTS: Final = 5

PAGE_HEAD: Final = struct.Struct("=QHHHH")
OVERFLOW_HEAD: Final = struct.Struct("=QHHI")
META_HEAD: Final = struct.Struct("=IIQQ")
TREE: Final = struct.Struct("=IHHQQQQQ")
META_TAIL: Final = struct.Struct("=QQ")
NODE_HEAD: Final = struct.Struct("=IHH")
# A node whose key has the size that all keys of its table have.
NODES: Final = {size: struct.Struct(f"=IHH{size}s") for size in (8, 16)}
NUMBER: Final = struct.Struct("=Q")
BIG_ENDIAN: Final = struct.Struct(">Q")
META_BYTES: Final = PAGE_HEAD.size + META_HEAD.size + 2 * TREE.size + META_TAIL.size


OnPage: TypeAlias = Callable[[int], object]


class ForeignFile(Exception):
    """The file is not a database of LMDB, or has other tables."""


class DamagedFile(Exception):
    """The file is a damaged database of LMDB; the text has the place."""


class Tree(NamedTuple):
    """A B-tree: the fields that LMDB keeps of each, in its order."""

    padding: int
    flags: int
    depth: int
    branch_pages: int
    leaf_pages: int
    overflow_pages: int
    entries: int
    root: int


class Meta(NamedTuple):
    """A meta page: the state after a commit."""

    page_bytes: int
    map_bytes: int
    free: Tree
    tables: Tree
    last_page: int
    commit: int


@dataclass
class Survey:
    """Numbers of pages and free pages of a file, and its tables."""

    page_bytes: int
    page_count: int
    free_pages: int = 0
    tables: dict[str, Tree] = field(default_factory=dict)


def survey(path: Path, tables: Collection[str], skipped: Collection[str], on_page: OnPage | None = None) -> Survey:
    """Walk the pages of `tables`, without those in `skipped` unless the file is too short.

    Call `on_page` with the number of all pages for each page. Raise ForeignFile, DamagedFile, and OSError if the file
    cannot be read.
    """
    with path.open("rb", buffering=0) as file:
        meta = read_meta(file)
        # The size is read after the meta pages: a running broker extends the file before it commits.
        file_bytes = file.seek(0, 2)
        # LMDB does not have to write the last pages if they are free.
        is_short = file_bytes < (meta.last_page + 1) * meta.page_bytes
        return _Walk(file, meta, file_bytes // meta.page_bytes, on_page).run(tables, () if is_short else skipped)


def read_meta(file: IO[bytes]) -> Meta:
    """Return the valid meta page. Raise ForeignFile or DamagedFile."""
    for _ in range(META_ATTEMPTS):
        first = read_meta_at(file, 0)
        second = read_meta_at(file, first.page_bytes)
        # Commits write the meta pages in turn; both have number 0 at first.
        is_in_turn = first.commit % 2 == 0 and (second.commit % 2 == 1 or not second.commit)
        if second.page_bytes == first.page_bytes and is_in_turn and abs(first.commit - second.commit) <= 1:
            return max(first, second, key=lambda meta: meta.commit)
    raise DamagedFile("its two meta pages contradict each other")


def _has_magic(file: IO[bytes], offset: int) -> bool:
    """Return whether a page has the mark of a meta page."""
    file.seek(offset + PAGE_HEAD.size)
    head = file.read(META_HEAD.size)
    return len(head) == META_HEAD.size and META_HEAD.unpack(head)[0] == MAGIC


def free_entries(file: IO[bytes], meta: Meta) -> tuple[list[tuple[int, list[int]]], list[int]]:
    """Return commits with the pages that they freed, and the pages of the tree that lists these. Raise DamagedFile."""
    return _Walk(file, meta, file.seek(0, 2) // meta.page_bytes, None).free_entries()


def read_meta_at(file: IO[bytes], offset: int) -> Meta:
    """Return one of the two meta pages. Raise ForeignFile or DamagedFile."""
    file.seek(offset)
    page = file.read(META_BYTES)
    if len(page) < PAGE_HEAD.size + META_HEAD.size:
        if offset:
            raise DamagedFile("it ends before its second meta page")
        raise ForeignFile("it is too short for a database of LMDB")
    number, _, flags, _, _ = PAGE_HEAD.unpack_from(page)
    magic, version, _, map_bytes = META_HEAD.unpack_from(page, PAGE_HEAD.size)
    if offset == 0 and magic != MAGIC and not _has_magic(file, PAGE_BYTES):
        raise ForeignFile("it is not a database of LMDB")
    if len(page) < META_BYTES:
        raise DamagedFile("it ends within its meta pages")
    if magic != MAGIC or version != VERSION or flags != META or number != (offset > 0):
        raise DamagedFile("a meta page is not one of LMDB 0.9")
    at = PAGE_HEAD.size + META_HEAD.size
    free, tables = Tree(*TREE.unpack_from(page, at)), Tree(*TREE.unpack_from(page, at + TREE.size))
    last_page, commit = META_TAIL.unpack_from(page, at + 2 * TREE.size)
    meta = Meta(free.padding, map_bytes, free, tables, last_page, commit)
    if meta.page_bytes not in (1 << bits for bits in range(9, 17)) or (offset and offset != meta.page_bytes):
        raise DamagedFile("a meta page has an impossible page size")
    if free.flags != INTEGER_KEYS or tables.flags or not 1 <= last_page < max(map_bytes // meta.page_bytes, 2):
        raise DamagedFile("a meta page is not one that LMDB writes")
    return meta


class _Walk:
    """A walk over the trees of a file."""

    def __init__(self, file: IO[bytes], meta: Meta, pages_in_file: int, on_page: OnPage | None) -> None:
        self._file = file
        self._meta = meta
        self._page_bytes = meta.page_bytes
        # Pages that are not completely in the file are not read.
        self._end = min(meta.last_page + 1, pages_in_file)
        self._used = bytearray(self._end)
        self._on_page = on_page
        # Counts of the current tree.
        self._branch_pages = self._leaf_pages = self._overflow_pages = self._entries = 0
        self._previous: bytes | None = None
        self._key_bytes: int | None = None
        self._is_previous_leaf = False

    def free_entries(self) -> tuple[list[tuple[int, list[int]]], list[int]]:
        found: list[tuple[bytes, bytes]] = []
        self._walk(self._meta.free, "the tree of free pages", lambda key, _, value: found.append((key, value)))
        self._check_free([value for _, value in found], is_complete=True)
        entries = [(NUMBER.unpack(key)[0], _numbers(value)) for key, value in found]
        return entries, [number for number, is_used in enumerate(self._used) if is_used]

    def run(self, tables: Collection[str], skipped: Collection[str]) -> Survey:
        meta = self._meta
        result = Survey(meta.page_bytes, meta.last_page + 1)
        free: list[bytes] = []
        self._walk(meta.free, "the tree of free pages", lambda _, flags, value: free.append(value))

        def note_table(name: bytes, flags: int, value: bytes) -> None:
            if flags == IS_TABLE:
                result.tables[name.decode(errors="replace")] = Tree(*TREE.unpack(value))

        self._walk(meta.tables, "the tree of tables", note_table)
        if meta.tables.entries and not result.tables.keys() & set(tables):
            raise ForeignFile("it is a database of another program")
        for name, tree in result.tables.items():
            if name not in tables or name in skipped:
                continue
            if tree.flags:
                raise DamagedFile(f"table {name} is of an impossible kind")
            self._key_bytes = KEY_BYTES.get(name)
            self._walk(tree, f"table {name}", None)
        is_complete = not skipped and result.tables.keys() <= set(tables)
        result.free_pages = self._check_free(free, is_complete)
        return result

    def _walk(self, tree: Tree, name: str, visit: Callable[[bytes, int, bytes], object] | None) -> None:
        self._branch_pages = self._leaf_pages = self._overflow_pages = self._entries = 0
        self._previous = None
        if tree.depth > DEPTH_MAX or (tree.root == NO_PAGE) != (tree.depth == 0):
            raise DamagedFile(f"the root of {name} is invalid")
        if tree.depth:
            self._walk_page(tree, tree.root, tree.depth, name, visit)
        found = (self._branch_pages, self._leaf_pages, self._overflow_pages, self._entries)
        if found != tree[3:7]:
            raise DamagedFile(f"{name} has other pages or entries than it counts")

    def _walk_page(
        self, tree: Tree, number: int, depth: int, name: str, visit: Callable[[bytes, int, bytes], object] | None
    ) -> None:
        page = self._read(number, 1, name)
        found, _, flags, lower, upper = PAGE_HEAD.unpack_from(page)
        is_leaf = depth == 1
        if found != number or flags != (LEAF if is_leaf else BRANCH):
            raise DamagedFile(f"page {number} is not the one that {name} has there")
        if not PAGE_HEAD.size < lower <= upper <= self._page_bytes or lower % 2:
            raise DamagedFile(f"page {number} of {name} has an impossible size")
        offsets = struct.unpack_from(f"={(lower - PAGE_HEAD.size) // 2}H", page, PAGE_HEAD.size)
        if is_leaf and visit is None and self._passes(page, upper, offsets):
            return
        taken = 0
        for index, at in enumerate(offsets):
            if not upper <= at <= self._page_bytes - NODE_HEAD.size:
                raise DamagedFile(f"page {number} of {name} has an entry outside of itself")
            size, node_flags, key_bytes = NODE_HEAD.unpack_from(page, at)
            value_at = at + NODE_HEAD.size + key_bytes
            if key_bytes > KEY_BYTES_MAX or value_at > self._page_bytes:
                raise DamagedFile(f"page {number} of {name} has a key outside of itself")
            key = page[at + NODE_HEAD.size : value_at]
            octets = NODE_HEAD.size + key_bytes
            if is_leaf:
                octets += NUMBER.size if node_flags == IS_ON_OVERFLOW else size
            taken += octets + octets % 2
            if is_leaf and self._key_bytes is not None and key_bytes != self._key_bytes:
                raise DamagedFile(f"page {number} of {name} has a key of another size")
            if index or is_leaf:
                self._check_order(tree, key, number, name, is_leaf)
            if not is_leaf:
                self._walk_page(tree, size | node_flags << 32, depth - 1, name, visit)
                continue
            value = self._value(page[value_at:], size, node_flags, name, visit is not None)
            self._entries += 1
            if visit is not None:
                visit(key, node_flags, value)
        # LMDB leaves no gaps between nodes, and moves them by their sizes.
        if taken != self._page_bytes - upper:
            raise DamagedFile(f"page {number} of {name} has entries that overlap")
        if is_leaf:
            self._leaf_pages += 1
        else:
            self._branch_pages += 1

    def _passes(self, page: bytes, upper: int, offsets: tuple[int, ...]) -> bool:
        """Check a leaf whose keys have one size and whose values are all in it, without a loop; False: in doubt."""
        size_of_keys = self._key_bytes
        if size_of_keys is None or not offsets:
            return False
        node = NODES[size_of_keys]
        if min(offsets) < upper or max(offsets) > self._page_bytes - node.size:
            return False
        sizes, flags, key_sizes, keys = zip(*[node.unpack_from(page, at) for at in offsets], strict=True)
        if any(flags) or set(key_sizes) != {size_of_keys}:
            return False
        if max(map(add, offsets, sizes)) > self._page_bytes - node.size or list(keys) != sorted(set(keys)):
            return False
        # Each node takes an even number of octets.
        if sum(sizes) + sum(size & 1 for size in sizes) + len(sizes) * node.size != self._page_bytes - upper:
            return False
        if self._previous is not None and not (
            self._previous < keys[0] or (self._previous == keys[0] and not self._is_previous_leaf)
        ):
            return False
        self._previous, self._is_previous_leaf = keys[-1], True
        self._entries += len(keys)
        self._leaf_pages += 1
        return True

    def _check_order(self, tree: Tree, key: bytes, number: int, name: str, is_leaf: bool) -> None:
        """Check that keys ascend; the key of a branch is at most the first one below it."""
        if tree.flags & INTEGER_KEYS and len(key) != NUMBER.size:
            raise DamagedFile(f"page {number} of {name} has a key of another kind")
        comparable = BIG_ENDIAN.pack(*NUMBER.unpack(key)) if tree.flags & INTEGER_KEYS else key
        previous = self._previous
        if previous is not None and comparable < previous:
            raise DamagedFile(f"page {number} of {name} has its keys in another order")
        if is_leaf and comparable == previous and self._is_previous_leaf:
            raise DamagedFile(f"page {number} of {name} has a key twice")
        self._previous, self._is_previous_leaf = comparable, is_leaf

    def _value(self, rest: bytes, size: int, flags: int, name: str, is_wanted: bool) -> bytes:
        """Return the value of a leaf's node; of an unwanted large one only the head is read."""
        if flags not in (0, IS_ON_OVERFLOW, IS_TABLE) or (flags == IS_TABLE and size != TREE.size):
            raise DamagedFile(f"{name} has an entry of an unknown kind")
        if flags != IS_ON_OVERFLOW:
            if size > len(rest):
                raise DamagedFile(f"{name} has an entry that leaves its page")
            return rest[:size]
        if len(rest) < NUMBER.size:
            raise DamagedFile(f"{name} has an entry that leaves its page")
        (number,) = NUMBER.unpack_from(rest)
        needed = (OVERFLOW_HEAD.size - 1 + size) // self._page_bytes + 1
        found, _, kind, count = OVERFLOW_HEAD.unpack(self._read(number, 0, name))
        if found != number or kind != OVERFLOW or count < needed:
            raise DamagedFile(f"page {number} is not the one that {name} has there")
        self._use(number, count, name)
        self._overflow_pages += count
        if not is_wanted:
            return b""
        self._file.seek(number * self._page_bytes + OVERFLOW_HEAD.size)
        return self._file.read(size)

    def _read(self, number: int, count: int, name: str) -> bytes:
        """Read pages and count them as used; with a count of 0 read the head of one page without counting it."""
        self._use(number, count, name)
        self._file.seek(number * self._page_bytes)
        page = self._file.read(count * self._page_bytes or OVERFLOW_HEAD.size)
        if len(page) < (count * self._page_bytes or OVERFLOW_HEAD.size):
            raise DamagedFile(f"page {number}, which {name} uses, is beyond its end")
        return page

    def _use(self, number: int, count: int, name: str) -> None:
        if number < 2 or number + max(count, 1) > self._end:
            if number + count <= self._meta.last_page + 1 and number >= 2:
                raise DamagedFile(f"page {number}, which {name} uses, is beyond its end: it was cut")
            raise DamagedFile(f"{name} uses page {number}, which does not exist")
        if any(self._used[number : number + count]):
            raise DamagedFile(f"page {number} is used twice, also by {name}")
        self._used[number : number + count] = b"\1" * count
        if self._on_page is not None:
            for _ in range(count):
                self._on_page(self._meta.last_page + 1)

    def _check_free(self, values: list[bytes], is_complete: bool) -> int:
        """Return the number of free pages. After a complete walk, check that none is free twice or in use."""
        count = 0
        # The used pages may end before the last page; free pages may not.
        taken = self._used.ljust(self._meta.last_page + 1, b"\0") if is_complete else self._used
        for value in values:
            numbers = _numbers(value)
            count += len(numbers)
            # LMDB keeps them in descending order, which is quick to check.
            if numbers != sorted(numbers, reverse=True) or (
                numbers and not 2 <= numbers[-1] <= numbers[0] <= self._meta.last_page
            ):
                raise DamagedFile("the tree of free pages has pages that do not exist")
            for number in numbers if is_complete else ():
                if taken[number]:
                    raise DamagedFile(f"page {number} is free and in use")
                taken[number] = 1
        return count


def _numbers(value: bytes) -> list[int]:
    """Return the pages of an entry of the tree of free pages. Raise DamagedFile."""
    length, *numbers = struct.unpack_from(f"={len(value) // NUMBER.size}Q", value) or (NO_PAGE,)
    if length > len(numbers):
        raise DamagedFile("the tree of free pages has an entry that is cut")
    return numbers[:length]
