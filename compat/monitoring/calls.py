"""The requests of monitoring clients to the HTTP API, with the fields that they read and their types.

Facts from: plugins/inputs/rabbitmq of influxdata/telegraf, rabbitmq of DataDog/integrations-core,
templates/app/rabbitmq_http of zabbix/zabbix, and pkg/scalers/rabbitmq_scaler.go of kedacore/keda.
"""

from __future__ import annotations

from typing import Final, NamedTuple

NUMBER: Final = (int, float)


class Call(NamedTuple):
    """A request: its path, and the fields by type; `a.b` is nested. Of a list, the item with this name or the first."""

    path: str
    numbers: str = ""
    texts: str = ""
    booleans: str = ""
    lists: str = ""
    # The item of a list that is read.
    name: str = ""


# Counts of messages that are read with their rates.
_COUNTED: Final = "ack deliver_get publish redeliver"


def _stats(names: str) -> str:
    """Return the fields of `message_stats` for these counts."""
    return " ".join(f"message_stats.{name} message_stats.{name}_details.rate" for name in names.split())


_TOTALS: Final = "queue_totals.messages queue_totals.messages_ready queue_totals.messages_unacknowledged"
_OBJECTS: Final = " ".join(
    f"object_totals.{kind}" for kind in ("channels", "connections", "consumers", "exchanges", "queues")
)
_QUEUE: Final = "messages messages_ready messages_unacknowledged consumers memory"

CALLS: Final = {
    "Telegraf": (
        Call(
            "/api/overview",
            f"{_TOTALS} {_OBJECTS} {_stats(f'{_COUNTED} deliver return_unroutable')}",
            lists="listeners",
        ),
        Call(
            "/api/nodes",
            "disk_free disk_free_limit fd_total fd_used mem_limit mem_used proc_total proc_used run_queue "
            "sockets_total sockets_used uptime gc_num gc_num_details.rate gc_bytes_reclaimed "
            "gc_bytes_reclaimed_details.rate",
            texts="name",
            booleans="disk_free_alarm mem_alarm running",
        ),
        Call(
            "/api/nodes/{node}/memory",
            "memory.connection_readers memory.connection_writers memory.connection_channels memory.connection_other "
            "memory.queue_procs memory.plugins memory.other_proc memory.metrics memory.mgmt_db memory.mnesia "
            "memory.other_ets memory.binary memory.msg_index memory.code memory.atom memory.other_system "
            "memory.allocated_unused memory.reserved_unallocated memory.total.rss",
        ),
        Call(
            "/api/queues",
            f"{_QUEUE} consumer_utilisation message_bytes message_bytes_ready message_bytes_unacknowledged "
            f"message_bytes_ram message_bytes_persistent {_stats(f'{_COUNTED} deliver')}",
            "name node vhost",
            "durable auto_delete",
            name="watched",
        ),
        Call(
            "/api/exchanges",
            _stats("publish_in publish_out"),
            "name type vhost",
            "internal durable auto_delete",
            name="fans",
        ),
    ),
    "Datadog": (
        Call("/api/vhosts", texts="name"),
        Call(
            "/api/overview",
            f"{_TOTALS} {_stats(f'{_COUNTED} confirm return_unroutable')}",
            "rabbitmq_version cluster_name",
        ),
        Call("/api/exchanges", _stats("publish_in publish_out"), name="fans"),
        Call(
            "/api/queues",
            f"{_QUEUE} messages_details.rate messages_ready_details.rate messages_unacknowledged_details.rate "
            f"{_stats(f'{_COUNTED} deliver')}",
            name="watched",
        ),
        Call(
            "/api/nodes",
            "fd_used mem_used sockets_used",
            booleans="running mem_alarm disk_free_alarm",
            lists="partitions",
        ),
        Call("/api/connections", texts="state vhost"),
        Call("/api/aliveness-test/%2F", texts="status"),
    ),
    "Zabbix": (
        Call("/api/overview", f"{_TOTALS} {_OBJECTS} {_stats(f'{_COUNTED} confirm')}", "management_version"),
        Call("/api/health/checks/alarms", texts="status"),
        Call("/api/health/checks/local-alarms", texts="status"),
        Call("/api/health/checks/virtual-hosts", texts="status"),
        Call("/api/health/checks/node-is-quorum-critical", texts="status"),
    ),
    "KEDA": (
        Call(
            "/api/queues/%2F/watched",
            "messages messages_ready messages_unacknowledged message_stats.publish_details.rate",
            "name",
        ),
        Call(
            "/api/queues/%2F?page=1&use_regex=true&pagination=false&name=%5Ewat&page_size=100",
            "page_count",
            lists="items",
        ),
    ),
}
