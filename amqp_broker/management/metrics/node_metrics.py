"""The metrics of the node and of all its clients together.

Counters hold the counts of closed channels and deleted queues as well. Names, families and help are RabbitMQ's
(prometheus_rabbitmq_core_metrics_collector.erl, prometheus_rabbitmq_global_metrics_collector.erl).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from amqp_broker.broker.counting.counters import QUEUE_TYPES, VOLATILE, DeliveryCounts, PublishCounts
from amqp_broker.management.metrics.declarations import COUNTER, GAUGE, UNTYPED, Family, Metric, Scope

AMQP_091: Final = "amqp091"
AMQP_10: Final = "amqp10"
# The version of Erlang, as in the HTTP API.
NO_ERLANG: Final = "0"


def _scope(scope: Scope) -> Iterator[tuple[tuple[str, ...], Scope]]:
    yield (), scope


class Clients(NamedTuple):
    """The clients of a protocol, and the counts of their publishes."""

    publishers: int
    consumers: int
    publishes: PublishCounts
    received_confirm: int


def _protocols(scope: Scope) -> Iterator[tuple[tuple[str, ...], Clients]]:
    broker = scope.broker
    publishers = sum(bool(channel.counts.publishes) for channel in broker.channels())
    counters = broker.counters
    yield (AMQP_091,), Clients(publishers, scope.consumer_count, counters.publishes, counters.received_confirm)
    if _has_amqp_10(scope):
        yield (AMQP_10,), Clients(0, 0, PublishCounts(), 0)


def _has_amqp_10(scope: Scope) -> bool:
    """Return whether RabbitMQ counts clients of AMQP 1.0 even if there are none."""
    return scope.broker.profile.release >= (4, 0)


def _logins(scope: Scope) -> Iterator[tuple[tuple[str, ...], Any]]:
    for protocol, attempts in scope.broker.logins.attempts.items():
        if attempts.total:  # RabbitMQ shows only protocols that were used
            yield (protocol,), attempts


def _kinds(scope: Scope) -> tuple[str, ...]:
    """Return the types of queues that RabbitMQ counts."""
    return QUEUE_TYPES if scope.broker.profile.release < (4, 2) else (*QUEUE_TYPES, VOLATILE)


def _deliveries(scope: Scope) -> Iterator[tuple[tuple[str, ...], DeliveryCounts]]:
    for kind in _kinds(scope):
        yield (AMQP_091, _module(kind)), scope.broker.counters.deliveries[kind]
    if _has_amqp_10(scope):
        for kind in _kinds(scope):
            yield (AMQP_10, _module(kind)), DeliveryCounts()


def _dead_letters(scope: Scope) -> Iterator[tuple[tuple[str, ...], dict[str, int]]]:
    found: dict[tuple[str, ...], dict[str, int]] = {}
    kinds = _kinds(scope)
    for (kind, strategy, reason), count in scope.broker.counters.dead_lettered.items():
        if kind in kinds:
            found.setdefault((_module(kind), strategy), {})[reason] = count
    yield from found.items()


def _module(kind: str) -> str:
    return f"rabbit_{kind}_queue"


def _build(scope: Scope) -> Iterator[tuple[tuple[str, ...], int]]:
    version = scope.broker.profile.version
    yield (version, version, NO_ERLANG, NO_ERLANG), 1


def _identity(scope: Scope) -> Iterator[tuple[tuple[str, ...], int]]:
    broker = scope.broker
    yield (broker.node, broker.cluster_name, broker.cluster_id, scope.endpoint), 1


def _zero(name: str, text: str) -> Metric:
    """Return a counter of what this broker lacks; RabbitMQ 4 no longer counts reads and writes, either."""
    return Metric(name, COUNTER, text, lambda s: 0)


NODE_FAMILIES: Final = (
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
            Metric("erlang_processes_used", GAUGE, "Erlang processes used", lambda s: 1),
            _zero("erlang_gc_runs_total", "Total number of Erlang garbage collector runs"),
            _zero(
                "erlang_gc_reclaimed_bytes_total",
                "Total number of bytes of memory reclaimed by Erlang garbage collector",
            ),
            _zero("erlang_scheduler_context_switches_total", "Total number of Erlang scheduler context switches"),
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
            Metric("erlang_processes_limit", GAUGE, "Erlang processes limit", lambda s: 1),
            Metric("erlang_scheduler_run_queue", GAUGE, "Erlang scheduler run queue", lambda s: 0),
            Metric("erlang_net_ticktime_seconds", GAUGE, "Inter-node heartbeat interval", lambda s: 60),
        ),
    ),
    Family(
        "node_persister_metrics",
        (),
        _scope,
        tuple(
            _zero(f"{name}_total", f"Total {text}")
            for name, text in (
                ("io_read_ops", "number of I/O read operations"),
                ("io_read_bytes", "number of I/O bytes read"),
                ("io_write_ops", "number of I/O write operations"),
                ("io_write_bytes", "number of I/O bytes written"),
                ("io_sync_ops", "number of I/O sync operations"),
                ("io_seek_ops", "number of I/O seek operations"),
                ("io_reopen_ops", "number of times files have been reopened"),
                ("io_read_time_seconds", "I/O read time"),
                ("io_write_time_seconds", "I/O write time"),
                ("io_sync_time_seconds", "I/O sync time"),
                ("io_seek_time_seconds", "I/O seek time"),
                ("schema_db_ram_tx", "number of Schema DB memory transactions"),
                ("schema_db_disk_tx", "number of Schema DB disk transactions"),
                ("msg_store_read", "number of Message Store read operations"),
                ("msg_store_write", "number of Message Store write operations"),
                ("queue_index_read_ops", "number of Queue Index read operations"),
                ("queue_index_write_ops", "number of Queue Index write operations"),
            )
        ),
    ),
    Family(
        "totals",
        (),
        _scope,
        (
            Metric("connections", GAUGE, "Connections currently open", lambda s: len(s.broker.connections)),
            Metric("channels", GAUGE, "Channels currently open", lambda s: sum(1 for _ in s.broker.channels())),
            Metric("consumers", GAUGE, "Consumers currently connected", lambda s: s.consumer_count),
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
        "alarms",
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
        _protocols,
        (
            Metric("global_publishers", GAUGE, "Current number of publishers", lambda c: c.publishers),
            Metric("global_consumers", GAUGE, "Current number of consumers", lambda c: c.consumers),
            *(
                Metric(f"global_messages_{name}_total", COUNTER, f"Total number of messages {text}", value)
                for name, text, value in (
                    ("received", "received from publishers", lambda c: c.publishes.publish),
                    (
                        "received_confirm",
                        "received from publishers expecting confirmations",
                        lambda c: c.received_confirm,
                    ),
                    ("confirmed", "confirmed to publishers", lambda c: c.publishes.confirm),
                    ("routed", "routed to queues or streams", lambda c: c.publishes.routed),
                    (
                        "unroutable_dropped",
                        "published as non-mandatory into an exchange and dropped as unroutable",
                        lambda c: c.publishes.drop_unroutable,
                    ),
                    (
                        "unroutable_returned",
                        "published as mandatory into an exchange and returned to the publisher as unroutable",
                        lambda c: c.publishes.return_unroutable,
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
                ("confirmed", "and confirmed by target queues", lambda d: d.get("confirmed")),
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
        (*("rabbitmq_version", "prometheus_plugin_version", "prometheus_client_version", "erlang_version"),),
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
