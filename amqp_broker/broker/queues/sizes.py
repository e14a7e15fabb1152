"""Octets of the messages of a queue, counted only on demand."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from operator import add
from typing import TYPE_CHECKING, Final, NamedTuple

from amqp_broker.amqp.message import ENTRY_BYTES
from amqp_broker.broker.queues.octets import octets_of
from amqp_broker.broker.scheduling.portions import Steps

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.clients.client_channel import ClientChannel
    from amqp_broker.broker.queues.queue import Queue


# Memory of an empty queue (octets).
QUEUE_BYTES: Final = 4096
# Messages that are examined one by one; each takes about 0.3 µs.
EXACT_MAX: Final = 1000


class Sizes(NamedTuple):
    """Number and octets of messages, and the same of the persistent ones, as their queue counts octets."""

    messages: int = 0
    octets: int = 0
    persistent_count: int = 0
    persistent_bytes: int = 0

    def plus(self, other: Sizes) -> Sizes:
        """Return the sizes of these and other messages."""
        return Sizes(*map(add, self, other))

    def scaled(self, count: int) -> Sizes:
        """Return an estimate for `count` messages, of which these are a sample."""
        if count == self.messages:
            return self
        share = count / self.messages if self.messages else 0.0
        return Sizes(
            count,
            round(self.octets * share),
            round(self.persistent_count * share),
            round(self.persistent_bytes * share),
        )


NOTHING: Final = Sizes()


def sizes_of(messages: Iterable[Message], *, with_properties: bool) -> Sizes:
    """Return the sizes of messages, with or without those of their properties."""
    count = octets = persistent_count = persistent_bytes = 0
    for message in messages:
        size = octets_of(message, with_properties)
        count += 1
        octets += size
        if message.is_persistent:
            persistent_count += 1
            persistent_bytes += size
    return Sizes(count, octets, persistent_count, persistent_bytes)


def ready_sizes(queue: Queue, exact_max: int = EXACT_MAX) -> Sizes:
    """Return the sizes of ready messages; beyond `exact_max` they are estimated from the first ones.

    By default that takes at most 0.3 ms; an exact count of a million messages takes 0.3 s.
    """
    count = queue.ready_count
    if not count:
        return NOTHING
    sample = sizes_of(islice(queue.messages(), exact_max), with_properties=queue.counts_properties)
    return sample if sample.messages >= count else sample.scaled(count)


def sizing_unacked(channels: Iterable[ClientChannel]) -> Steps[dict[Queue, Sizes]]:
    """Return by queue the sizes of the unacked messages of channels, in steps.

    A million messages take 0.4 s.
    """
    found: dict[Queue, Sizes] = {}
    for channel in list(channels):
        unacked = list(channel.unacked_messages())
        for start in range(0, len(unacked), EXACT_MAX):
            by_queue: dict[Queue, list[Message]] = {}
            for queue, message in unacked[start : start + EXACT_MAX]:
                by_queue.setdefault(queue, []).append(message)
            for queue, messages in by_queue.items():
                sizes = sizes_of(messages, with_properties=queue.counts_properties)
                found[queue] = found.get(queue, NOTHING).plus(sizes)
            yield
    return found


def paged_count(queue: Queue) -> int:
    """Return the number of messages that are only in the journal."""
    buffers = queue.buffers
    return sum(buffer.paged_count for buffer in buffers) if buffers else 0


def memory_bytes(queue: Queue, ready: Sizes) -> int:
    """Return an estimate of the memory of a queue, from the sizes of its ready messages."""
    in_memory = ready.messages - paged_count(queue)
    return QUEUE_BYTES + in_memory * ENTRY_BYTES + ready.scaled(in_memory).octets
