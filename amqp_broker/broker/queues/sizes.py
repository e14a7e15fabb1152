"""Octets of the messages of a queue, counted only on demand."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from amqp_broker.broker.durability.paged_buffer import ENTRY_BYTES

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.queues.queue_surroundings import UnackedMessages

# Memory of an empty queue (octets).
QUEUE_BYTES: Final = 4096
# Messages that are examined one by one; each takes about 0.3 µs.
EXACT_MAX: Final = 1000


class Sizes(NamedTuple):
    """Number and body octets of messages, and the same of the persistent ones."""

    messages: int = 0
    body_bytes: int = 0
    persistent_count: int = 0
    persistent_bytes: int = 0

    def scaled(self, count: int) -> Sizes:
        """Return an estimate for `count` messages, of which these are a sample."""
        if count == self.messages:
            return self
        share = count / self.messages if self.messages else 0.0
        return Sizes(
            count,
            round(self.body_bytes * share),
            round(self.persistent_count * share),
            round(self.persistent_bytes * share),
        )


NOTHING: Final = Sizes()


def sizes_of(messages: Iterable[Message]) -> Sizes:
    count = body_bytes = persistent_count = persistent_bytes = 0
    for message in messages:
        size = message.body_bytes
        count += 1
        body_bytes += size
        if message.is_persistent:
            persistent_count += 1
            persistent_bytes += size
    return Sizes(count, body_bytes, persistent_count, persistent_bytes)


def ready_sizes(queue: Queue, exact_max: int = EXACT_MAX) -> Sizes:
    """Return the sizes of ready messages; beyond `exact_max` they are estimated from the first ones.

    By default that takes at most 0.3 ms; an exact count of a million messages takes 0.3 s.
    """
    count = queue.ready_count
    if not count:
        return NOTHING
    sample = sizes_of(islice(queue.messages(), exact_max))
    return sample if sample.messages >= count else sample.scaled(count)


def unacked_sizes(channels: Iterable[UnackedMessages]) -> dict[Queue, Sizes]:
    """Return the sizes of the unacked messages of channels by queue; a million messages take 0.4 s."""
    found: dict[Queue, list[Message]] = {}
    for channel in channels:
        for queue, message in channel.unacked_messages():
            found.setdefault(queue, []).append(message)
    return {queue: sizes_of(messages) for queue, messages in found.items()}


def paged_count(queue: Queue) -> int:
    """Return the number of messages that are only in the journal."""
    buffers = queue.buffers
    return sum(buffer.paged_count for buffer in buffers) if buffers else 0


def memory_bytes(queue: Queue, ready: Sizes) -> int:
    """Return an estimate of the memory of a queue, from the sizes of its ready messages."""
    in_memory = ready.messages - paged_count(queue)
    return QUEUE_BYTES + in_memory * ENTRY_BYTES + ready.scaled(in_memory).body_bytes
