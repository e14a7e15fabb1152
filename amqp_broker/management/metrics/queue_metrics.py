"""The metrics of single queues that depend on their messages or their type.

Octets of many messages are estimated from the first ones.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from amqp_broker.broker.queues.quorum import QuorumQueue
from amqp_broker.broker.queues.sizes import (
    NOTHING,
    Sizes,
    memory_bytes,
    paged_count,
    ready_sizes,
    sizing_unacked,
)
from amqp_broker.broker.queues.stream import StreamQueue
from amqp_broker.management.metrics.declarations import COUNTER, GAUGE, Family, Metric, Scope

if TYPE_CHECKING:
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.vhost import VHost

Labels: TypeAlias = tuple[str, ...]

# Messages of a queue whose sizes are averaged.
SAMPLE: Final = 20


def selected(scope: Scope) -> Iterator[VHost]:
    """Yield the vhosts of a scope."""
    names = scope.vhosts
    return (vhost for vhost in list(scope.broker.vhosts.values()) if names is None or vhost.name in names)


def queues(scope: Scope) -> Iterator[tuple[Labels, Queue]]:
    """Yield the queues of a scope with their labels."""
    for vhost in selected(scope):
        for queue in list(vhost.queues.values()):
            if not queue.is_deleted:
                yield (vhost.name, queue.name), queue


class Measured(NamedTuple):
    """A queue, except a stream, with the sizes of its messages."""

    queue: Queue
    ready: Sizes
    unacked: Sizes

    @property
    def ready_ram(self) -> int:
        """The number of ready messages in memory; RabbitMQ counts none of a quorum queue."""
        if isinstance(self.queue, QuorumQueue):
            return 0
        return self.ready.messages - min(self.ready.messages, paged_count(self.queue))

    @property
    def unacked_ram(self) -> int:
        return 0 if isinstance(self.queue, QuorumQueue) else self.queue.unacked_count

    @property
    def ram_bytes(self) -> int:
        if isinstance(self.queue, QuorumQueue):
            return 0
        return self.ready.scaled(self.ready_ram).octets + self.unacked.octets

    @property
    def persistent(self) -> int:
        if isinstance(self.queue, QuorumQueue):
            return self.queue.message_count
        return self.ready.persistent_count + self.unacked.persistent_count

    @property
    def persistent_bytes(self) -> int:
        if isinstance(self.queue, QuorumQueue):
            return self.ready.octets + self.unacked.octets
        return self.ready.persistent_bytes + self.unacked.persistent_bytes

    @property
    def disk_reads(self) -> int | None:
        """The number of messages that were read from the journal; RabbitMQ counts only those of classic queues."""
        if isinstance(self.queue, QuorumQueue):
            return None
        return sum(buffer.read_count for buffer in self.queue.buffers)

    @property
    def disk_writes(self) -> int | None:
        """The number of messages that were written to the journal; RabbitMQ counts only those of classic queues."""
        if isinstance(self.queue, QuorumQueue):
            return None
        return sum(buffer.written_count for buffer in self.queue.buffers)

    @property
    def head_timestamp(self) -> float:
        """The timestamp of the first message; not a number if there is none, as in RabbitMQ."""
        head = next(self.queue.messages(), None) if self.queue.ready_count else None
        found = head.timestamp if head is not None else None
        return math.nan if found is None else found


def _measured(scope: Scope) -> Generator[tuple[Labels, Measured] | None, None, None]:
    unacked = yield from sizing_unacked(scope.broker.channels())
    for labels, queue in queues(scope):
        if not isinstance(queue, StreamQueue):
            yield labels, Measured(queue, ready_sizes(queue, SAMPLE), unacked.get(queue, NOTHING))


def _segments(queue: Queue) -> int | None:
    return queue.segment_count if isinstance(queue, StreamQueue) else None


def no_objects(scope: Scope) -> Iterator[tuple[Labels, None]]:
    """Yield nothing: RabbitMQ has these objects only with a protocol or setting that this broker lacks."""
    yield from ()


def _queues_of_types(scope: Scope) -> Iterator[tuple[Labels, Queue]]:
    for labels, queue in queues(scope):
        yield (*labels, f"rabbit_{queue.type}_queue", "leader"), queue


QUEUE_FAMILIES: Final = (
    Family(
        "queue_metrics",
        ("vhost", "queue"),
        _measured,
        (
            Metric(
                "queue_process_memory_bytes",
                GAUGE,
                "Memory in bytes used by the Erlang queue process",
                lambda m: memory_bytes(m.queue, m.ready),
            ),
            Metric(
                "queue_messages_ram",
                GAUGE,
                "Ready and unacknowledged messages stored in memory",
                lambda m: m.ready_ram + m.unacked_ram,
            ),
            Metric(
                "queue_messages_ram_bytes",
                GAUGE,
                "Size of ready and unacknowledged messages stored in memory",
                lambda m: m.ram_bytes,
            ),
            Metric("queue_messages_ready_ram", GAUGE, "Ready messages stored in memory", lambda m: m.ready_ram),
            Metric(
                "queue_messages_unacked_ram",
                GAUGE,
                "Unacknowledged messages stored in memory",
                lambda m: m.unacked_ram,
            ),
            Metric("queue_messages_persistent", GAUGE, "Persistent messages", lambda m: m.persistent),
            Metric(
                "queue_messages_persistent_bytes",
                GAUGE,
                "Size in bytes of persistent messages",
                lambda m: m.persistent_bytes,
                is_summed=False,
            ),
            Metric(
                "queue_messages_bytes",
                GAUGE,
                "Size in bytes of ready and unacknowledged messages",
                lambda m: m.ready.octets + m.unacked.octets,
            ),
            Metric("queue_messages_ready_bytes", GAUGE, "Size in bytes of ready messages", lambda m: m.ready.octets),
            Metric(
                "queue_messages_unacked_bytes",
                GAUGE,
                "Size in bytes of all unacknowledged messages",
                lambda m: m.unacked.octets,
            ),
            Metric(
                "queue_messages_paged_out",
                GAUGE,
                "Messages paged out to disk",
                lambda m: m.ready.messages - m.ready_ram,
                until=(4, 3),
            ),
            Metric(
                "queue_messages_paged_out_bytes",
                GAUGE,
                "Size in bytes of messages paged out to disk",
                lambda m: m.ready.scaled(m.ready.messages - m.ready_ram).octets,
                until=(4, 3),
            ),
            Metric(
                "queue_head_message_timestamp",
                GAUGE,
                "Timestamp of the first message in the queue, if any",
                lambda m: m.head_timestamp,
                is_summed=False,
            ),
            Metric(
                "queue_disk_reads_total",
                COUNTER,
                "Total number of times queue read messages from disk",
                lambda m: m.disk_reads,
            ),
            Metric(
                "queue_disk_writes_total",
                COUNTER,
                "Total number of times queue wrote messages to disk",
                lambda m: m.disk_writes,
            ),
        ),
    ),
    Family(
        "queue_metrics",
        ("vhost", "queue"),
        queues,
        (Metric("stream_segments", COUNTER, "Total number of stream segment files", _segments, since=(4, 0)),),
    ),
    Family(
        "stream_consumer_metrics",
        ("vhost", "queue"),
        no_objects,
        tuple(
            Metric("stream_consumer_max_offset_lag", GAUGE, text, lambda one: None, since, until, is_summed=False)
            for text, since, until in (
                ("Current maximum of offset lag of consumers", (4, 0), (4, 1)),
                ("Highest consumer offset lag", (4, 1), (99, 0)),
            )
        ),
    ),
    Family(
        "queue_delivery_metrics",
        ("vhost", "queue"),
        queues,
        (
            Metric(
                "queue_get_ack_total",
                COUNTER,
                "Total number of messages fetched from a queue with basic.get in manual acknowledgement mode",
                lambda q: q.statistics.deliveries.get,
            ),
            Metric(
                "queue_get_total",
                COUNTER,
                "Total number of messages fetched from a queue with basic.get in automatic acknowledgement mode",
                lambda q: q.statistics.deliveries.get_no_ack,
            ),
            Metric(
                "queue_messages_delivered_ack_total",
                COUNTER,
                "Total number of messages delivered from a queue to consumers in manual acknowledgement mode",
                lambda q: q.statistics.deliveries.deliver,
            ),
            Metric(
                "queue_messages_delivered_total",
                COUNTER,
                "Total number of messages delivered from a queue to consumers in automatic acknowledgement mode",
                lambda q: q.statistics.deliveries.deliver_no_ack,
            ),
            Metric(
                "queue_messages_redelivered_total",
                COUNTER,
                "Total number of messages redelivered from a queue to consumers",
                lambda q: q.statistics.deliveries.redeliver,
            ),
            Metric(
                "queue_messages_acked_total",
                COUNTER,
                "Total number of messages acknowledged by consumers on a queue",
                lambda q: q.statistics.deliveries.ack,
            ),
            Metric(
                "queue_get_empty_total",
                COUNTER,
                "Total number of times basic.get operations fetched no message on a queue",
                lambda q: q.statistics.deliveries.get_empty,
            ),
        ),
    ),
)

# Families of single objects, which have no sum.
UNSUMMED_FAMILIES: Final = (
    Family(
        "auth_attempt_detailed_metrics",
        ("remote_address", "username", "protocol"),
        no_objects,
        tuple(
            Metric(
                f"auth_attempts_detailed{name}_total",
                COUNTER,
                f"Total number of {text} attempts with source info",
                lambda one: None,
                since,
                until,
            )
            for name, text, since, until in (
                (name, f"{text}{done}", since, until)
                for done, since, until in (("authorization", (3, 0), (4, 0)), ("authentication", (4, 0), (99, 0)))
                for name, text in (("", ""), ("_succeeded", "successful "), ("_failed", "failed "))
            )
        ),
    ),
    Family(
        "queue_metrics",
        ("vhost", "queue", "queue_type", "membership"),
        _queues_of_types,
        (
            Metric(
                "queue_info",
                GAUGE,
                "A metric with a constant '1' value and labels that provide some queue details",
                lambda queue: 1,
                since=(4, 3),
            ),
        ),
    ),
)
