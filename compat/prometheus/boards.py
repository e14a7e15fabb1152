"""The panels of RabbitMQ's own Grafana boards, with the metrics that their queries select.

Each query joins its metrics on `instance` and `job`, which Prometheus adds, with `rabbitmq_identity_info`, which has
the labels `rabbitmq_cluster` and `rabbitmq_node`. Sources:

- RabbitMQ-Overview, 10991 on grafana.com: the revision for RabbitMQ 4.1 and later as dNation's kubernetes-monitoring
  follows it, and panels that read other metrics in deps/rabbitmq_prometheus/docker/grafana/dashboards of
  rabbitmq/rabbitmq-server at 6ab75c72 and 008e4584 (2021).
- RabbitMQ-Quorum-Queues-Raft (11340) and RabbitMQ-Stream (14798) in the same folder at 1e5708b0 and 0a054bf5.
- RabbitMQ-Queue in observability/grafana/dashboards of rabbitmq/cluster-operator at 24465753.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

# The labels that every panel takes from `rabbitmq_identity_info`.
JOINED: Final = ("rabbitmq_cluster", "rabbitmq_node")
IDENTITY: Final = "rabbitmq_identity_info"
# The labels of other metrics that a panel shows.
SHOWN: Final = {"rabbitmq_build_info": ("rabbitmq_version", "erlang_version")}

# How the names of counters end, of which panels show the rate.
RISING: Final = ("_total", "_sum", "_count", "_bucket")

GLOBAL: Final = "rabbitmq_global_messages"

# By title: the metrics of a panel, with the labels that they are selected by.
OVERVIEW: Final = {
    "Ready messages": "rabbitmq_queue_messages_ready",
    "Outgoing messages / s": f"{GLOBAL}_delivered_total",
    "Publishers": "rabbitmq_global_publishers",
    "Connections": "rabbitmq_connections",
    "Queues": "rabbitmq_queues",
    "Unacknowledged messages": "rabbitmq_queue_messages_unacked",
    "Incoming messages / s": f"{GLOBAL}_received_total",
    "Consumers": "rabbitmq_global_consumers",
    "Channels": "rabbitmq_channels",
    "Nodes": "rabbitmq_erlang_uptime_seconds rabbitmq_build_info",
    "Memory available before publishers blocked": (
        "rabbitmq_resident_memory_limit_bytes rabbitmq_process_resident_memory_bytes"
    ),
    "Disk space available before publishers blocked": "rabbitmq_disk_space_available_bytes",
    "Messages ready to be delivered to consumers": "rabbitmq_queue_messages_ready",
    "Messages pending consumer acknowledgement": "rabbitmq_queue_messages_unacked",
    "Messages published / s": f"{GLOBAL}_received_total",
    "Avg Size": "rabbitmq_message_size_bytes_sum rabbitmq_message_size_bytes_count",
    "Message Size Distribution": " ".join(
        f"rabbitmq_message_size_bytes_bucket{{le={bound}}}"
        for bound in ("100", "1000", "10000", "100000", "1000000", "10000000", "50000000", "100000000", "+Inf")
    ),
    "Messages routed to queues / s": f"{GLOBAL}_routed_total",
    "Messages confirmed to publishers / s": f"{GLOBAL}_confirmed_total",
    "Unroutable messages dropped & returned / s": (
        f"{GLOBAL}_unroutable_dropped_total {GLOBAL}_unroutable_returned_total"
    ),
    "Messages unconfirmed to publishers / s": f"{GLOBAL}_received_confirm_total {GLOBAL}_confirmed_total",
    "Messages delivered / s": (
        f"{GLOBAL}_delivered_consume_auto_ack_total {GLOBAL}_delivered_consume_manual_ack_total"
    ),
    "Messages redelivered / s": f"{GLOBAL}_redelivered_total",
    "Messages delivered with manual ack / s": f"{GLOBAL}_delivered_consume_manual_ack_total",
    "Messages delivered auto ack / s": f"{GLOBAL}_delivered_consume_auto_ack_total",
    "Messages acknowledged / s": f"{GLOBAL}_acknowledged_total",
    "Polling operations with auto ack / s": f"{GLOBAL}_delivered_get_auto_ack_total",
    "Polling operations that yield no result / s": f"{GLOBAL}_get_empty_total",
    "Polling operations with manual ack / s": f"{GLOBAL}_delivered_get_manual_ack_total",
    "Total queues": "rabbitmq_queues",
    "Queues declared / s": "rabbitmq_queues_declared_total",
    "Queues created / s": "rabbitmq_queues_created_total",
    "Queues deleted / s": "rabbitmq_queues_deleted_total",
    "Total channels": "rabbitmq_channels",
    "Channels opened / s": "rabbitmq_channels_opened_total",
    "Channels closed / s": "rabbitmq_channels_closed_total",
    "Total connections": "rabbitmq_connections",
    "Connections opened / s": "rabbitmq_connections_opened_total",
    "Connections closed / s": "rabbitmq_connections_closed_total",
}
OVERVIEW_OF_2021: Final = {
    "Incoming messages / s": "rabbitmq_channel_messages_published_total",
    "Publishers": "rabbitmq_channels rabbitmq_channel_consumers",
    "Outgoing messages / s": (
        "rabbitmq_channel_messages_redelivered_total rabbitmq_channel_messages_delivered_total "
        "rabbitmq_channel_messages_delivered_ack_total rabbitmq_channel_get_total rabbitmq_channel_get_ack_total"
    ),
    "Polling operations with auto ack / s": "rabbitmq_channel_get_total",
    "Polling operations that yield no result / s": "rabbitmq_channel_get_empty_total",
    "Polling operations with manual ack / s": "rabbitmq_channel_get_ack_total",
}
RAFT: Final = {
    "Log entries committed / s": "rabbitmq_raft_log_commit_index",
    "Log entry commit latency": "rabbitmq_raft_entry_commit_latency_seconds",
    "Uncommitted log entries": "rabbitmq_raft_log_last_written_index rabbitmq_raft_log_commit_index",
    "Leader elections / s": "rabbitmq_raft_term_total",
    "Raft members with >5k entries in the log": "rabbitmq_raft_log_last_written_index rabbitmq_raft_log_snapshot_index",
}
STREAM: Final = {
    "Stream publishers": "rabbitmq_global_publishers{protocol=stream}",
    "Stream messages received / s": f"{GLOBAL}_received_total{{protocol=stream}}",
    "Stream messages confirmed to publishers / s": f"{GLOBAL}_confirmed_total{{protocol=stream}}",
    "Stream consumers": "rabbitmq_global_consumers{protocol=stream}",
    "Stream messages delivered / s": f"{GLOBAL}_delivered_total{{protocol=stream}}",
    "Errors since boot": "rabbitmq_global_stream_error_access_refused_total{protocol=stream}",
}

QUEUE: Final = {
    "Queue messages and consumers": (
        "rabbitmq_detailed_queue_messages{queue=q} rabbitmq_detailed_queue_consumers{queue=q}"
    ),
}

# The rules in observability/prometheus/rules of rabbitmq/cluster-operator at 045c77d4, without those about Kubernetes.
ALERTS: Final = {
    "InsufficientEstablishedErlangDistributionLinks": "erlang_vm_dist_node_state",
    "UnroutableMessages": (
        "rabbitmq_channel_messages_unroutable_dropped_total rabbitmq_channel_messages_unroutable_returned_total"
    ),
    "MemoryAlarm": "rabbitmq_alarms_memory_used_watermark",
    "RabbitmqDiskAlarm": "rabbitmq_alarms_free_disk_space_watermark",
    "RabbitmqFileDescriptorAlarm": "rabbitmq_alarms_file_descriptor_limit",
    "FileDescriptorsNearLimit": "rabbitmq_process_open_fds rabbitmq_process_max_fds",
    "HighConnectionChurn": ("rabbitmq_connections_closed_total rabbitmq_connections_opened_total rabbitmq_connections"),
    "LowDiskWatermarkPredicted": "rabbitmq_disk_space_available_bytes rabbitmq_disk_space_available_limit_bytes",
    "QueueHasNoConsumers": ("rabbitmq_detailed_queue_consumers{queue=q} rabbitmq_detailed_queue_messages{queue=q}"),
    "QueueIsGrowing": "rabbitmq_detailed_queue_messages{queue=q}",
}

BOARDS: Final = {
    "Alerts": ALERTS,
    "RabbitMQ-Overview": OVERVIEW,
    "RabbitMQ-Overview of 2021": OVERVIEW_OF_2021,
    "RabbitMQ-Quorum-Queues-Raft": RAFT,
    "RabbitMQ-Stream": STREAM,
    "RabbitMQ-Queue": QUEUE,
}
# Panels that stay empty, with the reason; all of a board without a title.
WITHOUT_DATA: Final = {
    ("Alerts", "RabbitmqFileDescriptorAlarm"): "RabbitMQ 4.3 no longer has the metric, older versions do",
    ("Alerts", "InsufficientEstablishedErlangDistributionLinks"): "a single node has no links to others",
    ("RabbitMQ-Overview", "Avg Size"): "messages are not counted by size, which would cost each publish",
    ("RabbitMQ-Overview", "Message Size Distribution"): "as above",
    ("RabbitMQ-Quorum-Queues-Raft", ""): "a single node has no Raft log",
    ("RabbitMQ-Stream", ""): "it shows clients of the stream protocol, which the broker does not speak",
}


def samples(texts: Mapping[str, str]) -> list[Sample]:
    """Return the samples from which boards select. The texts of the metrics are given by the name of their form."""
    found = {form: _samples(text) for form, text in texts.items()}
    return [*found["all together"], *(sample for sample in found["detailed"] if "_detailed_" in sample.name)]


def _samples(text: str) -> list[Sample]:
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def selected(samples: list[Sample], selector: str) -> list[Sample]:
    """Return the samples of a selector: a name, with labels in braces."""
    name, _, rest = selector.partition("{")
    labels = set(re.findall(r"(\w+)=([^,}]+)", rest))
    return [one for one in samples if one.name == name and labels <= set(one.labels.items())]


def query(metric: str, cluster: str, endpoint: str) -> str:
    """Return the query of a panel for one of its metrics.

    The board's variables choose the cluster, and the form of metrics that other labels call the endpoint.
    """
    name, _, rest = metric.partition("{")
    labels = ",".join(f'{label}="{value}"' for label, value in re.findall(r"(\w+)=([^,}]+)", rest))
    value = f"{name}{{{labels}}}"
    if name.endswith(RISING):
        value = f"rate({value}[60s])"
    joined = f"group_left({', '.join(JOINED)}) {IDENTITY}"
    chosen = f'{{rabbitmq_cluster="{cluster}", rabbitmq_endpoint="{endpoint}"}}'
    return f"sum({value} * on(instance, job) {joined}{chosen}) by(rabbitmq_node)"


def nodes_query() -> str:
    """Return the query of the table of nodes, which shows labels of two metrics."""
    [(built, versions)] = SHOWN.items()
    node = f"group_left({', '.join(versions)}) {built} * on(instance, job) group_left({', '.join(JOINED)}) {IDENTITY}"
    return f"rabbitmq_erlang_uptime_seconds * on(instance, job) {node}"
