"""The metrics of queues, channels, connections and exchanges.

Names, families and help are RabbitMQ's (prometheus_rabbitmq_core_metrics_collector.erl).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.management.metrics.declarations import COUNTER, GAUGE, Family, Metric, Scope
from amqp_broker.management.metrics.queue_metrics import QUEUE_FAMILIES, Labels, queues, selected

if TYPE_CHECKING:
    from amqp_broker.broker.clients.client_channel import ClientChannel
    from amqp_broker.broker.clients.client_connection import Connection
    from amqp_broker.broker.vhost import VHost


def _published_exchanges(scope: Scope) -> Iterator[tuple[Labels, Any]]:
    for vhost in selected(scope):
        for exchange in list(vhost.exchanges.values()):
            if exchange.publishes.publish:
                yield (vhost.name, exchange.name), exchange.publishes


def _queue_routes(scope: Scope) -> Iterator[tuple[Labels, int] | None]:
    for vhost in selected(scope):
        for queue in list(vhost.queues.values()):
            for exchange, count in list(queue.statistics.published_from.items()):
                yield (vhost.name, exchange.name, queue.name), count
            yield None


def _vhosts(scope: Scope) -> Iterator[tuple[Labels, VHost]]:
    for vhost in selected(scope):
        yield (vhost.name,), vhost


def _exchanges(scope: Scope) -> Iterator[tuple[Labels, Any]]:
    for vhost in selected(scope):
        for exchange in list(vhost.exchanges.values()):
            if exchange.name and not exchange.is_internal:  # RabbitMQ shows no others
                yield (vhost.name, exchange.name, exchange.type), exchange


def _channels(scope: Scope) -> Iterator[tuple[Labels, ClientChannel]]:
    names = scope.vhosts
    for channel in list(scope.broker.channels()):
        if names is None or channel.vhost.name in names:
            yield (channel.name,), channel


def _connections(scope: Scope) -> Iterator[tuple[Labels, Connection]]:
    names = scope.vhosts
    for connection in list(scope.broker.connections):
        if names is None or (connection.vhost is not None and connection.vhost.name in names):
            yield (connection.name,), connection


def _publishes(scope: Scope) -> Iterator[tuple[Labels, Any]]:
    for (name,), channel in _channels(scope):
        for exchange, counts in list(channel.counts.by_exchange()):
            yield (name, exchange.vhost, exchange.name), counts


def _deliveries(scope: Scope) -> Iterator[tuple[Labels, Any]]:
    for (name,), channel in _channels(scope):
        for queue, counts in list(channel.counts.by_queue()):
            yield (name, queue.vhost.name, queue.name), counts


def _routes(scope: Scope) -> Iterator[tuple[Labels, int] | None]:
    for vhost in selected(scope):
        for queue in list(vhost.queues.values()):
            for exchange, count in list(queue.statistics.published_from.items()):
                yield (vhost.name, queue.name, vhost.name, exchange.name), count
            yield None


def _reductions(name: str) -> Metric:
    """Return the steps of the Erlang processes of queues, channels or connections: there are none."""
    return Metric(
        f"{name}_process_reductions_total", COUNTER, f"Total number of {name} process reductions", lambda one: 0
    )


OBJECT_FAMILIES: Final = (
    Family(
        "queue_coarse_metrics",
        ("vhost", "queue"),
        queues,
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
                lambda q: q.message_count,
            ),
            _reductions("queue"),
        ),
    ),
    Family(
        "queue_consumer_count",
        ("vhost", "queue"),
        queues,
        (Metric("queue_consumers", GAUGE, "Consumers on a queue", lambda q: q.reported_consumer_count),),
    ),
    Family(
        "queue_metrics",
        ("vhost", "queue"),
        queues,
        (
            Metric(
                "queue_consumer_capacity",
                GAUGE,
                "Consumer capacity",
                lambda q: q.rotation.capacity,
                is_summed=False,
            ),
            Metric("queue_consumer_utilisation", GAUGE, "Same as consumer capacity", lambda q: q.rotation.capacity),
        ),
    ),
    *QUEUE_FAMILIES,
    Family(
        "channel_metrics",
        ("channel",),
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
                until=(4, 0),
            ),
            Metric(
                "channel_prefetch",
                GAUGE,
                "Deprecated and will be removed in a future version",
                lambda c: None,
                since=(4, 0),
            ),
        ),
    ),
    Family("channel_process_metrics", ("channel",), _channels, (_reductions("channel"),)),
    Family(
        "channel_exchange_metrics",
        ("channel", "vhost", "exchange"),
        _publishes,
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
        ("channel", "vhost", "queue"),
        _deliveries,
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
        ("queue_vhost", "queue", "exchange_vhost", "exchange"),
        _routes,
        (
            Metric(
                "queue_messages_published_total",
                COUNTER,
                "Total number of messages published to queues",
                lambda count: count,
                until=(4, 0),
            ),
            Metric(
                "queue_messages_published_total",
                COUNTER,
                "Total number of messages published into a queue through an exchange on a channel",
                lambda count: count,
                since=(4, 0),
            ),
        ),
    ),
    Family(
        "exchange_metrics",
        ("vhost", "exchange"),
        _published_exchanges,
        tuple(
            Metric(f"exchange_messages_{name}_total", COUNTER, f"Total number of messages {text}", value, since=(4, 0))
            for name, text, value in (
                ("published", "published into an exchange", lambda p: p.publish),
                ("confirmed", "published into an exchange and confirmed", lambda p: p.confirm),
                (
                    "unroutable_returned",
                    "published as mandatory into an exchange and returned to the publisher as unroutable",
                    lambda p: p.return_unroutable,
                ),
                (
                    "unroutable_dropped",
                    "published as non-mandatory into an exchange and dropped as unroutable",
                    lambda p: p.drop_unroutable,
                ),
            )
        ),
    ),
    Family(
        "queue_exchange_metrics",
        ("vhost", "exchange", "queue"),
        _queue_routes,
        (
            Metric(
                "queue_exchange_messages_published_total",
                COUNTER,
                "Total number of messages published into a queue through an exchange",
                lambda count: count,
                since=(4, 0),
            ),
        ),
    ),
    # RabbitMQ calls the label of a connection "channel", too.
    Family(
        "connection_coarse_metrics",
        ("channel",),
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
            _reductions("connection"),
        ),
    ),
    Family(
        "connection_metrics",
        ("channel",),
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
            Metric(
                "connection_pending_packets",
                GAUGE,
                "Number of packets waiting to be sent on a connection",
                lambda c: 0,
            ),
            Metric("connection_channels", GAUGE, "Channels on a connection", lambda c: len(c.channels)),
        ),
    ),
)

# Families that all nodes of a cluster have alike; they are only in answers to requests for them.
CLUSTER_FAMILIES: Final = (
    Family(
        "vhost_status",
        ("vhost",),
        _vhosts,
        (Metric("vhost_status", GAUGE, "Whether a given vhost is running", lambda vhost: 1),),
    ),
    Family(
        "exchange_bindings",
        ("vhost", "exchange", "type"),
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
        ("vhost", "exchange", "type"),
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
