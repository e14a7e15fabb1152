"""Metrics for Prometheus, by RabbitMQ's names and in its three forms: sums, one line per object, chosen families.

The text is written here rather than by a library: a library would make an object for each number of each queue, which
takes a hundred milliseconds for two thousand queues, in which the broker does nothing else.
Source: RabbitMQ, "Monitoring with Prometheus"; prometheus_rabbitmq_core_metrics_collector.erl.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from amqp_broker.management.access import ANYBODY
from amqp_broker.management.metric_families import CLUSTER_FAMILIES, COUNTER, FAMILIES, GAUGE, UNTYPED, Family, labels
from amqp_broker.management.request import Answer, Request, Resource

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
PREFIX: Final = "rabbitmq_"
DETAILED_PREFIX: Final = "rabbitmq_detailed_"
# Of what all nodes of a cluster would tell alike; nobody gets it who does not ask for it by family.
CLUSTER_PREFIX: Final = "rabbitmq_cluster_"
PROTOCOL: Final = 'protocol="amqp091"'


class Sample(NamedTuple):
    """One metric of the node, with its values by labels."""

    name: str
    kind: str
    help: str
    values: Iterable[tuple[str, float]]


# The text


def _head(name: str, kind: str, help_text: str) -> str:
    return f"# TYPE {name} {kind}\n# HELP {name} {help_text}"


def _number(value: float | None) -> str:
    return "NaN" if value is None else str(value)


def _lines(prefix: str, sample: Sample) -> Iterator[str]:
    name = prefix + sample.name
    yield _head(name, sample.kind, sample.help)
    for text, value in sample.values:
        yield f"{name}{{{text}}} {_number(value)}" if text else f"{name} {_number(value)}"


def summed(request: Request) -> str:
    """GET /metrics: all families, each number summed up over its objects."""
    request.broker.counters.collect()
    lines = [line for sample in _node(request) for line in _lines(PREFIX, sample)]
    for family in FAMILIES:
        objects = [subject for _, subject in family.objects(request.broker, None)]
        for metric in family.metrics:
            values = [value for subject in objects if (value := metric.value(subject)) is not None]
            lines += _lines(PREFIX, Sample(metric.name, metric.kind, metric.help, [("", sum(values))]))
    lines += [line for sample in _identity(request, "aggregated") for line in _lines(PREFIX, sample)]
    return _text(lines)


def per_object(request: Request) -> str:
    """GET /metrics/per-object: all families, each number for itself."""
    request.broker.counters.collect()
    lines = [line for sample in _node(request) for line in _lines(PREFIX, sample)]
    for family in FAMILIES:
        lines += _family(PREFIX, family, request.broker, None)
    lines += [line for sample in _identity(request, "per-object") for line in _lines(PREFIX, sample)]
    return _text(lines)


def detailed(request: Request, families: Collection[str], vhosts: Collection[str] | None) -> str:
    """GET /metrics/detailed?family=…&vhost=…: these families, each number for itself; without any, who we are."""
    request.broker.counters.collect()
    lines: list[str] = []
    for family in FAMILIES:
        if family.name in families:
            lines += _family(DETAILED_PREFIX, family, request.broker, vhosts)
    for name, samples in NODE_FAMILIES.items():
        if name in families:
            lines += [line for sample in samples(request) for line in _lines(DETAILED_PREFIX, sample)]
    for family in CLUSTER_FAMILIES:
        if family.name in families:
            lines += _family(CLUSTER_PREFIX, family, request.broker, vhosts)
    lines += [line for sample in _identity(request, "detailed") for line in _lines(PREFIX, sample)]
    return _text(lines)


def _family(prefix: str, family: Family, broker: Broker, vhosts: Collection[str] | None) -> Iterator[str]:
    objects = list(family.objects(broker, vhosts))
    for metric in family.metrics:
        if objects:
            values = ((text, value) for text, subject in objects if (value := metric.value(subject)) is not None)
            yield from _lines(prefix, Sample(metric.name, metric.kind, metric.help, values))


def _text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


# The node


def _node(request: Request) -> Iterator[Sample]:
    for samples in NODE_FAMILIES.values():
        yield from samples(request)
    yield from _global(request.broker)


def _alarms(request: Request) -> Iterator[Sample]:
    for name, resource, title in (
        ("file_descriptor_limit", "file_descriptor_limit", "file descriptor limit alarm"),
        ("free_disk_space_watermark", "disk", "free disk space watermark alarm"),
        ("memory_used_watermark", "memory", "VM memory watermark alarm"),
    ):
        value = int(resource in request.broker.alarms)
        yield Sample(f"alarms_{name}", UNTYPED, f"is 1 if {title} is in effect", [("", value)])


def _churn(request: Request) -> Iterator[Sample]:
    counters = request.broker.counters
    for name, text, value in (
        ("connections_opened", "connections opened", counters.connections_created),
        ("connections_closed", "connections closed or terminated", counters.connections_closed),
        ("channels_opened", "channels opened", counters.channels_created),
        ("channels_closed", "channels closed", counters.channels_closed),
        ("queues_declared", "queues declared", counters.queues_declared),
        ("queues_created", "queues created", counters.queues_created),
        ("queues_deleted", "queues deleted", counters.queues_deleted),
    ):
        yield Sample(f"{name}_total", COUNTER, f"Total number of {text}", [("", value)])


def _used(request: Request) -> Iterator[Sample]:
    node = request.node
    for name, text, value in (
        ("process_open_fds", "Open file descriptors", node.descriptors()[0]),
        ("process_open_tcp_sockets", "Open TCP sockets", len(request.broker.connections)),
        ("process_resident_memory_bytes", "Memory used in bytes", node.memory_used()),
        ("disk_space_available_bytes", "Disk space available in bytes", node.disk_free()),
    ):
        yield Sample(name, GAUGE, text, [("", value)])


def _limits(request: Request) -> Iterator[Sample]:
    node = request.node
    limit = node.descriptors()[1]
    uptime_s = (node.real_now() - node.started_at_ms) / 1000
    for name, text, value in (
        ("process_max_fds", "Open file descriptors limit", limit),
        ("process_max_tcp_sockets", "Open TCP sockets limit", limit),
        ("resident_memory_limit_bytes", "Memory high watermark in bytes", node.memory_limit()),
        ("disk_space_available_limit_bytes", "Free disk space low watermark in bytes", node.disk_free_limit()),
        ("erlang_uptime_seconds", "Node uptime", uptime_s),
    ):
        yield Sample(name, GAUGE, text, [("", value)])


def _totals(request: Request) -> Iterator[Sample]:
    broker = request.broker
    for name, text, value in (
        ("connections", "Connections currently open", len(broker.connections)),
        ("channels", "Channels currently open", sum(1 for _ in broker.channels())),
        ("consumers", "Consumers currently connected", sum(1 for _ in broker.consumers())),
        ("queues", "Queues available", sum(len(vhost.queues) for vhost in broker.vhosts.values())),
    ):
        yield Sample(name, GAUGE, text, [("", value)])


def _logins(request: Request) -> Iterator[Sample]:
    # RabbitMQ shows no protocol before somebody has used it.
    used = [(labels(protocol=name), told) for name, told in request.broker.logins.attempts.items() if told.total]
    for name, text, attribute in (
        ("auth_attempts", "authorization attempts", "total"),
        ("auth_attempts_succeeded", "successful authentication attempts", "succeeded"),
        ("auth_attempts_failed", "failed authentication attempts", "failed"),
    ):
        values = [(protocol, getattr(told, attribute)) for protocol, told in used]
        yield Sample(f"{name}_total", COUNTER, f"Total number of {text}", values)


NODE_FAMILIES: Final[dict[str, Callable[[Request], Iterator[Sample]]]] = {
    "alarm_metrics": _alarms,
    "auth_attempt_metrics": _logins,
    "connection_churn_metrics": _churn,
    "node_coarse_metrics": _used,
    "node_metrics": _limits,
    "totals": _totals,
}


def _global(broker: Broker) -> Iterator[Sample]:
    """The counters of the node, which hold what closed channels and deleted queues have counted, too."""
    counters, publishes = broker.counters, broker.counters.publishes
    publishers = sum(bool(channel.counts.publishes) for channel in broker.channels())
    consumers = sum(1 for _ in broker.consumers())
    yield Sample("global_publishers", GAUGE, "Current number of publishers", [(PROTOCOL, publishers)])
    yield Sample("global_consumers", GAUGE, "Current number of consumers", [(PROTOCOL, consumers)])
    for name, text, value in (
        ("received", "received from publishers", publishes.publish),
        ("received_confirm", "received from publishers expecting confirmations", counters.received_confirm),
        ("confirmed", "confirmed to publishers", publishes.confirm),
        ("routed", "routed to queues or streams", publishes.routed),
        (
            "unroutable_dropped",
            "published as non-mandatory into an exchange and dropped as unroutable",
            publishes.drop_unroutable,
        ),
        (
            "unroutable_returned",
            "published as mandatory into an exchange and returned to the publisher as unroutable",
            publishes.return_unroutable,
        ),
    ):
        yield Sample(f"global_messages_{name}_total", COUNTER, f"Total number of messages {text}", [(PROTOCOL, value)])
    for name, attribute, text in (
        ("delivered", "deliver_get", "messages delivered to consumers"),
        (
            "delivered_consume_auto_ack",
            "deliver_no_ack",
            "messages delivered to consumers using basic.consume with automatic acknowledgment",
        ),
        (
            "delivered_consume_manual_ack",
            "deliver",
            "messages delivered to consumers using basic.consume with manual acknowledgment",
        ),
        (
            "delivered_get_auto_ack",
            "get_no_ack",
            "messages delivered to consumers using basic.get with automatic acknowledgment",
        ),
        (
            "delivered_get_manual_ack",
            "get",
            "messages delivered to consumers using basic.get with manual acknowledgment",
        ),
        ("get_empty", "get_empty", "times basic.get operations fetched no message"),
        ("redelivered", "redeliver", "messages redelivered to consumers"),
        ("acknowledged", "ack", "messages acknowledged by consumers"),
    ):
        values = [
            (f'{PROTOCOL},queue_type="{_module(kind)}"', getattr(counts, attribute))
            for kind, counts in counters.deliveries.items()
        ]
        yield Sample(f"global_messages_{name}_total", COUNTER, f"Total number of {text}", values)
    yield from _dead_lettered(broker)


def _dead_lettered(broker: Broker) -> Iterator[Sample]:
    for reason, text in (
        ("delivery_limit", "due to delivery-limit exceeded"),
        ("expired", "due to message TTL exceeded"),
        ("maxlen", "due to overflow drop-head or reject-publish-dlx"),
        ("rejected", "due to basic.reject or basic.nack"),
    ):
        values = [
            (labels(queue_type=_module(kind), dead_letter_strategy=strategy), count)
            for (kind, strategy, of), count in broker.counters.dead_lettered.items()
            if of == reason and kind != "stream" and (kind == "quorum" or reason != "delivery_limit")
        ]
        name = f"global_messages_dead_lettered_{reason}_total"
        yield Sample(name, COUNTER, f"Total number of messages dead-lettered {text}", values)


def _module(kind: str) -> str:
    return f"rabbit_{kind}_queue"


def _identity(request: Request, endpoint: str) -> Iterator[Sample]:
    """Who we are: all panels of the official dashboards join on it."""
    broker = request.broker
    version = broker.profile.version
    build = labels(
        rabbitmq_version=version,
        prometheus_plugin_version=version,
        prometheus_client_version="",
        erlang_version="",
        product_name="RabbitMQ",
        product_version=version,
    )
    identity = labels(
        rabbitmq_node=broker.node,
        rabbitmq_cluster=broker.cluster_name,
        rabbitmq_cluster_permanent_id=broker.cluster_id,
        rabbitmq_endpoint=endpoint,
    )
    yield Sample("build_info", UNTYPED, "RabbitMQ & Erlang/OTP version info", [(build, 1)])
    yield Sample("identity_info", UNTYPED, "RabbitMQ node & cluster identity info", [(identity, 1)])


# HTTP


def _answer(text: str) -> Answer:
    return Answer(200, text.encode(), {"Content-Type": CONTENT_TYPE})


def get_summed(request: Request) -> Answer:
    return _answer(summed(request))


def get_per_object(request: Request) -> Answer:
    return _answer(per_object(request))


def get_detailed(request: Request) -> Answer:
    vhosts = request.all_of("vhost")
    return _answer(detailed(request, request.all_of("family"), vhosts or None))


def resources(is_per_object: bool) -> tuple[Resource, ...]:
    """What Prometheus's listener serves; with `is_per_object` /metrics is what /metrics/per-object is, too."""
    return (
        Resource("/metrics", ANYBODY, {"GET": get_per_object if is_per_object else get_summed}),
        Resource("/metrics/per-object", ANYBODY, {"GET": get_per_object}),
        Resource("/metrics/detailed", ANYBODY, {"GET": get_detailed}),
    )
