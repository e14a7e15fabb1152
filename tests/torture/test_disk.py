"""The rules of the disk whose power is cut."""

from __future__ import annotations

import random
from pathlib import Path

from tests.torture.disk import SECTOR_BYTES, Disk, Kind, Record

OLD, NEW = b"o" * 2 * SECTOR_BYTES, b"n" * 2 * SECTOR_BYTES
INODE = 7


def record(kind: Kind, name: str = "file", data: bytes = b"", offset: int = 0, inode: int = INODE) -> Record:
    return Record(kind, name, inode, offset, data, 0)


def flushed(name: str = "file", inode: int = INODE) -> list[Record]:
    return [record(kind, name, inode=inode) for kind in (Kind.SYNC_BEGIN, Kind.SYNC_END)]


CREATED = [record(Kind.CREATE), record(Kind.WRITE, data=OLD), *flushed(), *flushed("", 0)]
OVERWRITTEN = [*CREATED, record(Kind.WRITE, data=NEW)]


def images(folder: Path, *records: Record) -> set[bytes | None]:
    """Return the contents that the file may have after a power cut; None if it is not there."""
    found: set[bytes | None] = set()
    for seed in range(60):
        disk = Disk(random.Random(seed))
        for each in records:
            disk.replay(each)
        disk.image(folder / str(seed))
        path = folder / str(seed) / "file"
        found.add(path.read_bytes() if path.exists() else None)
    return found


def test_a_flushed_write_is_there(tmp_path: Path) -> None:
    assert images(tmp_path, *OVERWRITTEN, *flushed()) == {NEW}


def test_each_sector_of_a_later_write_is_there_or_not(tmp_path: Path) -> None:
    old, new = OLD[:SECTOR_BYTES], NEW[:SECTOR_BYTES]
    assert images(tmp_path, *OVERWRITTEN) == {old + old, old + new, new + old, new + new}


def test_a_write_during_a_flush_is_not_flushed(tmp_path: Path) -> None:
    begin, end = flushed()
    assert len(images(tmp_path, *CREATED, begin, record(Kind.WRITE, data=NEW), end)) == 4


def test_a_write_that_waits_for_the_disk_is_there_when_it_has_ended(tmp_path: Path) -> None:
    assert images(tmp_path, *OVERWRITTEN, record(Kind.WRITTEN)) == {NEW}


def test_a_name_is_there_when_its_folder_was_flushed(tmp_path: Path) -> None:
    assert images(tmp_path, *CREATED[:-2]) == {OLD, None}


def test_a_file_is_renamed_as_a_whole(tmp_path: Path) -> None:
    other = [record(each.kind, "new", NEW if each.data else b"", inode=8) for each in CREATED[:-2]]
    assert images(tmp_path, *CREATED, *other, record(Kind.RENAME, "new", b"file")) == {OLD, NEW}


def test_a_size_is_there_or_not(tmp_path: Path) -> None:
    assert images(tmp_path, *CREATED, record(Kind.TRUNCATE, offset=3)) == {OLD, OLD[:3]}


def test_no_later_flush_makes_up_for_one_that_failed(tmp_path: Path) -> None:
    assert len(images(tmp_path, *OVERWRITTEN, record(Kind.SYNC_FAILED), *flushed())) == 4
