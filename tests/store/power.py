"""Power losses: cut the power of a store at random moments, and check what a broker finds afterwards.

    python -m tests.store.power FOLDER SEED COUNT [full|os]

FOLDER is new. COUNT images of the disk are made: each sector is as it was flushed last, or in any later version.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from amqp_broker.broker.broker import Broker
from amqp_broker.broker.queues.backlog_queue import BacklogQueue
from amqp_broker.settings.settings import Settings
from amqp_broker.store import checkpoint
from amqp_broker.store.checkpoint import CHECKPOINT_FILE
from amqp_broker.store.environment import DATA_FILE, Environment
from amqp_broker.store.journal import LmdbJournal
from amqp_broker.store.store import Store
from amqp_broker.store.verify import verify
from tests.broker_parts import new_broker, new_message, new_queue
from tests.present import present
from tests.store.stores import PAGE_BYTES, commit

SECTOR_BYTES = 512
FILES = (DATA_FILE, CHECKPOINT_FILE)


class Disk:
    """The disk under a store: `versions` has each file as it was flushed last, then its later states."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.versions: dict[str, list[bytes]] = {name: [self._read(name)] for name in FILES}

    def _read(self, name: str) -> bytes:
        path = self._folder / name
        return path.read_bytes() if path.exists() else b""

    def note(self) -> None:
        """Note that the files have changed."""
        for name, versions in self.versions.items():
            versions.append(self._read(name))

    def flushed(self, name: str) -> None:
        self.versions[name] = [self._read(name)]

    def image(self, folder: Path, chance: random.Random) -> None:
        """Write to a new folder the files as a power loss may leave them."""
        folder.mkdir()
        for name, versions in self.versions.items():
            if versions[0]:
                (folder / name).write_bytes(mixed(versions, chance))


def mixed(versions: list[bytes], chance: random.Random) -> bytes:
    """Return a file each of whose sectors is that of any version."""
    size = len(chance.choice(versions))
    sectors = []
    for at in range(0, size, SECTOR_BYTES):
        found = {version[at : at + SECTOR_BYTES].ljust(SECTOR_BYTES, b"\0") for version in versions}
        sectors.append(chance.choice(sorted(found)))
    return b"".join(sectors)[:size]


class Work:
    """A queue with messages that come and go; `states` has its bodies after each commit."""

    def __init__(self, folder: Path, chance: random.Random, *, is_lazy: bool) -> None:
        self._chance, self._count = chance, 0
        self.environment = Environment(folder, is_lazy=is_lazy)
        self._journal = LmdbJournal(self.environment)
        queue = new_queue(new_broker(self._journal).vhosts["/"], "q", is_durable=True)
        assert isinstance(queue, BacklogQueue)
        self._queue = queue
        self._bodies: list[bytes] = []
        self.states: list[list[bytes]] = []
        self.step()

    def step(self) -> None:
        """Publish and consume some messages, and commit."""
        for _ in range(self._chance.randrange(1, 30)):
            body = f"{self._count} ".encode() * self._chance.choice((1, 10, 100, 2000))
            self._count += 1
            self._bodies.append(body)
            self._queue.push(new_message(body, delivery_mode=2))
        for _ in range(self._chance.randrange(len(self._bodies) + 1) * (self._chance.random() < 0.8)):
            message, position, _ = present(self._queue.pull())
            self._queue.forget(position, message)
            assert message.body == self._bodies.pop(0)
        commit(self.environment, self._journal)
        self.states.append(list(self._bodies))


def bodies_in(folder: Path) -> list[bytes]:
    """Return the messages that a broker finds in a whole store."""
    store = Store(folder)
    broker = Broker(Settings(), bytes, store.journal)
    store.recover(broker)
    queue, found = broker.vhosts["/"].queues["q"], []
    while (pulled := queue.pull()) is not None:
        found.append(pulled[0].body)
    store.environment.close()
    return found


@contextmanager
def observed(disk: Disk, before: Callable[[], object]) -> Iterator[None]:
    """Tell the disk of each flush of its files, and call `before` each."""
    flush = os.fdatasync

    def observe(descriptor: int) -> None:
        before()
        flush(descriptor)
        disk.flushed(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    with patch("os.fdatasync", observe):
        yield


@contextmanager
def another_start(folder: Path) -> Iterator[None]:
    """Let the machine have started again."""
    (folder / "boot_id").write_bytes(b"the id of another start\n")
    with patch.object(checkpoint, "BOOT_ID", folder / "boot_id"):
        yield


def lose_power_lazily(folder: Path, seed: int, count: int) -> None:
    """Cut the power of a store with lazy commits. Raise AssertionError if it is torn, or has lost what was flushed."""
    chance = random.Random(seed)
    work = Work(folder / "data", chance, is_lazy=True)
    present(work.environment.checkpoint).sync()
    disk, safe, made = Disk(folder / "data"), 0, 0

    def cut(*, always: bool = False) -> None:
        nonlocal made
        if always or chance.random() < 0.5:
            made += 1
            disk.note()
            check_image(disk, folder, chance, work.states[safe:])

    while made < count:
        work.step()
        disk.note()
        cut()
        if chance.random() < 0.4:
            with observed(disk, cut):
                present(work.environment.checkpoint).sync()
            safe = len(work.states) - 1
            cut(always=True)
    work.environment.close()


def check_image(disk: Disk, folder: Path, chance: random.Random, states: list[list[bytes]]) -> None:
    """Check that a power loss leaves a whole store in one of these states."""
    image = folder / "image"
    shutil.rmtree(image, ignore_errors=True)
    disk.image(image, chance)
    with another_start(folder):
        found = bodies_in(image)
        assert found in states, "the state of no commit since the last flush"
        assert not (image / CHECKPOINT_FILE).exists()
        assert verify(image).problems == []


def lose_power_at_commits(folder: Path, seed: int, count: int) -> None:
    """Cut the power during flushed commits: LMDB flushes the pages of a commit before its meta page."""
    chance = random.Random(seed)
    work = Work(folder / "data", chance, is_lazy=False)
    disk = Disk(folder / "data")
    for _ in range(count):
        work.step()
        metas = disk.versions[DATA_FILE][0][: 2 * PAGE_BYTES]
        later = metas + (folder / "data" / DATA_FILE).read_bytes()[2 * PAGE_BYTES :]
        disk.versions[DATA_FILE].append(later)
        check_image(disk, folder, chance, work.states[-2:-1])
        disk.flushed(DATA_FILE)
        check_image(disk, folder, chance, work.states[-1:])
    work.environment.close()


if __name__ == "__main__":
    logging.disable()
    cut_power = lose_power_at_commits if sys.argv[4:] == ["full"] else lose_power_lazily
    cut_power(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
