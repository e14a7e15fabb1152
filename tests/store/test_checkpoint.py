"""A store with lazy commits after power losses and kills."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from amqp_broker.store import checkpoint
from amqp_broker.store.checkpoint import CHECKPOINT_FILE
from amqp_broker.store.copies import compact
from amqp_broker.store.environment import DATA_FILE, TABLES, Environment, ReadOnlyEnvironment, StoreError
from amqp_broker.store.info import summarize
from amqp_broker.store.pages import DamagedFile, survey
from amqp_broker.store.verify import verify
from tests.present import present
from tests.store.power import (
    Disk,
    Work,
    another_start,
    bodies_in,
    lose_power_at_commits,
    lose_power_lazily,
    observed,
)

pytestmark = pytest.mark.skipif(not checkpoint.boot_id(), reason="boot ids are Linux's")

SEED = 5


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Work]:
    """A store with two commits that are flushed, and one that is not."""
    work = Work(tmp_path / "data", random.Random(SEED), is_lazy=True)
    work.step()
    present(work.environment.checkpoint).sync()
    work.step()
    yield work
    work.environment.close()


def copy(work: Work, name: str = "copy") -> Path:
    """Return a copy of the files as the page cache has them: those of a killed process."""
    to = work.environment.folder.parent / name
    shutil.copytree(work.environment.folder, to)
    return to


def test_a_power_loss_between_flushes_leaves_a_whole_store(tmp_path: Path) -> None:
    lose_power_lazily(tmp_path, SEED, 6)


def test_a_power_loss_during_a_flushed_commit_leaves_a_whole_store(tmp_path: Path) -> None:
    lose_power_at_commits(tmp_path, SEED, 2)


@pytest.mark.verify
@pytest.mark.parametrize("seed", range(12))
def test_no_power_loss_tears_the_store(tmp_path: Path, seed: int) -> None:
    (tmp_path / "os").mkdir()
    (tmp_path / "full").mkdir()
    lose_power_lazily(tmp_path / "os", seed, 100)
    lose_power_at_commits(tmp_path / "full", seed, 50)


def test_without_its_checkpoint_such_a_power_loss_tears_the_store(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    work, torn = Work(tmp_path / "data", chance, is_lazy=True), 0
    disk = Disk(tmp_path / "data")
    for number in range(10):
        work.step()
        disk.note()
        disk.image(tmp_path / str(number), chance)
        try:
            survey(tmp_path / str(number) / DATA_FILE, TABLES, ())
        except DamagedFile:
            torn += 1
    work.environment.close()
    assert torn > 5


def test_a_kill_loses_nothing(work: Work) -> None:
    killed = copy(work)
    assert bodies_in(killed) == work.states[-1]
    assert not (killed / CHECKPOINT_FILE).exists()


def test_after_a_power_loss_the_store_is_that_of_the_last_flush(work: Work, tmp_path: Path) -> None:
    dead = copy(work)
    with another_start(tmp_path):
        assert bodies_in(dead) == work.states[1] != work.states[-1]


def test_a_torn_slot_leaves_the_other(work: Work, tmp_path: Path) -> None:
    copies: list[Path] = []

    def keep() -> None:
        copies.append(copy(work, f"copy-{len(copies)}"))

    with observed(Disk(work.environment.folder), keep):
        present(work.environment.checkpoint).sync()
    dead = copies[1]
    octets = (dead / CHECKPOINT_FILE).read_bytes()
    before = (copies[0] / CHECKPOINT_FILE).read_bytes()
    changed = next(at for at, octet in enumerate(octets) if before[at : at + 1] != bytes([octet]))
    (dead / CHECKPOINT_FILE).write_bytes(octets[:changed] + b"torn" + octets[changed + 4 :])
    with another_start(tmp_path):
        assert bodies_in(dead) == work.states[1]


def test_a_clean_end_flushes_everything_and_removes_the_checkpoint(tmp_path: Path) -> None:
    work = Work(tmp_path / "data", random.Random(SEED), is_lazy=True)
    work.environment.close()
    assert not (tmp_path / "data" / CHECKPOINT_FILE).exists()
    with another_start(tmp_path):
        assert bodies_in(tmp_path / "data") == work.states[-1]


def test_reopened_files_keep_their_checkpoint(work: Work, tmp_path: Path) -> None:
    work.environment.reopen()
    dead = copy(work)
    with another_start(tmp_path):
        assert bodies_in(dead) == work.states[-1]


def test_an_enlarged_map_keeps_its_checkpoint(work: Work, tmp_path: Path) -> None:
    work.environment.enlarge()
    dead = copy(work)
    with another_start(tmp_path):
        assert bodies_in(dead) == work.states[-1]
    work.step()
    present(work.environment.checkpoint).sync()


def test_tools_that_change_nothing_ask_for_a_broker_after_a_power_loss(work: Work, tmp_path: Path) -> None:
    dead = copy(work)
    with another_start(tmp_path), pytest.raises(StoreError, match=r"has lost power; start a broker on it once$"):
        ReadOnlyEnvironment(dead, is_alone=False)
    # After a kill they read it as it is.
    environment = ReadOnlyEnvironment(dead, is_alone=False)
    assert summarize(environment).queues[0].messages == len(work.states[-1])
    environment.close()


def test_tools_that_are_alone_settle_it_first(work: Work, tmp_path: Path) -> None:
    dead = copy(work)
    with another_start(tmp_path):
        assert verify(dead).messages == len(work.states[1])
        compact(dead)
        assert bodies_in(dead) == work.states[1]


def test_a_failed_flush_keeps_the_former_checkpoint(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = present(work.environment.checkpoint)

    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as failing:
        failing.setattr("os.fdatasync", fail)
        with pytest.raises(checkpoint.FlushFailed, match="Input/output error"):
            kept.sync()
    dead = copy(work)
    with another_start(tmp_path):
        assert bodies_in(dead) == work.states[1]


def test_after_a_failed_flush_no_other_counts_and_the_next_start_goes_back(
    work: Work, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kept, flush = present(work.environment.checkpoint), os.fdatasync

    def fail(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().name == DATA_FILE:
            raise OSError(5, "Input/output error")
        flush(descriptor)

    with monkeypatch.context() as failing:
        failing.setattr("os.fdatasync", fail)
        with pytest.raises(checkpoint.FlushFailed):
            kept.sync()
    # The system says that there is nothing left to flush.
    with pytest.raises(checkpoint.FlushFailed):
        kept.sync()
    killed = copy(work)
    kept.close()
    assert (work.environment.folder / CHECKPOINT_FILE).exists()
    assert bodies_in(killed) == work.states[1]
    assert "could not write all commits" in caplog.text


def test_systems_without_a_boot_id_flush_each_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "BOOT_ID", tmp_path / "missing")
    environment = Environment(tmp_path / "data", is_lazy=True)
    assert environment.checkpoint is None
    environment.close()


def test_meta_pages_are_written_to_the_disk_before_a_process_goes_on_from_them(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    Environment(folder).close()
    disk, before = Disk(folder), (folder / DATA_FILE).read_bytes()
    disk.note()
    flushed: list[int] = []
    with observed(disk, lambda: flushed.append(len(disk.versions[DATA_FILE]))):
        environment = Environment(folder)
        at_start = len(flushed)
        environment.reopen()
    assert (at_start, len(flushed)) == (1, 2)
    assert (folder / DATA_FILE).read_bytes() == before
    environment.close()
