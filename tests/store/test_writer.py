from __future__ import annotations

import queue
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lmdb
import pytest

from amqp_broker.broker.durability.paged_buffer import PagedBuffer
from amqp_broker.store import writer
from amqp_broker.store.environment import Environment
from amqp_broker.store.journal import LmdbJournal
from amqp_broker.store.writer import RELEASED_MAX, Writer
from tests.broker_parts import new_message
from tests.present import present

TIMEOUT_S = 20


class Loop:
    """The event loop of a writer: calls that other threads post run on the test's thread."""

    def __init__(self, folder: Path) -> None:
        self.environment = Environment(folder)
        self.journal = LmdbJournal(self.environment)
        self.calls: queue.SimpleQueue[tuple[Callable[..., None], Any]] = queue.SimpleQueue()
        self.ends: list[Exception | None] = []
        self.writer = Writer(self.environment, self.journal, self.post, self.ends.append)
        self.buffer = PagedBuffer(self.journal, self.journal.new_ranges(1), keeps_all=False)

    def post(self, call: Callable[..., None], *arguments: Any) -> None:
        self.calls.put((call, arguments))

    def run(self) -> None:
        """Run the next call that is posted."""
        call, arguments = self.calls.get(timeout=TIMEOUT_S)
        call(*arguments)

    def commit(self) -> None:
        self.writer.commit()
        self.run()

    def put(self, body: bytes) -> None:
        self.buffer.append(self.buffer.next, new_message(body, delivery_mode=2), None)

    @property
    def safe(self) -> list[bytes]:
        return [stored.message.body for _, stored in self.journal.read(self.buffer.id, 0, 10_000)]


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    loop = Loop(tmp_path / "data")
    # For the first commit a transaction has to be begun.
    loop.commit()
    loop.run()
    yield loop
    loop.writer.stop()
    loop.environment.close()


def test_a_change_is_safe_when_the_loop_hears_of_the_commit(loop: Loop) -> None:
    loop.put(b"a")
    batch = loop.journal.batch
    loop.writer.commit()
    assert not loop.writer.is_idle
    loop.put(b"b")
    assert loop.journal.committed < batch
    loop.run()
    assert (loop.ends, loop.journal.committed, loop.writer.is_idle) == ([None, None], batch, True)
    assert loop.safe == [b"a"]
    loop.commit()
    assert loop.safe == [b"a", b"b"]


def failing(txn: lmdb.Transaction | None, verb: str, error: Exception | None = None) -> Any:
    """A stand-in for a transaction that fails at one of its verbs."""
    return Failing(present(txn), verb, error)


class Failing:
    def __init__(self, txn: lmdb.Transaction, verb: str, error: Exception | None = None) -> None:
        self.txn = txn
        self.verb = verb
        self.error = error or lmdb.DiskError("No space left on device")

    def __getattr__(self, name: str) -> Any:
        if name != self.verb:
            return getattr(self.txn, name)
        if name == "commit":
            self.txn.abort()

        def fail(*arguments: Any, **options: Any) -> None:
            raise self.error

        return fail


@pytest.mark.parametrize("verb", ["put", "cursor", "commit"])
def test_a_failed_batch_is_written_with_the_next_commit(loop: Loop, verb: str) -> None:
    loop.put(b"a")
    loop.writer._txn = failing(loop.writer._txn, verb)
    batch = loop.journal.batch
    loop.commit()
    assert isinstance(loop.ends[-1], lmdb.DiskError)
    assert (loop.safe, loop.writer.is_idle) == ([], True)
    assert loop.journal.committed < batch
    loop.put(b"b")
    loop.commit()
    assert loop.ends[-1] is None
    assert loop.safe == [b"a", b"b"]
    assert loop.journal.committed > batch


@pytest.mark.interpreted  # A compiled object has no methods of its own.
def test_a_batch_that_raises_any_error_counts_as_not_written(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    loop.put(b"a")
    with monkeypatch.context() as broken:
        broken.setattr(loop.journal, "_write_buffer", failing(loop.writer._txn, "write", RuntimeError("changed")).write)
        loop.commit()
    failed = loop.ends[-1]
    assert isinstance(failed, RuntimeError)
    loop.commit()
    assert loop.ends[-1] is None
    assert loop.safe == [b"a"]


@pytest.mark.interpreted  # replaces a constant
def test_a_slow_commit_is_logged(loop: Loop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    loop.put(b"a")
    loop.commit()
    assert caplog.messages == []
    monkeypatch.setattr(writer, "SLOW_COMMIT_S", 0.0)
    loop.put(b"b")
    loop.commit()
    [warning] = caplog.messages
    assert re.fullmatch(r"the disk took \d+\.\d s for a commit; confirms of what is persistent waited", warning)


def test_a_writer_that_stops_leaves_no_transaction_open(loop: Loop) -> None:
    loop.put(b"a")
    loop.writer.commit()
    loop.writer.stop()
    with loop.environment.lmdb.begin(write=True):
        pass
    loop.writer = Writer(loop.environment, loop.journal, loop.post, loop.ends.append)


def test_the_changes_of_a_batch_are_freed_in_slices_after_its_commit(loop: Loop) -> None:
    for number in range(2 * RELEASED_MAX):
        loop.journal.define(("queue", "/", str(number)), {})
    batch = loop.journal._collected
    loop.writer.commit()
    while len(loop.ends) < 2:
        loop.run()
    assert len(batch.definitions) == RELEASED_MAX
    loop.run()
    assert len(batch.definitions) == 0
    assert loop.calls.empty()
