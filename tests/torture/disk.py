"""A disk that is recorded, that loses its power at any moment, and that fails when a test says so.

`disk.c` is loaded into the process. It records each change of a folder and each flush. `Disk` replays the record up to
a moment, and makes images: folders as a power cut at that moment may leave them. These rules hold on any disk:

- If a flush of a file has ended, the file has all that it had when the flush began. A write with O_DSYNC that has ended
  is there as well.
- Of each later write, each sector is there or not. So is the size that it gave to the file.
- A name of a file is there if its folder was flushed after the name was made (fsync(2)); later changes of names are
  there or not.
- After a flush that failed, no later flush makes up for it: the system has dropped what it could not write.
"""

from __future__ import annotations

import errno
import random
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from functools import cache
from pathlib import Path
from typing import NamedTuple

SECTOR_BYTES = 512
SOURCE = Path(__file__).with_name("disk.c")
HEAD = struct.Struct("=IIQQQ")
FAULT = struct.Struct("=IiiiI44s")
# Time of a flush in microseconds: others write meanwhile.
FLUSH_US = 2000


class Kind(IntEnum):
    """Kinds of records, in the order of disk.c."""

    WRITE = 1
    WRITTEN = 2
    TRUNCATE = 3
    CREATE = 4
    UNLINK = 5
    RENAME = 6
    MKDIR = 7
    SYNC_BEGIN = 8
    SYNC_END = 9
    SYNC_FAILED = 10


class Call(IntFlag):
    """Calls that can fail."""

    READ = 1
    WRITE = 2
    SYNC = 4
    LOCK = 8
    OPEN = 16


class Record(NamedTuple):
    """A change of the folder, or a flush; `end` is the place in the record where it ends."""

    kind: Kind
    name: str
    inode: int
    offset: int
    data: bytes
    end: int


@cache
def library() -> Path:
    """Compile disk.c, and return the library, which is compiled again after a change only."""
    built = SOURCE.with_name("__pycache__") / "disk.so"
    if not built.exists() or built.stat().st_mtime < SOURCE.stat().st_mtime:
        built.parent.mkdir(exist_ok=True)
        new = built.with_suffix(f".{random.getrandbits(32)}")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(new), str(SOURCE), "-ldl", "-lpthread"], check=True)
        new.replace(built)
    return built


class Faults:
    """Decides which calls on a disk fail, through a file that the library watches."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(bytes(FAULT.size))

    def set(self, calls: Call, error: int = errno.EIO, *, name: str = "", after: int = 0, count: int = -1) -> None:
        """From the `after`-th further call on, let `count` of these calls on files of this name fail (-1: all)."""
        octets = FAULT.pack(calls, error, after, count, 0, name.encode())
        with self.path.open("r+b", buffering=0) as file:
            # The calls last: they arm it.
            file.seek(4)
            file.write(octets[4:])
            file.seek(0)
            file.write(octets[:4])

    def heal(self) -> None:
        self.set(Call(0))

    @property
    def failed(self) -> int:
        """Number of calls that have failed since `set`."""
        return int(FAULT.unpack(self.path.read_bytes())[4])


def variables(folder: Path, log: Path | None = None, faults: Faults | None = None, boot: int = 0) -> dict[str, str]:
    """Return the environment of a process whose disk is the folder; `boot` is the number of the machine's start."""
    boot_id = folder.with_name(f"{folder.name}.boot-{boot}")
    boot_id.write_text(f"00000000-0000-0000-0000-{boot:012d}\n", "utf-8")
    found = {"LD_PRELOAD": str(library()), "DISK_FOLDER": str(folder), "DISK_BOOT_ID": str(boot_id)}
    if log is not None:
        log.touch()
        found |= {"DISK_LOG": str(log), "DISK_FLUSH_US": str(FLUSH_US)}
    if faults is not None:
        found["DISK_FAULT"] = str(faults.path)
    return found


def read_records(log: Path) -> Iterator[Record]:
    """Yield the whole records of a log."""
    with log.open("rb") as file:
        while len(head := file.read(HEAD.size)) == HEAD.size:
            kind, name_octets, inode, offset, octets = HEAD.unpack(head)
            name, data = file.read(name_octets), file.read(octets)
            if len(data) == octets:
                yield Record(Kind(kind), name.decode(), inode, offset, data, file.tell())


@dataclass
class Change:
    """A change of a file's content that no flush has made certain: octets at an offset, or a size."""

    at: int
    data: bytes
    size: int | None = None
    # The write was with O_DSYNC, and has ended.
    is_certain: bool = False


@dataclass
class File:
    """A file on the disk: its certain content, and later changes."""

    content: bytearray = field(default_factory=bytearray)
    changes: list[Change] = field(default_factory=list)
    # Number of changes when the flush began that has not ended.
    flushing: int = 0

    def flush(self) -> None:
        """Make certain what was changed before the flush began."""
        for change in self.changes[: self.flushing]:
            apply(self.content, change)
        del self.changes[: self.flushing]
        self.flushing = 0

    def drop(self, chance: random.Random) -> None:
        """Fail a flush: a part of what is not certain reaches the disk, and the rest never will."""
        self.content = bytearray(self.image(chance, chance.random()))
        self.changes, self.flushing = [], 0

    def image(self, chance: random.Random, share: float) -> bytes:
        """Return the content after a power cut, with about this share of the sectors of what is not certain."""
        content = bytearray(self.content)
        for change in self.changes:
            if change.is_certain:
                apply(content, change)
            elif change.size is not None:
                if chance.random() < share:
                    apply(content, change)
            else:
                for part in sectors(change):
                    if chance.random() < share:
                        apply(content, part)
        return bytes(content)

    def ordered_image(self, chance: random.Random) -> bytes:
        """Return the content after a power cut of a disk that writes in order, the last write in part."""
        content, until = bytearray(self.content), chance.randrange(len(self.changes) + 1)
        for number, change in enumerate(self.changes):
            if number < until or change.is_certain:
                apply(content, change)
            elif number == until and change.size is None:
                parts = list(sectors(change))
                for part in parts[: chance.randrange(len(parts) + 1)]:
                    apply(content, part)
        return bytes(content)


