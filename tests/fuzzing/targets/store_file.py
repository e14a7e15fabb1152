"""Changes of the file of a store.

The checks that are made before LMDB reads it find the damage by their own errors, or pass; no record is salvaged that
was not written. An input is a list of changes: the place (2 octets, in steps of 2), a size, and octets.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

from amqp_broker.store import pages
from amqp_broker.store.environment import DATA_FILE, TABLES
from amqp_broker.store.pages import DamagedFile, ForeignFile
from amqp_broker.store.salvage import salvage
from amqp_broker.store.seal import DamagedRecord, unseal
from tests.fuzzing.target import Target, expect
from tests.mutations import OCTETS
from tests.store.stores import fill

STEP = 2
# A change of this place shortens the file.
CUT = 0xFFFF


@cache
def original() -> bytes:
    """Return the file of a store with records of each kind."""
    with tempfile.TemporaryDirectory(prefix="fuzzing-store-") as folder:
        fill(Path(folder, "store"), messages=12, body_bytes=600)
        return Path(folder, "store", DATA_FILE).read_bytes()


@cache
def records() -> frozenset[tuple[bytes, bytes]]:
    """Return the sealed records of the whole file, those of free pages, too."""
    found: set[tuple[bytes, bytes]] = set()
    path = Path(place(), "whole")
    path.write_bytes(original())
    salvage(path, TABLES, lambda table, key, value: found.add((key, value)))
    return frozenset(found)


@cache
def place() -> str:
    """Return a folder for the file, in memory where the system has one, which is removed at the end."""
    folder = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: PTH112
    return str(stack().enter_context(tempfile.TemporaryDirectory(prefix="fuzzing-file-", dir=folder)))


@cache
def stack() -> contextlib.ExitStack:
    return contextlib.ExitStack()


def changed(data: bytes) -> bytes:
    octets, at = bytearray(original()), 0
    while at + 3 <= len(data):
        where, size = int.from_bytes(data[at : at + 2], "big"), data[at + 2]
        piece = data[at + 3 : at + 3 + size]
        at += 3 + size
        if where == CUT:
            del octets[int.from_bytes(piece[:3], "big") :]
            continue
        start = where * STEP
        octets[start : start + len(piece)] = piece[: max(0, len(octets) - start)]
    return bytes(octets)


def check(data: bytes) -> None:
    written = records()
    path = Path(place(), f"data-{os.getpid()}")
    path.write_bytes(changed(data))
    with contextlib.suppress(DamagedFile, ForeignFile):
        pages.survey(path, TABLES, ("messages",))
    is_damaged = False
    try:
        pages.survey(path, TABLES, ())
    except (DamagedFile, ForeignFile) as error:
        expect(str(error), "damage without a sentence")
        is_damaged = True
    taken: list[tuple[bytes, bytes]] = []
    try:
        found = salvage(path, TABLES, lambda table, key, value: taken.append((key, value)))
    except DamagedFile:
        expect(is_damaged, "a file passes the checks, and nothing can be salvaged")
        return
    for key, value in taken:
        with contextlib.suppress(DamagedRecord):
            unseal(key, value)
            # Of the past, if the newest meta page is damaged.
            is_written = (key, value) in written or (key in original() and value in original())
            expect(is_written, f"salvages what was not written: {key!r}")
            continue
        expect(False, f"salvages a damaged record: {key!r}")
    expect(found.page_count > 0, "a file without pages")


def mutate(chance: Random, data: bytes) -> bytes:
    """Add a change of a head, a place of a node or an octet on some page, or take one away."""
    page = chance.randrange(len(original()) // pages.PAGE_BYTES)
    start = page * pages.PAGE_BYTES
    match chance.randrange(6):
        case 0:
            at, piece = start + chance.randrange(16), bytes([chance.choice(OCTETS)])
        case 1:
            at, piece = start + 16 + 2 * chance.randrange(12), chance.randrange(4097).to_bytes(2, "little")
        case 2:
            other = chance.randrange(len(original()) // pages.PAGE_BYTES) * pages.PAGE_BYTES
            at, piece = start, original()[other : other + 32]
        case 3:
            at, piece = start + chance.randrange(4096), bytes([chance.choice(OCTETS)])
        case 4:
            at, piece = CUT * STEP, chance.randrange(len(original())).to_bytes(3, "big")
        case _:
            at, piece = start + chance.randrange(160), chance.randrange(70).to_bytes(8, "little")
    change = (at // STEP).to_bytes(2, "big") + bytes([len(piece)]) + piece
    return change if chance.randrange(3) == 0 else data + change


def seeds() -> Iterator[bytes]:
    yield b""
    chance = Random(1)
    for _ in range(60):
        yield mutate(chance, b"")


TARGET = Target(check, seeds, mutate, octets_max=120)
