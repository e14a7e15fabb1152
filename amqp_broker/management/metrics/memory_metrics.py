"""The use of memory by RabbitMQ's categories (`management/node/memory_use.py`).

Source: answers of RabbitMQ 4.3.6 to /metrics/memory-breakdown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from amqp_broker.management.metrics.declarations import GAUGE, Family, Metric, Scope
from amqp_broker.management.node.memory_use import memory_use

CATEGORIES: Final = {
    "code_module": "Code module memory footprint",
    "client_connection_reader": "Client connection reader processes footprint in bytes",
    "client_connection_writer": "Client connection writer processes footprint in bytes",
    "client_connection_channel": "Client connection channel processes footprint in bytes",
    "client_connection_other": "Client connection other processes footprint in bytes",
    "classic_queue_erlang_process": "Classic queue processes footprint in bytes",
    "quorum_queue_erlang_process": "Quorum queue processes footprint in bytes",
    "quorum_queue_dlx_erlang_process": "Quorum queue DLX worker processes footprint in bytes",
    "stream_erlang_process": "Stream processes footprint in bytes",
    "stream_replica_reader_erlang_process": "Stream replica reader processes footprint in bytes",
    "stream_coordinator_erlang_process": "Stream coordinator processes footprint in bytes",
    "plugin": "Total plugin footprint in bytes",
    "modern_metadata_store": "Modern metadata store footprint in bytes",
    "other_erlang_process": "Other processes footprint in bytes",
    "metrics": "Metric table footprint in bytes",
    "management_stats_db": "Management stats database footprint in bytes",
    "classic_metadata_store": "Classic metadata store footprint in bytes",
    "quorum_queue_ets_table": "Quorum queue ETS tables footprint in bytes",
    "modern_metadata_store_ets_table": "Modern metadata store ETS tables footprint in bytes",
    "other_ets_table": "Other ETS tables footprint in bytes",
    "binary_heap": "Binary heap size in bytes",
    "message_index": "Message index footprint in bytes",
    "atom_table": "Atom table size in bytes",
    "other_system": "Other runtime footprint in bytes",
    "runtime_allocated_unused": "Runtime allocated but unused blocks size in bytes",
    "runtime_reserved_unallocated": "Runtime reserved but unallocated blocks size in bytes",
}


# The names of categories in other answers of RabbitMQ.
NAMES: Final = {
    "queue_procs": "classic_queue_erlang_process",
    "quorum_queue_procs": "quorum_queue_erlang_process",
    "stream_queue_procs": "stream_erlang_process",
    "connection_readers": "client_connection_reader",
    "connection_channels": "client_connection_channel",
    "metadata_store": "modern_metadata_store",
    "mgmt_db": "management_stats_db",
    "plugins": "plugin",
    "code": "code_module",
    "other_proc": "other_erlang_process",
}


def _used(scope: Scope) -> Iterator[tuple[tuple[str, ...], dict[str, int]] | None]:
    used = yield from memory_use(scope.broker, scope.node.memory_used(), scope.node.memory_at_start)
    yield (), {NAMES[name]: octets for name, octets in used.items()}


def _metric(category: str, text: str) -> Metric:
    return Metric(f"memory_{category}_bytes", GAUGE, text, lambda used: used.get(category, 0))


MEMORY_FAMILIES: Final = (
    Family("memory_breakdown", (), _used, tuple(_metric(name, text) for name, text in CATEGORIES.items())),
)
