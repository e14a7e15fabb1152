"""The one node of the cluster: versions, limits, memory, disk, plugins, settings."""

from __future__ import annotations

import platform
import ssl
from typing import Any, Final

from amqp_broker.implementation import implementation
from amqp_broker.management.api.overview import churn, contexts, exchange_type_rows
from amqp_broker.management.api.statistics import Statistics, with_details
from amqp_broker.management.http.auth import ADMINISTRATOR, MONITORING
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.listing import ListQuery, listed_rows
from amqp_broker.management.http.request import Request
from amqp_broker.settings import plugins
from amqp_broker.settings.settings import SETTINGS

endpoints = Endpoints()

# Numbers of Erlang's machine and its files, which are 0 here.
ERLANG_ONLY: Final = dict.fromkeys(
    (
        "context_switches",
        "gc_bytes_reclaimed",
        "gc_num",
        "io_read_avg_time",
        "io_read_bytes",
        "io_read_count",
        "io_reopen_count",
        "io_seek_avg_time",
        "io_seek_count",
        "io_sync_avg_time",
        "io_sync_count",
        "io_write_avg_time",
        "io_write_bytes",
        "io_write_count",
        "mnesia_disk_tx_count",
        "mnesia_ram_tx_count",
        "msg_store_read_count",
        "msg_store_write_count",
        "queue_index_read_count",
        "queue_index_write_count",
    ),
    0,
)
MECHANISMS: Final = {
    "PLAIN": "SASL PLAIN authentication mechanism",
    "AMQPLAIN": "QPid AMQPLAIN mechanism",
    "ANONYMOUS": "SASL ANONYMOUS authentication mechanism",
    "EXTERNAL": "TLS peer verification-based authentication plugin. "
    "Used in combination with the EXTERNAL SASL mechanism.",
}
DEMO_MECHANISM: Final = {
    "name": "RABBIT-CR-DEMO",
    "description": "RabbitMQ Demo challenge-response authentication mechanism",
    "enabled": False,
}
# RabbitMQ's tables of statistics, whose waiting changes it counts.
METRICS: Final = (
    *("connection_closed", "channel_closed", "consumer_deleted", "exchange_deleted", "queue_deleted"),
    *("vhost_deleted", "node_node_deleted", "channel_consumer_deleted"),
)


def node_row(request: Request) -> dict[str, Any]:
    """Return the row of the node."""
    broker, node = request.broker, request.node
    fd_used, fd_total = node.descriptors()
    row: dict[str, Any] = {
        "applications": _applications(broker.profile.version),
        "auth_mechanisms": [
            {"name": name, "description": MECHANISMS.get(name, ""), "enabled": True}
            for name in broker.profile.auth_mechanisms.split()
        ]
        + [DEMO_MECHANISM],
        "cluster_links": [],
        "config_files": list(node.config_files()),
        "contexts": [
            {name: value for name, value in context.items() if name not in ("node", "ssl_opts")}
            for context in contexts(request)
        ],
        "db_dir": "none" if broker.settings.store_path is None else str(broker.settings.store_path),
        "disk_free_alarm": "disk" in broker.alarms,
        "disk_free_limit": node.disk_free_limit(),
        "enabled_plugins": plugins.explicit(broker.settings),
        "exchange_types": exchange_type_rows(broker),
        "fd_total": fd_total,
        "log_files": broker.settings.log_files,
        "mem_alarm": "memory" in broker.alarms,
        "mem_calculation_strategy": "rss",
        "mem_limit": node.memory_limit(),
        "metrics_gc_queue_length": dict.fromkeys(METRICS, 0),
        "name": broker.node,
        "net_ticktime": 60,
        "os_pid": str(node.process_id()),
        "partitions": [],
        "proc_total": 1,
        "processors": node.processors(),
        "ra_open_file_metrics": {"ra_log_wal": 0, "ra_log_segment_writer": 0},
        "rates_mode": "detailed",
        "run_queue": 0,
        "running": True,
        "being_drained": False,
        "sockets_total": fd_total,
        "type": "disc",
        "uptime": node.real_now() - node.started_at_ms,
    }
    if broker.profile.release >= (4, 3):
        row |= {
            "rabbitmq_version": broker.profile.version,
            "erlang_version": "0",
            "erlang_full_version": f"Python {platform.python_version()}, {implementation()}",
            "crypto_lib_version": ssl.OPENSSL_VERSION,
        }
    used = {
        "disk_free": node.disk_free(),
        "fd_used": fd_used,
        "mem_used": node.memory_used(),
        "proc_used": 1,
        # RabbitMQ 4 does not count them.
        "sockets_used": 0 if broker.profile.release >= (4, 0) else len(broker.connections),
    }
    churned = Statistics(request).of(broker.counters, "churn", churn(broker))
    return {**row, **with_details(used), **with_details(ERLANG_ONLY), **churned}


def _applications(version: str) -> list[dict[str, str]]:
    return [
        {"name": "rabbit", "description": "RabbitMQ", "version": version},
        {"name": "rabbitmq_management", "description": "RabbitMQ Management Console", "version": version},
    ]


@endpoints.on("GET /api/nodes", tag=MONITORING, query=ListQuery)
def all_nodes(request: Request) -> Any:
    """List the nodes, of which there is one."""
    return listed_rows(request, [node_row(request)])


@endpoints.on("GET /api/nodes/{node}", tag=MONITORING)
def one(request: Request) -> dict[str, Any]:
    """Return memory, disk, descriptors and uptime of the node."""
    request.require_node()
    return node_row(request)


@endpoints.on("GET /api/config/effective", tag=ADMINISTRATOR)
def effective_settings(request: Request) -> dict[str, Any]:
    """Return the settings in force, without secrets."""
    settings = request.broker.settings
    return {
        setting.name: value
        for setting in SETTINGS
        if not setting.is_secret
        and isinstance(value := getattr(settings, setting.name), (str, int, float, bool, type(None)))
    }
