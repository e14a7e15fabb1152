"""An exchange that routes as a fanout, and drops a message whose header it has seen before.

Source: rabbitmq-message-deduplication (noxdafox), its README, rabbit_message_deduplication_exchange.ex and cache.ex.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from amqp_broker.amqp import fields
from amqp_broker.amqp.deduplication_key import header_name, key_of
from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.amqp.message import EXPIRATION_MAX_MS, Address, Message, Properties
from amqp_broker.broker.durability.paged_buffer import PagedBuffer
from amqp_broker.broker.exchanges.exchange import Destination, FanoutExchange

if TYPE_CHECKING:
    from amqp_broker.broker.vhost import VHost

# Expired entries that one message removes: more than it adds, so they do not pile up.
EXPIRED_AT_ONCE: Final = 4
# Deadlines of entries that are gone, beyond which the heap is built anew.
STALE_MIN: Final = 64
_DIGITS: Final = re.compile(r"\+?[0-9]{1,18}")


@dataclass(eq=False)
class DeduplicationExchange(FanoutExchange):
    """A fanout exchange with a cache of at most `size` headers, the oldest of which makes room for a new one.

    A duplicate matches nothing. So it is confirmed with an ack, returned if it is mandatory, and passed to the
    alternate exchange if there is one. A cache on disk is in the journal: a message and its entry are safe together or
    not at all.
    """

    type: ClassVar[str] = "x-message-deduplication"

    size: int = 0
    _vhost: VHost = field(init=False)
    _ttl_ms: int | None = None
    _header: str = ""
    # By key, in the order of arrival: when the entry expires (ms since the epoch; None for never), and its position.
    _entries: dict[bytes, tuple[int | None, int]] = field(default_factory=dict)
    # A heap of deadlines and keys; those of entries that are gone stay for a while.
    _deadlines: list[tuple[int, bytes]] = field(default_factory=list)
    _next_position: int = 0
    # Has the same entries, as bodies of messages, if the cache is on disk.
    _buffer: PagedBuffer | None = None

    @property
    def routes_by_message(self) -> bool:
        return True

    @property
    def is_watched(self) -> bool:
        # Where there are destinations, a message that no queue gets is a duplicate.
        return not self._destinations and super().is_watched

    @property
    def entry_count(self) -> int:
        """The number of entries of the cache, with some that have expired."""
        return len(self._entries)

    def open(self, vhost: VHost) -> None:
        arguments = self.arguments
        size = _positive(arguments.get("x-cache-size"))
        if size is None:
            raise PreconditionFailed("Missing or invalid argument, 'x-cache-size' must be an integer greater than 0")
        self._ttl_ms = _positive(arguments.get("x-cache-ttl"))
        if "x-cache-ttl" in arguments and self._ttl_ms is None:
            raise PreconditionFailed("Invalid argument, 'x-cache-ttl' must be an integer greater than 0")
        persistence = arguments.get("x-cache-persistence", "memory")
        if persistence not in ("disk", "memory"):
            raise PreconditionFailed("Invalid argument, 'x-cache-persistence' must be either 'disk' or 'memory'")
        self._header = header_name(arguments)
        self._vhost, self.size = vhost, size
        journal = vhost.broker.journal
        if persistence == "disk" and self.is_durable and journal.is_durable:
            if self.range_id is None:
                self.range_id = journal.new_ranges(1)
            self._buffer = PagedBuffer(journal, self.range_id, keeps_all=True)
            self._next_position = self._buffer.next
            for position, stored in self._buffer.take_all():
                if stored.message.is_damaged:
                    journal.report_damage(f"{self}: the cache entry at position {position} is damaged; it is ignored")
                else:
                    self._remember(stored.message.body, stored.deadline_ms, position)

    def close(self) -> None:
        self._entries.clear()
        self._deadlines.clear()
        if self._buffer is not None:
            self._buffer.drop()

    def destinations(
        self, routing_keys: Sequence[str], headers: fields.Table, message: Message | None
    ) -> Collection[Destination]:
        if message is not None and self._is_duplicate(headers):
            self._vhost.broker.journal.note_duplicate()
            if self._vhost.trace is not None:
                self._vhost.trace.dropped_duplicate(self.name, message)
            return ()
        return self._destinations

    # The cache

    def _is_duplicate(self, headers: fields.Table) -> bool:
        """Return whether a message with these headers is a duplicate; remember it if it is not."""
        key = key_of(headers, self._header)
        if key is None:
            return False
        now = self._vhost.broker.now
        self._remove_expired(now)
        entry = self._entries.get(key)
        if entry is not None:
            deadline_ms = entry[0]
            if deadline_ms is None or deadline_ms > now:
                return True
            self._remove(key)
        if len(self._entries) >= self.size:
            self._remove(next(iter(self._entries)))
        ttl_ms = self._ttl_of(headers)
        deadline_ms = None if ttl_ms is None else now + ttl_ms
        position = self._next_position
        self._next_position += 1
        if self._buffer is not None:
            self._buffer.deliver_through(position, self._as_message(key), deadline_ms)
        self._remember(key, deadline_ms, position)
        return False

    def _ttl_of(self, headers: fields.Table) -> int | None:
        """Return for how many ms a message is remembered; None for no end."""
        own: Any = headers.get("x-cache-ttl")
        ttl_ms = max(0, int(own)) if fields.is_integer(own) else self._ttl_ms
        return None if ttl_ms is None else min(ttl_ms, EXPIRATION_MAX_MS)

    def _remember(self, key: bytes, deadline_ms: int | None, position: int) -> None:
        self._entries[key] = (deadline_ms, position)
        if deadline_ms is not None:
            heapq.heappush(self._deadlines, (deadline_ms, key))

    def _remove(self, key: bytes) -> None:
        _, position = self._entries.pop(key)
        if self._buffer is not None:
            self._buffer.remove(position, self._as_message(key))

    def _remove_expired(self, now: int) -> None:
        """Remove some of the expired entries."""
        heap, entries = self._deadlines, self._entries
        if len(heap) > 2 * len(entries) + STALE_MIN:
            heap[:] = [(entry[0], key) for key, entry in entries.items() if entry[0] is not None]
            heapq.heapify(heap)
        for _ in range(EXPIRED_AT_ONCE):
            if not heap or heap[0][0] > now:
                return
            deadline_ms, key = heapq.heappop(heap)
            entry = entries.get(key)
            if entry is not None and entry[0] == deadline_ms:
                self._remove(key)

    def _as_message(self, key: bytes) -> Message:
        return Message.build(Address(self.name, ""), Properties(), key)


def _positive(value: Any) -> int | None:
    """Return an integer greater than 0, which may be written as a text; None for all else."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    return int(value) if fields.is_integer(value) and value > 0 else None
