"""The metrics of the node and of all its clients together.

Counters hold the counts of closed channels and deleted queues as well. Names, families and help are RabbitMQ's
(prometheus_rabbitmq_core_metrics_collector.erl, prometheus_rabbitmq_global_metrics_collector.erl).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.management.metrics.declarations import COUNTER, GAUGE, UNTYPED, Family, Metric, Scope

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker

PROTOCOL: Final = "amqp091"


def _scope(scope: Scope) -> Iterator[tuple[tuple[str, ...], Scope]]:
    yield (), scope


def _protocol(scope: Scope) -> Iterator[tuple[tuple[str, ...], Broker]]:
    yield (PROTOCOL,), scope.broker


def _logins(scope: Scope) -> Iterator[tuple[tuple[str, ...], Any]]:
    for protocol, attempts in scope.broker.logins.attempts.items():
        if attempts.total:  # RabbitMQ shows only protocols that were used
            yield (protocol,), attempts


def _deliveries(scope: Scope) -> Iterator[tuple[tuple[str, ...], Any]]:
    for kind, counts in scope.broker.counters.deliveries.items():
        yield (PROTOCOL, _module(kind)), counts


def _dead_letters(scope: Scope) -> Iterator[tuple[tuple[str, ...], dict[str, int]]]:
    found: dict[tuple[str, ...], dict[str, int]] = {}
    for (kind, strategy, reason), count in scope.broker.counters.dead_lettered.items():
        if kind != "stream" and (kind == "quorum" or reason != "delivery_limit"):
            found.setdefault((_module(kind), strategy), {})[reason] = count
    yield from found.items()


def _module(kind: str) -> str:
    return f"rabbit_{kind}_queue"


def _build(scope: Scope) -> Iterator[tuple[tuple[str, ...], int]]:
    version = scope.broker.profile.version
    yield (version, version, "", "", "RabbitMQ", version), 1


def _identity(scope: Scope) -> Iterator[tuple[tuple[str, ...], int]]:
    broker = scope.broker
    yield (broker.node, broker.cluster_name, broker.cluster_id, scope.endpoint), 1


NODE_FAMILIES: Final = (
    Family(
        "alarm_metrics",
        (),
        _scope,
        (
            Metric(
                "alarms_file_descriptor_limit",
                UNTYPED,
                "is 1 if file descriptor limit alarm is in effect",
                lambda s: int("file_descriptor_limit" in s.broker.alarms),
                until=(4, 3),
            ),
            Metric(
                "alarms_free_disk_space_watermark",
                UNTYPED,
                "is 1 if free disk space watermark alarm is in effect",
                lambda s: int("disk" in s.broker.alarms),
            ),
            Metric(
                "alarms_memory_used_watermark",
                UNTYPED,
                "is 1 if VM memory watermark alarm is in effect",
                lambda s: int("memory" in s.broker.alarms),
            ),
        ),
    ),
    Family(
        "auth_attempt_metrics",
        ("protocol",),
        _logins,
        (
            Metric(
                "auth_attempts_total",
                COUNTER,
                "Total number of authorization attempts",
                lambda a: a.total,
                until=(4, 0),
            ),
            Metric(
                "auth_attempts_total",
                COUNTER,
                "Total number of authentication attempts",
                lambda a: a.total,
                since=(4, 0),
            ),
            Metric(
                "auth_attempts_succeeded_total",
                COUNTER,
                "Total number of successful authentication attempts",
                lambda a: a.succeeded,
            ),
            Metric(
                "auth_attempts_failed_total",
                COUNTER,
                "Total number of failed authentication attempts",
                lambda a: a.failed,
            ),
        ),
    ),
    Family(
        "connection_churn_metrics",
        (),
        _scope,
        tuple(
            Metric(f"{name}_total", COUNTER, f"Total number of {text}", value)
            for name, text, value in (
                ("connections_opened", "connections opened", lambda s: s.broker.counters.connections_created),
                (
                    "connections_closed",
                    "connections closed or terminated",
                    lambda s: s.broker.counters.connections_closed,
                ),
                ("channels_opened", "channels opened", lambda s: s.broker.counters.channels_created),
                ("channels_closed", "channels closed", lambda s: s.broker.counters.channels_closed),
                ("queues_declared", "queues declared", lambda s: s.broker.counters.queues_declared),
                ("queues_created", "queues created", lambda s: s.broker.counters.queues_created),
                ("queues_deleted", "queues deleted", lambda s: s.broker.counters.queues_deleted),
            )
        ),
    ),
    Family(
        "node_coarse_metrics",
        (),
        _scope,
        (
            Metric("process_open_fds", GAUGE, "Open file descriptors", lambda s: s.node.descriptors()[0]),
            Metric(
                "process_open_tcp_sockets",
                GAUGE,
                "Open TCP sockets",
                lambda s: len(s.broker.connections),
                until=(4, 0),
            ),
            Metric("process_resident_memory_bytes", GAUGE, "Memory used in bytes", lambda s: s.node.memory_used()),
            Metric("disk_space_available_bytes", GAUGE, "Disk space available in bytes", lambda s: s.node.disk_free()),
        ),
    ),
    Family(
        "node_metrics",
        (),
        _scope,
        (
            Metric("process_max_fds", GAUGE, "Open file descriptors limit", lambda s: s.node.descriptors()[1]),
            Metric(
                "process_max_tcp_sockets",
                GAUGE,
                "Open TCP sockets limit",
                lambda s: s.node.descriptors()[1],
                until=(4, 0),
            ),
            Metric(
                "resident_memory_limit_bytes",
                GAUGE,
                "Memory high watermark in bytes",
                lambda s: s.node.memory_limit(),
            ),
            Metric(
                "disk_space_available_limit_bytes",
                GAUGE,
                "Free disk space low watermark in bytes",
                lambda s: s.node.disk_free_limit(),
            ),
            Metric(
                "erlang_uptime_seconds",
                GAUGE,
                "Node uptime",
                lambda s: (s.node.real_now() - s.node.started_at_ms) / 1000,
            ),
        ),
    ),
    Family(
        "totals",
        (),
        _scope,
        (
            Metric("connections", GAUGE, "Connections currently open", lambda s: len(s.broker.connections)),
            Metric("channels", GAUGE, "Channels currently open", lambda s: sum(1 for _ in s.broker.channels())),
            Metric("consumers", GAUGE, "Consumers currently connected", lambda s: sum(1 for _ in s.broker.consumers())),
            Metric(
                "queues",
                GAUGE,
                "Queues available",
                lambda s: sum(len(vhost.queues) for vhost in s.broker.vhosts.values()),
            ),
        ),
    ),
)

# Families that RabbitMQ does not offer in /metrics/detailed.
GLOBAL_FAMILIES: Final = (
    Family(
        "cluster",
        (),
        _scope,
        (
            Metric(
                "unreachable_cluster_peers_count",
                GAUGE,
                "Number of peers in the cluster the current node cannot reach.",
                lambda s: 0,
                since=(4, 0),
            ),
        ),
    ),
    Family(
        "global",
        ("protocol",),
        _protocol,
        (
            Metric(
                "global_publishers",
                GAUGE,
                "Current number of publishers",
                lambda b: sum(bool(channel.counts.publishes) for channel in b.channels()),
            ),
            Metric("global_consumers", GAUGE, "Current number of consumers", lambda b: sum(1 for _ in b.consumers())),
            *(
                Metric(f"global_messages_{name}_total", COUNTER, f"Total number of messages {text}", value)
                for name, text, value in (
                    ("received", "received from publishers", lambda b: b.counters.publishes.publish),
                    (
                        "received_confirm",
                        "received from publishers expecting confirmations",
                        lambda b: b.counters.received_confirm,
                    ),
                    ("confirmed", "confirmed to publishers", lambda b: b.counters.publishes.confirm),
                    ("routed", "routed to queues or streams", lambda b: b.counters.publishes.routed),
                    (
                        "unroutable_dropped",
                        "published as non-mandatory into an exchange and dropped as unroutable",
                        lambda b: b.counters.publishes.drop_unroutable,
                    ),
                    (
                        "unroutable_returned",
                        "published as mandatory into an exchange and returned to the publisher as unroutable",
                        lambda b: b.counters.publishes.return_unroutable,
                    ),
                )
            ),
        ),
    ),
    Family(
        "global_deliveries",
        ("protocol", "queue_type"),
        _deliveries,
        tuple(
            Metric(f"global_messages_{name}_total", COUNTER, f"Total number of {text}", value)
            for name, text, value in (
                ("delivered", "messages delivered to consumers", lambda d: d.deliver_get),
                (
                    "delivered_consume_auto_ack",
                    "messages delivered to consumers using basic.consume with automatic acknowledgment",
                    lambda d: d.deliver_no_ack,
                ),
                (
                    "delivered_consume_manual_ack",
                    "messages delivered to consumers using basic.consume with manual acknowledgment",
                    lambda d: d.deliver,
                ),
                (
                    "delivered_get_auto_ack",
                    "messages delivered to consumers using basic.get with automatic acknowledgment",
                    lambda d: d.get_no_ack,
                ),
                (
                    "delivered_get_manual_ack",
                    "messages delivered to consumers using basic.get with manual acknowledgment",
                    lambda d: d.get,
                ),
                ("get_empty", "times basic.get operations fetched no message", lambda d: d.get_empty),
                ("redelivered", "messages redelivered to consumers", lambda d: d.redeliver),
                ("acknowledged", "messages acknowledged by consumers", lambda d: d.ack),
            )
        ),
    ),
    Family(
        "global_dead_letters",
        ("queue_type", "dead_letter_strategy"),
        _dead_letters,
        tuple(
            Metric(
                f"global_messages_dead_lettered_{reason}_total",
                COUNTER,
                f"Total number of messages dead-lettered {text}",
                value,
            )
            for reason, text, value in (
                ("delivery_limit", "due to delivery-limit exceeded", lambda d: d.get("delivery_limit")),
                ("expired", "due to message TTL exceeded", lambda d: d.get("expired")),
                ("maxlen", "due to overflow drop-head or reject-publish-dlx", lambda d: d.get("maxlen")),
                ("rejected", "due to basic.reject or basic.nack", lambda d: d.get("rejected")),
            )
        ),
    ),
)

# Families without RabbitMQ's prefix.
PROCESS_FAMILIES: Final = (
    Family(
        "process",
        (),
        _scope,
        (
            Metric(
                "process_start_time_seconds",
                GAUGE,
                "Start time of the process since unix epoch in seconds.",
                lambda s: s.node.started_at_ms // 1000,
            ),
        ),
    ),
)

# Every answer ends with these, which the panels of RabbitMQ's dashboards join on.
IDENTITY_FAMILIES: Final = (
    Family(
        "build",
        (
            *("rabbitmq_version", "prometheus_plugin_version", "prometheus_client_version", "erlang_version"),
            *("product_name", "product_version"),
        ),
        _build,
        (Metric("build_info", UNTYPED, "RabbitMQ & Erlang/OTP version info", lambda one: one),),
    ),
    Family(
        "identity",
        ("rabbitmq_node", "rabbitmq_cluster", "rabbitmq_cluster_permanent_id", "rabbitmq_endpoint"),
        _identity,
        (Metric("identity_info", UNTYPED, "RabbitMQ node & cluster identity info", lambda one: one),),
    ),
)
