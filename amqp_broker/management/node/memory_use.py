"""The memory of the node by RabbitMQ's categories.

Messages are sampled, so that a queue costs the same however long it is; for other objects there is a size of each. The
program has the memory that the process had at its start, and `other_proc` the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Final

from amqp_broker.amqp.message import ENTRY_BYTES
from amqp_broker.broker.queues.sizes import NOTHING, memory_bytes, ready_sizes
from amqp_broker.broker.scheduling.portions import Steps

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.clients.client_channel import ClientChannel
    from amqp_broker.broker.counting.history import History
    from amqp_broker.broker.queues.queue import Queue

# Octets of an object, as measured (docs/performance.md).
CONNECTION_BYTES: Final = 7168
CHANNEL_BYTES: Final = 3328
EXCHANGE_BYTES: Final = 1024
BINDING_BYTES: Final = 928
# Messages of a queue, or of a channel, whose sizes are looked at.
SAMPLED: Final = 10
# Objects that are looked at in one step.
STEP: Final = 50
# The categories by the type of a queue.
OF_QUEUES: Final = {"quorum": "quorum_queue_procs", "stream": "stream_queue_procs"}


def memory_use(broker: Broker, used: int, at_start: int) -> Steps[dict[str, int]]:
    """Return the octets of each category that has some; their sum is `used`."""
    found = Counter[str]()
    looked_at = 0
    for vhost in list(broker.vhosts.values()):
        for queue in list(vhost.queues.values()):
            found[OF_QUEUES.get(queue.type, "queue_procs")] += _queue_bytes(queue)
            found["mgmt_db"] += _history_bytes(queue.statistics.history)
            looked_at += 1
            if looked_at % STEP == 0:
                yield
        for exchange in list(vhost.exchanges.values()):
            found["metadata_store"] += EXCHANGE_BYTES + len(exchange.bindings) * BINDING_BYTES
            found["mgmt_db"] += _history_bytes(exchange.history)
            looked_at += 1
            if looked_at % STEP == 0:
                yield
    for connection in list(broker.connections):
        found["connection_readers"] += CONNECTION_BYTES
        found["mgmt_db"] += _history_bytes(connection.history)
        for channel in list(connection.channels.values()):
            found["connection_channels"] += CHANNEL_BYTES + _unacked_bytes(channel)
            looked_at += 1
            if looked_at % STEP == 0:
                yield
    found["plugins"] = sum(log.held_bytes for log in broker.event_logs)
    found["code"] = min(at_start, used)
    return _within(+found, used)


def _within(found: Counter[str], used: int) -> dict[str, int]:
    """Return the categories with the rest. Estimates that are too large together are reduced."""
    room, estimated = used - found["code"], found.total() - found["code"]
    if estimated > room:
        found = Counter({name: count if name == "code" else count * room // estimated for name, count in found.items()})
    return {**found, "other_proc": used - found.total()}


def _queue_bytes(queue: Queue) -> int:
    # The messages of a stream are on the disk.
    return memory_bytes(queue, NOTHING if queue.type == "stream" else ready_sizes(queue, SAMPLED))


def _unacked_bytes(channel: ClientChannel) -> int:
    deliveries = channel.unacked.deliveries
    return _estimated((delivery[3] for delivery in deliveries.values()), len(deliveries))


def _estimated(messages: Iterable[Message], count: int) -> int:
    """Return the octets of `count` messages by the first ones."""
    sizes = [ENTRY_BYTES + len(message.content) for message in islice(messages, SAMPLED)]
    return count * sum(sizes) // len(sizes) if sizes else 0


def _history_bytes(history: History | None) -> int:
    return 0 if history is None else history.bytes
