"""Which metrics there are of queues, channels, connections and exchanges: the one table of them, in families.

Names, families and help are RabbitMQ's (prometheus_rabbitmq_core_metrics_collector.erl). What only Erlang has
(reductions, message store) is not here, nor what would have to look at each message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.channel import Channel
    from amqp_broker.broker.connection import Connection
    from amqp_broker.broker.queue import Queue
    from amqp_broker.broker.vhost import VHost

GAUGE: Final = "gauge"
COUNTER: Final = "counter"
UNTYPED: Final = "untyped"


class Metric(NamedTuple):
    """A number that each object of a family has."""

    name: str
    kind: str
    help: str
    value: Callable[[Any], float | None]


class Family(NamedTuple):
    """Metrics of the same objects. `objects` gives them with their labels, those of some vhosts or (None) of all."""

    name: str
    objects: Callable[[Broker, Collection[str] | None], Iterable[tuple[str, Any]]]
    metrics: tuple[Metric, ...]


def labels(**values: str) -> str:
    """Labels as they stand between braces."""
    return ",".join(f'{name}="{escaped(value)}"' for name, value in values.items())


def escaped(value: str) -> str:
    if value.isascii() and value.isprintable() and '"' not in value and "\\" not in value:
        return value
    text = value.encode("utf-8", "replace").decode()
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


# What objects there are


def _vhosts(broker: Broker, names: Collection[str] | None) -> Iterator[VHost]:
    return (vhost for vhost in broker.vhosts.values() if names is None or vhost.name in names)


def _queues(broker: Broker, names: Collection[str] | None) -> Iterator[tuple[str, Queue]]:
    for vhost in _vhosts(broker, names):
        start = labels(vhost=vhost.name)
        for queue in vhost.queues.values():
            yield f'{start},queue="{escaped(queue.name)}"', queue


def _running(broker: Broker, names: Collection[str] | None) -> Iterator[tuple[str, VHost]]:
    for vhost in _vhosts(broker, names):
        yield labels(vhost=vhost.name), vhost


def _exchanges(broker: Broker, names: Collection[str] | None) -> Iterator[tuple[str, Any]]:
    for vhost in _vhosts(broker, names):
        for exchange in vhost.exchanges.values():
            if exchange.name and not exchange.is_internal:  # RabbitMQ tells of no others
                yield labels(vhost=vhost.name, exchange=exchange.name, type=exchange.type), exchange


def _channels(broker: Broker, names: Collection[str] | None) -> Iterator[tuple[str, Channel]]:
    for channel in broker.channels():
        if names is None or channel.vhost.name in names:
            yield labels(channel=channel.name), channel


def _connections(broker: Broker, names: Collection[str] | None) -> Iterator[tuple[str, Connection]]:
    for connection in broker.connections:
        if names is None or (connection.vhost is not None and connection.vhost.name in names):
            # RabbitMQ calls the label so, for connections too.
            yield labels(channel=connection.name), connection


def _published_to(broker: Broker, names: Collection[str] | None) -> Iterator[tuple[str, Any]]:
    for text, channel in _channels(broker, names):
        for exchange, counts in channel.counts.by_exchange():
            yield f"{text},{labels(vhost=exchange.vhost, exchange=exchange.name)}", counts


def _delivered_from(broker: Broker, names: Collection[str] | None) -> Iterator[tuple[str, Any]]:
    for text, channel in _channels(broker, names):
        for queue, counts in channel.counts.by_queue():
            yield f"{text},{labels(vhost=queue.vhost.name, queue=queue.name)}", counts


def _routed_to(broker: Broker, names: Collection[str] | None) -> Iterator[tuple[str, int]]:
    for vhost in _vhosts(broker, names):
        for queue in vhost.queues.values():
            for exchange, count in queue.published_from.items():
                told = labels(queue_vhost=vhost.name, queue=queue.name, exchange_vhost=vhost.name)
                yield f'{told},exchange="{escaped(exchange.name)}"', count


def _itself(value: float) -> float:
    return value


FAMILIES: Final = (
    Family(
        "queue_coarse_metrics",
        _queues,
        (
            Metric(
                "queue_messages_ready", GAUGE, "Messages ready to be delivered to consumers", lambda q: q.ready_count
            ),
            Metric(
                "queue_messages_unacked",
                GAUGE,
                "Messages delivered to consumers but not yet acknowledged",
                lambda q: q.unacked_count,
            ),
            Metric(
                "queue_messages",
                GAUGE,
                "Sum of ready and unacknowledged messages - total queue depth",
                lambda q: q.ready_count + q.unacked_count,
            ),
        ),
    ),
    Family(
        "queue_consumer_count",
        _queues,
        (Metric("queue_consumers", GAUGE, "Consumers on a queue", lambda q: len(q.consumers)),),
    ),
    Family(
        "queue_metrics",
        _queues,
        (
            Metric("queue_consumer_capacity", GAUGE, "Consumer capacity", lambda q: q.consumer_capacity),
            Metric("queue_consumer_utilisation", GAUGE, "Same as consumer capacity", lambda q: q.consumer_capacity),
        ),
    ),
    Family(
        "queue_delivery_metrics",
        _queues,
        (
            Metric(
                "queue_get_ack_total",
                COUNTER,
                "Total number of messages fetched from a queue with basic.get in manual acknowledgement mode",
                lambda q: q.deliveries.get,
            ),
            Metric(
                "queue_get_total",
                COUNTER,
                "Total number of messages fetched from a queue with basic.get in automatic acknowledgement mode",
                lambda q: q.deliveries.get_no_ack,
            ),
            Metric(
                "queue_messages_delivered_ack_total",
                COUNTER,
                "Total number of messages delivered from a queue to consumers in manual acknowledgement mode",
                lambda q: q.deliveries.deliver,
            ),
            Metric(
                "queue_messages_delivered_total",
                COUNTER,
                "Total number of messages delivered from a queue to consumers in automatic acknowledgement mode",
                lambda q: q.deliveries.deliver_no_ack,
            ),
            Metric(
                "queue_messages_redelivered_total",
                COUNTER,
                "Total number of messages redelivered from a queue to consumers",
                lambda q: q.deliveries.redeliver,
            ),
            Metric(
                "queue_messages_acked_total",
                COUNTER,
                "Total number of messages acknowledged by consumers on a queue",
                lambda q: q.deliveries.ack,
            ),
            Metric(
                "queue_get_empty_total",
                COUNTER,
                "Total number of times basic.get operations fetched no message on a queue",
                lambda q: q.deliveries.get_empty,
            ),
        ),
    ),
    Family(
        "channel_metrics",
        _channels,
        (
            Metric("channel_consumers", GAUGE, "Consumers on a channel", lambda c: len(c.consumers)),
            Metric(
                "channel_messages_unacked",
                GAUGE,
                "Delivered but not yet acknowledged messages",
                lambda c: c.messages_unacknowledged,
            ),
            Metric(
                "channel_messages_unconfirmed",
                GAUGE,
                "Published but not yet confirmed messages",
                lambda c: c.messages_unconfirmed,
            ),
            Metric(
                "channel_messages_uncommitted",
                GAUGE,
                "Messages received in a transaction but not yet committed",
                lambda c: c.messages_uncommitted,
            ),
            Metric(
                "channel_acks_uncommitted",
                GAUGE,
                "Message acknowledgements in a transaction not yet committed",
                lambda c: c.acks_uncommitted,
            ),
            Metric(
                "consumer_prefetch",
                GAUGE,
                "Limit of unacknowledged messages for each consumer",
                lambda c: c.prefetch,
            ),
            Metric(
                "channel_prefetch",
                GAUGE,
                "Total limit of unacknowledged messages for all consumers on a channel",
                lambda c: c.prefetch_total,
            ),
        ),
    ),
    Family(
        "channel_exchange_metrics",
        _published_to,
        (
            Metric(
                "channel_messages_published_total",
                COUNTER,
                "Total number of messages published into an exchange on a channel",
                lambda p: p.publish,
            ),
            Metric(
                "channel_messages_confirmed_total",
                COUNTER,
                "Total number of messages published into an exchange and confirmed on the channel",
                lambda p: p.confirm,
            ),
            Metric(
                "channel_messages_unroutable_returned_total",
                COUNTER,
                "Total number of messages published as mandatory into an exchange and returned to the publisher as "
                "unroutable",
                lambda p: p.return_unroutable,
            ),
            Metric(
                "channel_messages_unroutable_dropped_total",
                COUNTER,
                "Total number of messages published as non-mandatory into an exchange and dropped as unroutable",
                lambda p: p.drop_unroutable,
            ),
        ),
    ),
    Family(
        "channel_queue_metrics",
        _delivered_from,
        (
            Metric(
                "channel_get_ack_total",
                COUNTER,
                "Total number of messages fetched with basic.get in manual acknowledgement mode",
                lambda d: d.get,
            ),
            Metric(
                "channel_get_total",
                COUNTER,
                "Total number of messages fetched with basic.get in automatic acknowledgement mode",
                lambda d: d.get_no_ack,
            ),
            Metric(
                "channel_messages_delivered_ack_total",
                COUNTER,
                "Total number of messages delivered to consumers in manual acknowledgement mode",
                lambda d: d.deliver,
            ),
            Metric(
                "channel_messages_delivered_total",
                COUNTER,
                "Total number of messages delivered to consumers in automatic acknowledgement mode",
                lambda d: d.deliver_no_ack,
            ),
            Metric(
                "channel_messages_redelivered_total",
                COUNTER,
                "Total number of messages redelivered to consumers",
                lambda d: d.redeliver,
            ),
            Metric(
                "channel_messages_acked_total",
                COUNTER,
                "Total number of messages acknowledged by consumers",
                lambda d: d.ack,
            ),
            Metric(
                "channel_get_empty_total",
                COUNTER,
                "Total number of times basic.get operations fetched no message",
                lambda d: d.get_empty,
            ),
        ),
    ),
    Family(
        "channel_queue_exchange_metrics",
        _routed_to,
        (Metric("queue_messages_published_total", COUNTER, "Total number of messages published to queues", _itself),),
    ),
    Family(
        "connection_coarse_metrics",
        _connections,
        (
            Metric(
                "connection_incoming_bytes_total",
                COUNTER,
                "Total number of bytes received on a connection",
                lambda c: c.received_bytes,
            ),
            Metric(
                "connection_outgoing_bytes_total",
                COUNTER,
                "Total number of bytes sent on a connection",
                lambda c: c.sent_bytes,
            ),
        ),
    ),
    Family(
        "connection_metrics",
        _connections,
        (
            Metric(
                "connection_incoming_packets_total",
                COUNTER,
                "Total number of packets received on a connection",
                lambda c: c.received_count,
            ),
            Metric(
                "connection_outgoing_packets_total",
                COUNTER,
                "Total number of packets sent on a connection",
                lambda c: c.sent_count,
            ),
            Metric("connection_channels", GAUGE, "Channels on a connection", lambda c: len(c.channels)),
        ),
    ),
)

CLUSTER_FAMILIES: Final = (
    Family(
        "vhost_status",
        _running,
        (Metric("vhost_status", GAUGE, "Whether a given vhost is running", lambda vhost: 1),),
    ),
    Family(
        "exchange_bindings",
        _exchanges,
        (
            Metric(
                "exchange_bindings",
                GAUGE,
                "Number of bindings for an exchange. This value is cluster-wide.",
                lambda x: len(x.bindings),
            ),
        ),
    ),
    Family(
        "exchange_names",
        _exchanges,
        (
            Metric(
                "exchange_name",
                GAUGE,
                "Enumerates exchanges without any additional info. This value is cluster-wide. "
                "A cheaper alternative to `exchange_bindings`",
                lambda x: 1,
            ),
        ),
    ),
)
