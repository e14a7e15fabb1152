"""What must survive the process, collected as batches; whoever writes them (the store) derives from `Journal`.

The core tells the journal what there is to remember, synchronously and in memory. The shell has batches committed, one
after the other and outside the core, and says how that ended. What was told is safe when the batch that was collected
then is: `committed >= batch`. A batch is taken between two reads, never within one, so what one read did becomes
durable together, or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from amqp_broker.broker.chunk import Chunk, ChunkCache, ChunkHead

if TYPE_CHECKING:
    from amqp_broker.broker.stream_log import JournaledLog
    from amqp_broker.broker.window import Window
    from amqp_broker.message import Message

# Kind and names of an object that is no message: ("queue", "/", "orders").
DefinitionKey: TypeAlias = "tuple[str, ...]"


class Stored(NamedTuple):
    """A message as the journal has it. `deadline_ms` is None where it does not expire."""

    message: Message
    deadline_ms: int | None = None
    # How often it came back to a queue that counts that.
    returns: int = 0


class WindowState(NamedTuple):
    """What is remembered of a window beside its messages.

    Everything before `head` was taken at some time, everything from `next` on was never put. `message_count` and
    `body_bytes` are those of the messages that a restart finds.
    """

    head: int = 0
    next: int = 0
    message_count: int = 0
    body_bytes: int = 0


@dataclass
class Batch:
    """What is committed together.

    `windows` are those with something to write, and the positions that each removes; what they put is in their
    `writing`. `logs` are streams with something to write, and the chunks that each puts. `definitions` has None for
    what is forgotten, `discards` are (range, first position, end).
    """

    windows: list[tuple[Window, list[int]]] = field(default_factory=list)
    logs: list[tuple[JournaledLog, list[Chunk]]] = field(default_factory=list)
    definitions: dict[DefinitionKey, dict[str, Any] | None] = field(default_factory=dict)
    discards: list[tuple[int, int, int]] = field(default_factory=list)


class Journal:
    """What is told, and what of it is safe.

    `batch` is the number of the batch that is being collected, `committed` that of the last one that is safe.
    `told` counts octets of messages and `definitions` changes of objects: who compares them before and after knows
    whether there is something to wait for.
    """

    # Whether what is told here outlives the process.
    is_durable = True

    def __init__(self) -> None:
        self.batch = 1
        self.committed = 0
        self.told = 0
        self.definitions = 0
        # While what is safe is being restored nothing is told anew.
        self.is_restoring = False
        # Octets of messages that all windows have in memory.
        self.window_bytes = 0
        # Windows with something to write, each once.
        self.dirty: list[Window] = []
        # The same of streams, and those that have got on since readers were told.
        self.dirty_logs: list[JournaledLog] = []
        self.advanced_logs: list[JournaledLog] = []
        self._collected = Batch()
        self._writing: Batch | None = None
        self.chunk_cache = ChunkCache()
        self._told_before = 0

    # What the core tells

    def define(self, key: DefinitionKey, value: dict[str, Any]) -> None:
        """Remember an object; `value` is what it takes to declare it anew (`broker/definitions.py`)."""
        if not self.is_restoring:
            self._collected.definitions[key] = value
            self.definitions += 1

    def undefine(self, key: DefinitionKey) -> None:
        """Forget an object."""
        self._collected.definitions[key] = None
        self.definitions += 1

    def discard(self, range_id: int, start: int, end: int) -> None:
        """Forget positions `start` to `end` (exclusive) of a range."""
        self._collected.discards.append((range_id, start, end))
        self.definitions += 1

    def unsafe_in(self, key: DefinitionKey) -> int:
        """The batch that has the last change of an object, if that is not safe yet; 0 if it is."""
        if key in self._collected.definitions:
            return self.batch
        return self.batch - 1 if self._writing is not None and key in self._writing.definitions else 0

    def new_ranges(self, count: int) -> int:
        """New ranges of positions; returns the id of the first, the others follow. None is given twice."""
        raise NotImplementedError

    def state_of(self, range_id: int) -> WindowState:
        """What is remembered of a range."""
        raise NotImplementedError

    def read(self, range_id: int, start: int, bytes_max: int) -> list[tuple[int, Stored]]:
        """What is safe in a range from position `start` on, in order: at least one, and about `bytes_max` octets."""
        raise NotImplementedError

    def chunk_at(self, range_id: int, offset: int) -> Chunk | None:
        """The chunk of a stream that has an offset, if that is safe."""
        raise NotImplementedError

    def chunk_head_at(self, range_id: int, offset: int) -> ChunkHead | None:
        """What `chunk_at` finds, without its messages."""
        raise NotImplementedError

    # What the shell does with it

    @property
    def has_work(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.dirty or self.dirty_logs or self._collected.definitions or self._collected.discards)

    @property
    def last_told(self) -> int:
        """The batch that has what was told last. One with nothing in it is never committed: nobody must wait for it."""
        return self.batch if self.has_work else self.batch - 1

    @property
    def waiting_bytes(self) -> int:
        """Octets of messages in the batch that is being collected."""
        return self.told - self._told_before

    @property
    def may_shrink(self) -> bool:
        """Whether some of what is collected is with consumers, who may settle it before it is written."""
        return any(window.taken_count for window in self.dirty)

    def take_batch(self) -> Batch:
        """What was told since the last one; the next is collected from now on."""
        batch, self._collected = self._collected, Batch()
        dirty, self.dirty = self.dirty, []
        batch.windows = [(window, window.take()) for window in dirty]
        logs, self.dirty_logs = self.dirty_logs, []
        batch.logs = [(log, log.take()) for log in logs]
        self._writing = batch
        self._told_before = self.told
        self.batch += 1
        return batch

    def on_committed(self) -> None:
        """The batch that was taken is safe."""
        assert self._writing is not None
        for window, _ in self._writing.windows:
            window.writing = {}
        for log, _ in self._writing.logs:
            log.on_committed()
            self.advanced_logs.append(log)
        self._writing = None
        self.committed = self.batch - 1

    def take_back(self) -> None:
        """The batch that was taken is not safe: it becomes a part of the one that is being collected."""
        if self._writing is None:
            return
        batch, self._writing = self._writing, None
        for window, removes in batch.windows:
            window.take_back(removes)
        for log, _ in batch.logs:
            log.take_back()
        self._collected.definitions = {**batch.definitions, **self._collected.definitions}
        self._collected.discards[:0] = batch.discards


class NullJournal(Journal):
    """Memory only: nothing is written, so everything is safe as soon as it is told."""

    is_durable = False

    def __init__(self) -> None:
        super().__init__()
        self.committed = self.batch

    def define(self, key: DefinitionKey, value: dict[str, Any]) -> None:
        pass

    def undefine(self, key: DefinitionKey) -> None:
        pass
