"""A journal whose disk is a few dicts: what was committed is there after a crash, and nothing else is.

journal = MemoryJournal()
lab = Lab(journal=journal)
...
journal.commit()                       # or take_batch() now, and on_committed() or take_back() later
after_crash = MemoryJournal(journal.disk)
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from amqp_broker.amqp.message import ENTRY_BYTES
from amqp_broker.broker.durability.chunk import Chunk, ChunkHead
from amqp_broker.broker.durability.journal import Batch, DefinitionKey, Journal, RangeState, Stored


@dataclass
class Disk:
    """The committed changes."""

    definitions: dict[DefinitionKey, dict[str, Any]] = field(default_factory=dict)
    # By range and position.
    messages: dict[tuple[int, int], Stored] = field(default_factory=dict)
    states: dict[int, RangeState] = field(default_factory=dict)
    # By range and first offset.
    chunks: dict[tuple[int, int], Chunk] = field(default_factory=dict)
    next_range: int = 1


class MemoryJournal(Journal):
    """A journal in memory that commits on demand."""

    def __init__(self, disk: Disk | None = None) -> None:
        super().__init__()
        self.disk = disk or Disk()
        # A copy of the batch at this moment: later changes of a buffer belong to the next one.
        self._changes: list[Any] = []

    def new_ranges(self, count: int) -> int:
        first = self.disk.next_range
        self.disk.next_range += count
        return first

    def read(self, range_id: int, start: int, bytes_max: int) -> list[tuple[int, Stored]]:
        found = []
        for (other, position), stored in sorted(self.disk.messages.items(), key=lambda item: item[0]):
            if other == range_id and position >= start and bytes_max > 0:
                found.append((position, stored))
                bytes_max -= len(stored.message.content) + ENTRY_BYTES
        return found

    @contextmanager
    def frozen(self) -> Iterator[Journal]:
        frozen = copy.copy(self)
        frozen.disk = Disk(messages=self.disk.messages.copy(), chunks=self.disk.chunks.copy())
        yield frozen

    def chunk_at(self, range_id: int, offset: int) -> Chunk | None:
        for (other, first), chunk in self.disk.chunks.items():
            if other == range_id and first <= offset < chunk.head.end:
                return chunk
        return None

    def chunk_head_at(self, range_id: int, offset: int) -> ChunkHead | None:
        chunk = self.chunk_at(range_id, offset)
        return None if chunk is None else chunk.head

    def take_batch(self) -> Batch:
        batch = super().take_batch()
        states = {kept.id: kept.writing_state for kept, _ in batch.buffers}
        states |= {log.id: None if log.is_dropped else log.state for log, _ in batch.logs}
        self._changes = [batch, states]
        return batch

    def on_committed(self) -> Batch:
        (batch, states), self._changes = self._changes, []
        disk = self.disk
        for key, value in batch.definitions.items():
            if value is None:
                disk.definitions.pop(key, None)
            else:
                disk.definitions[key] = value
        for buffer, removes in batch.buffers:
            for position, stored in buffer.writing.items():
                disk.messages[buffer.id, position] = stored
            for position in removes:
                disk.messages.pop((buffer.id, position), None)
        for log, chunks in batch.logs:
            disk.chunks.update(((log.id, chunk.head.first), chunk) for chunk in chunks)
        for range_id, state in states.items():
            if state is None:
                disk.states.pop(range_id, None)
            else:
                disk.states[range_id] = state
        for range_id, start, end in batch.discards:
            for key in [key for key in disk.messages if key[0] == range_id and start <= key[1] < end]:
                del disk.messages[key]
            for key in [key for key in disk.chunks if key[0] == range_id and start <= key[1] < end]:
                del disk.chunks[key]
        return super().on_committed()

    def commit(self) -> None:
        """Take the batch and commit it."""
        self.take_batch()
        self.on_committed()

    @property
    def positions(self) -> list[int]:
        """Return the positions of messages after a commit, for tests with one queue."""
        self.commit()
        return sorted(position for _, position in self.disk.messages)

    def definitions_of(self, kind: str) -> Iterator[tuple[DefinitionKey, dict[str, Any]]]:
        return ((key, value) for key, value in list(self.disk.definitions.items()) if key[0] == kind)

    def state_of(self, range_id: int) -> RangeState:
        return self.disk.states.get(range_id, RangeState())

    def report_damage(self, what: str) -> None:
        raise AssertionError(what)
