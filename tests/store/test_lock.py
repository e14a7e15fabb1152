from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from amqp_broker.store import lock
from amqp_broker.store.environment import Environment, StoreInaccessible


def test_a_lock_is_for_one_and_tells_who_that_is(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    descriptor = lock.acquire(path)
    lock.sign(descriptor)
    with pytest.raises(lock.Held) as held:
        lock.acquire(path)
    assert held.value.holder == str(os.getpid())
    os.close(descriptor)
    os.close(lock.acquire(path))


def test_a_shorter_process_id_replaces_a_longer_one(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text("12345678901\n", "utf-8")
    descriptor = lock.acquire(path)
    lock.sign(descriptor)
    assert path.read_text("utf-8") == f"{os.getpid()}\n"
    os.close(descriptor)


def test_an_unsigned_lock_does_not_change_the_file(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text("7\n", "utf-8")
    os.close(lock.acquire(path))
    assert path.read_text("utf-8") == "7\n"


@pytest.mark.skipif(sys.platform == "win32", reason="the system keeps open files in their place by itself")
def test_many_hold_a_file_together_or_one_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    first, second = lock.hold(path, is_shared=True), lock.hold(path, is_shared=True)
    with pytest.raises(lock.Held):
        lock.hold(path, is_shared=False)
    os.close(first)
    os.close(second)
    alone = lock.hold(path, is_shared=False)
    with pytest.raises(lock.Held):
        lock.hold(path, is_shared=True)
    os.close(alone)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other locks")
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_not_taken_for_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(StoreInaccessible, match=f"cannot be locked: {os.strerror(number)}"):
        Environment(tmp_path / "store")
    # Nothing is left there.
    assert not (tmp_path / "store").exists()
    with pytest.raises(lock.CannotLock):
        lock.hold(Path(__file__), is_shared=True)
