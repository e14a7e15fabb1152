"""The journal: changes that must survive the process, collected in batches. The store derives from `Journal`.

The core writes changes to the journal synchronously and in memory. The server has batches committed, one after the
other and outside the core, and reports how each ended. A change is safe when the batch that was collected at that time
is: `committed >= batch`. A batch is taken between two reads of sockets, so the changes of one read become durable
together or not at all.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from mypy_extensions import mypyc_attr

from amqp_broker.broker.durability.chunk import Chunk, ChunkCache, ChunkHead, as_delivered

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.durability.paged_buffer import PagedBuffer
    from amqp_broker.broker.durability.stream_log import JournaledLog

# Kind and names of an object other than a message: ("queue", "/", "orders").
DefinitionKey: TypeAlias = "tuple[str, ...]"
# Greater than every position of a range, and every offset of a stream.
END: Final = (1 << 63) - 1
# Ranges in a batch with more of which it is not worth while to look whether it can wait.
RANGES_MAX: Final = 64


class Death(NamedTuple):
    """Why and when (ms since the epoch) a message died that its queue keeps until its targets have it."""

    reason: str
    died_at_ms: int


class Stored:
    """A message in the journal.

    `deadline_ms` is None if it does not expire. `returns` is the number of returns, in queues that count them, and
    `failures` how many of them are failures; None for all. `ready_at_ms` is the end of its delay after a return.
    """

    __slots__ = ("deadline_ms", "death", "failures", "message", "ready_at_ms", "returns")

    def __init__(
        self,
        message: Message,
        deadline_ms: int | None = None,
        returns: int = 0,
        failures: int | None = None,
        ready_at_ms: int | None = None,
        death: Death | None = None,
    ) -> None:
        self.message = message
        self.deadline_ms = deadline_ms
        self.returns = returns
        self.failures = failures
        self.ready_at_ms = ready_at_ms
        self.death = death

    @property
    def is_rewritten(self) -> bool:
        """True if an older record of the message may be in the journal."""
        return self.returns > 0 or self.death is not None


class RangeState(NamedTuple):
    """The state of a range, in addition to its messages.

    All positions before `head` were taken at some time; positions from `next` on were never used. `message_count` and
    `body_bytes` are those of the messages that a restart finds.
    """

    head: int = 0
    next: int = 0
    message_count: int = 0
    body_bytes: int = 0


@dataclass
class Batch:
    """Changes that are committed together.

    `buffers` has ranges with changes and the positions that each removes; their puts are in their `writing`. `logs` has
    streams with changes and the chunks that each puts. `definitions` has None for deleted objects. `discards` has
    (range, first position, end).
    """

    buffers: list[tuple[PagedBuffer, list[int]]] = field(default_factory=list)
    logs: list[tuple[JournaledLog, list[Chunk]]] = field(default_factory=list)
    definitions: dict[DefinitionKey, dict[str, Any] | None] = field(default_factory=dict)
    discards: list[tuple[int, int, int]] = field(default_factory=list)


class JournalBroken(Exception):
    """The journal cannot be read: its file is damaged, not only a message in it."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Journal:
    """Collects changes, and knows which of them are safe.

    `batch` is the number of the batch that is being collected, `committed` that of the last one that is safe.
    `journal_bytes` counts octets of messages, `definitions` changes of objects: a difference before and after a call
    means that there is a commit to wait for.
    """

    # False if changes do not outlive the process.
    is_durable = True

    def __init__(self) -> None:
        self.batch = 1
        self.committed = 0
        self.journal_bytes = 0
        self.definitions = 0
        # Works in portions, all of whose changes become safe together: no batch is taken until they are done.
        self.open_works = 0
        # Set during recovery: restored objects are not defined again.
        self.is_restoring = False
        # Called with the reason when the journal cannot be read any more.
        self.on_broken: Callable[[str], object] = lambda reason: None
        # Octets of messages that all paged buffers have in memory.
        self.buffered_bytes = 0
        # Ranges with changes, each once.
        self.dirty: list[PagedBuffer] = []
        # Streams with changes, and streams with commits that their readers have not seen.
        self.dirty_logs: list[JournaledLog] = []
        self.advanced_logs: list[JournaledLog] = []
        self._collected = Batch()
        self._writing: Batch | None = None
        self.chunk_cache = ChunkCache()
        self._journal_bytes_before = 0
        # The last batch that a client waits for as a whole.
        self._required = 0
        # True if at least half of the messages of the last batch were settled before its commit ended.
        self.settles_fast = False

    # Calls of the core

    def broken(self, reason: str) -> JournalBroken:
        """Report that the journal cannot be read; return the error to raise."""
        self.on_broken(reason)
        return JournalBroken(reason)

    def define(self, key: DefinitionKey, value: dict[str, Any]) -> None:
        """Write an object, from whose `value` a restart declares it again (`broker/journal_entries.py`)."""
        if not self.is_restoring:
            self._collected.definitions[key] = value
            self.definitions += 1

    def undefine(self, key: DefinitionKey) -> None:
        """Remove a deleted object."""
        self._collected.definitions[key] = None
        self.definitions += 1

    def discard(self, range_id: int, start: int, end: int) -> None:
        """Discard positions `start` to `end` (exclusive) of a range."""
        self._collected.discards.append((range_id, start, end))
        self.definitions += 1

    def note_duplicate(self) -> None:
        """Have the publisher of a duplicate, which was dropped, wait until its original is safe."""
        if self.committed < self.last_used_batch:
            self.journal_bytes += 1

    def unsafe_in(self, key: DefinitionKey) -> int:
        """Return the batch with the last change of an object; 0 if it is safe."""
        if key in self._collected.definitions:
            return self.batch
        return self.batch - 1 if self._writing is not None and key in self._writing.definitions else 0

    @abstractmethod
    def new_ranges(self, count: int) -> int:
        """Create ranges with consecutive ids, which are never used again; return the first."""

    @abstractmethod
    def state_of(self, range_id: int) -> RangeState:
        """Return the state of a range."""

    @abstractmethod
    def read(self, range_id: int, start: int, bytes_max: int) -> list[tuple[int, Stored]]:
        """Return safe messages of a range from position `start` on: at least one, and about `bytes_max` octets.

        A `DamagedMessage` stands for one whose record is damaged.
        """

    @contextmanager
    def frozen(self) -> Iterator[Journal]:
        """Yield a journal to read from that has what is safe now, whatever is committed meanwhile."""
        yield self

    @abstractmethod
    def chunk_at(self, range_id: int, offset: int) -> Chunk | None:
        """Return the chunk of a stream that has an offset; None if it is not safe.

        A damaged chunk has no messages, although its head counts some.
        """

    def delivered_chunk_at(self, range_id: int, offset: int) -> Chunk | None:
        """Return the chunk that `chunk_at` returns, with its messages as readers get them."""
        chunk = self.chunk_at(range_id, offset)
        return None if chunk is None else Chunk(chunk.head, as_delivered(chunk))

    @abstractmethod
    def chunk_head_at(self, range_id: int, offset: int) -> ChunkHead | None:
        """Return the head of the chunk that `chunk_at` returns."""

    @abstractmethod
    def report_damage(self, what: str) -> None:
        """Have the log say what is damaged."""

    # Calls of the server and the store

    @property
    def has_changes(self) -> bool:
        """True if the collected batch has changes."""
        return bool(self.dirty or self.dirty_logs or self._collected.definitions or self._collected.discards)

    @property
    def has_work(self) -> bool:
        """True if there is anything to commit now."""
        return self.has_changes and not self.open_works

    @property
    def last_used_batch(self) -> int:
        """The last batch with changes. A batch without any may never be committed, so nothing must wait for it."""
        return self.batch if self.has_changes else self.batch - 1

    @property
    def waiting_bytes(self) -> int:
        """Octets of messages in the collected batch."""
        return self.journal_bytes - self._journal_bytes_before

    @property
    def may_shrink(self) -> bool:
        """True if collected messages are with consumers, which may settle them before they are written."""
        return any(buffer.taken_count for buffer in self.dirty)

    @property
    def is_with_consumers(self) -> bool:
        """True if consumers have all collected messages, and no client waits for other changes."""
        if self._needs_commit:
            return False
        buffers = [buffer for buffer in self.dirty if buffer.puts]
        return bool(buffers) and all(buffer.head >= buffer.next for buffer in buffers)

    @property
    def is_void(self) -> bool:
        """True if all collected messages were settled, and no client waits for other changes."""
        return not self._needs_commit and not any(buffer.puts for buffer in self.dirty)

    @property
    def _needs_commit(self) -> bool:
        """True if clients wait for more than messages, or if the batch has too many ranges to look at."""
        collected = self._collected
        return bool(
            self._required == self.batch
            or self.dirty_logs
            or collected.definitions
            or collected.discards
            or len(self.dirty) > RANGES_MAX
        )

    def require(self, batch: int) -> None:
        """Note that a client waits for all changes of a batch, also for those that remove messages."""
        self._required = max(self._required, batch)

    def pass_batch(self) -> None:
        """Begin the next batch, and count the collected one as safe: it `is_void`, and no other is being written.

        The next batch has its changes.
        """
        self._journal_bytes_before = self.journal_bytes
        self.committed = self.batch
        self.batch += 1

    def take_batch(self) -> Batch:
        """Return the collected batch, and begin the next."""
        batch, self._collected = self._collected, Batch()
        dirty, self.dirty = self.dirty, []
        batch.buffers = [(buffer, buffer.take()) for buffer in dirty]
        logs, self.dirty_logs = self.dirty_logs, []
        batch.logs = [(log, log.take()) for log in logs]
        self._writing = batch
        self._journal_bytes_before = self.journal_bytes
        self.batch += 1
        return batch

    def on_committed(self) -> Batch:
        """Note that the taken batch is safe, and return it."""
        batch = self._writing
        assert batch is not None
        settled = written = 0
        for buffer, _ in batch.buffers:
            settled += len(buffer.removes)
            written += len(buffer.writing)
            buffer.writing = {}
        if written:
            self.settles_fast = 2 * settled >= written
        for log, _ in batch.logs:
            log.on_committed()
            self.advanced_logs.append(log)
        self._writing = None
        self.committed = self.batch - 1
        return batch

    def take_back(self) -> None:
        """Add the taken batch to the collected one; it could not be written."""
        if self._writing is None:
            return
        batch, self._writing = self._writing, None
        for buffer, removes in batch.buffers:
            buffer.take_back(removes)
        for log, _ in batch.logs:
            log.take_back()
        self._collected.definitions = {**batch.definitions, **self._collected.definitions}
        self._collected.discards[:0] = batch.discards


class NullJournal(Journal):
    """A journal that writes nothing: all changes are safe at once, and lost with the process."""

    is_durable = False

    def __init__(self) -> None:
        super().__init__()
        self.committed = self.batch

    def define(self, key: DefinitionKey, value: dict[str, Any]) -> None:
        pass

    def undefine(self, key: DefinitionKey) -> None:
        pass

    def new_ranges(self, count: int) -> int:
        return 0

    def state_of(self, range_id: int) -> RangeState:
        return RangeState()

    def read(self, range_id: int, start: int, bytes_max: int) -> list[tuple[int, Stored]]:
        return []

    def chunk_at(self, range_id: int, offset: int) -> Chunk | None:
        return None

    def chunk_head_at(self, range_id: int, offset: int) -> ChunkHead | None:
        return None

    def report_damage(self, what: str) -> None:
        pass