def apply(content: bytearray, change: Change) -> None:
    if change.size is not None:
        del content[change.size :]
        content.extend(bytes(change.size - len(content)))
    else:
        content.extend(bytes(max(0, change.at - len(content))))
        content[change.at : change.at + len(change.data)] = change.data


def sectors(change: Change) -> Iterator[Change]:
    """Yield the parts of a write that a disk writes whole."""
    at, end = change.at, change.at + len(change.data)
    while at < end:
        until = min(end, at - at % SECTOR_BYTES + SECTOR_BYTES)
        yield Change(at, change.data[at - change.at : until - change.at])
        at = until


# New entries of names; None is no file.
Names = dict[str, File | None]


class Disk:
    """The state of a disk while its record is replayed."""

    def __init__(self, chance: random.Random, folder: Path | None = None) -> None:
        """Begin with the files of a folder, or without any."""
        self._chance = chance
        self._by_inode: dict[int, File] = {}
        # The certain names, and later changes in order.
        self._names: dict[str, File] = {}
        self._folders: set[str] = set()
        self._renames: list[Names] = []
        self._made: list[str] = []
        # Number of changes of names when the flush of a folder began that has not ended.
        self._flushing: dict[str, int] = {}
        if folder is not None:
            self._take_over(folder)

    def _take_over(self, folder: Path) -> None:
        for path in folder.rglob("*"):
            name = str(path.relative_to(folder))
            if path.is_dir():
                self._folders.add(name)
            else:
                file = self._by_inode[path.stat().st_ino] = File(bytearray(path.read_bytes()))
                self._names[name] = file

    def replay(self, record: Record) -> None:
        """Take a record into account."""
        kind, name, file = record.kind, record.name, self._by_inode.get(record.inode)
        if kind is Kind.CREATE:
            self._by_inode[record.inode] = created = File()
            self._renames.append({name: created})
        elif kind is Kind.UNLINK:
            self._renames.append({name: None})
        elif kind is Kind.RENAME:
            self._renames.append({record.data.decode(): self._now(name), name: None})
        elif kind is Kind.MKDIR:
            self._made.append(name)
        elif file is None:
            if kind is Kind.SYNC_BEGIN:
                self._flushing[name] = len(self._renames)
            elif kind is Kind.SYNC_END:
                self._flush_names(name)
        elif kind is Kind.SYNC_FAILED:
            file.drop(self._chance)
        else:
            replay_in(file, record)

    def _now(self, name: str) -> File | None:
        """Return the file of a name as running processes see it."""
        for names in reversed(self._renames):
            if name in names:
                return names[name]
        return self._names.get(name)

    def _flush_names(self, folder: str) -> None:
        """Make the names in a folder certain as they were when the flush began."""
        until, later = self._flushing.pop(folder, 0), []
        for number, names in enumerate(self._renames):
            if number < until and all(parent(name) == folder for name in names):
                self._rename(self._names, names)
            else:
                later.append(names)
        self._renames = later
        self._folders |= {name for name in self._made if parent(name) == folder}
        self._made = [name for name in self._made if parent(name) != folder]

    @staticmethod
    def _rename(found: dict[str, File], names: Names) -> None:
        for name, file in names.items():
            found.pop(name, None)
            if file is not None:
                found[name] = file

    def image(self, to: Path) -> None:
        """Write to a new folder the files as a power cut may leave them."""
        chance = self._chance
        names, folders = dict(self._names), set(self._folders)
        is_ordered, share = chance.random() < 0.4, chance.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        until = chance.randrange(len(self._renames) + 1)
        for number, renamed in enumerate(self._renames):
            if number < until if is_ordered else chance.random() < share:
                self._rename(names, renamed)
        folders.update(name for name in self._made if chance.random() < share)
        to.mkdir()
        for folder in sorted(folders):
            (to / folder).mkdir()
        for name, file in names.items():
            if not parent(name) or parent(name) in folders:
                (to / name).write_bytes(file.ordered_image(chance) if is_ordered else file.image(chance, share))


def replay_in(file: File, record: Record) -> None:
    """Take a record about a file's content into account."""
    if record.kind is Kind.WRITE:
        file.changes.append(Change(record.offset, record.data))
    elif record.kind is Kind.WRITTEN:
        last = next(change for change in reversed(file.changes) if change.at == record.offset)
        last.is_certain = True
    elif record.kind is Kind.TRUNCATE:
        file.changes.append(Change(0, b"", size=record.offset))
    elif record.kind is Kind.SYNC_BEGIN:
        file.flushing = len(file.changes)
    elif record.kind is Kind.SYNC_END:
        file.flush()


def parent(name: str) -> str:
    return name.rpartition("/")[0]
