"""The use of memory in RabbitMQ's categories (`management/node/memory_use.py`).

Source: rabbit_mgmt_wm_node_memory.erl, rabbit_mgmt_wm_node_memory_ets.erl; answers of RabbitMQ 4.3.6.
"""

from __future__ import annotations

from typing import Any, Final

from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.management.http.auth import MONITORING
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.node.memory_use import memory_use

endpoints = Endpoints()

CATEGORIES: Final = (
    *("connection_readers", "connection_writers", "connection_channels", "connection_other", "queue_procs"),
    *("stream_queue_procs", "stream_queue_replica_reader_procs", "stream_queue_coordinator_procs"),
    *("quorum_queue_procs", "quorum_queue_dlx_procs", "plugins", "metadata_store", "other_proc", "metrics", "mgmt_db"),
    *("quorum_ets", "mnesia", "metadata_store_ets", "other_ets", "binary", "msg_index", "code", "atom"),
    *("other_system", "allocated_unused", "reserved_unallocated"),
)
NO_TABLES: Final = {"ets_tables_memory": "no_tables"}


@endpoints.on("GET /api/nodes/{node}/memory", tag=MONITORING)
def memory(request: Request) -> Steps[dict[str, Any]]:
    """Return the use of memory by category."""
    request.require_node()
    used = request.node.memory_used()
    found = yield from memory_use(request.broker, used, request.node.memory_at_start)
    return {
        "memory": {
            **dict.fromkeys(CATEGORIES, 0),
            **found,
            "strategy": "rss",
            "total": {"erlang": used, "rss": used, "allocated": used},
        }
    }


@endpoints.on("GET /api/nodes/{node}/memory/relative", tag=MONITORING)
def relative(request: Request) -> Steps[dict[str, Any]]:
    """Return the use of memory by category in per cent."""
    request.require_node()
    used = request.node.memory_used()
    found = yield from memory_use(request.broker, used, request.node.memory_at_start)
    shares = {name: 100 * octets // used if used else 0 for name, octets in found.items()}
    return {"memory": {"total": 100, **dict.fromkeys(CATEGORIES, 0), **shares}}


@endpoints.on(
    "GET /api/nodes/{node}/memory/ets",
    "GET /api/nodes/{node}/memory/ets/relative",
    "GET /api/nodes/{node}/memory/ets/{filter}",
    "GET /api/nodes/{node}/memory/ets/{filter}/relative",
    tag=MONITORING,
)
def tables(request: Request) -> dict[str, Any]:
    """Return that there are no tables of Erlang's."""
    request.require_node()
    return NO_TABLES
