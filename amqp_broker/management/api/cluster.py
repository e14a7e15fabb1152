"""The cluster: its name, and RabbitMQ's operations on many nodes, which have nothing to do on one."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from amqp_broker.broker.broker import CLUSTER_NAME
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.management.http.answers import NO_CONTENT, Answer
from amqp_broker.management.http.auth import ADMINISTRATOR, MANAGEMENT
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import Text

endpoints = Endpoints()


class ClusterName(Struct):
    """The name of the cluster."""

    name: Text


@endpoints.on("GET /api/cluster-name", tag=MANAGEMENT)
def cluster_name(request: Request) -> dict[str, Any]:
    """Return the name of the cluster."""
    return {"name": request.broker.cluster_name}


@endpoints.on("PUT /api/cluster-name", tag=ADMINISTRATOR, body=ClusterName, statuses=(204,))
def set_cluster_name(request: Request) -> Answer:
    """Set the name of the cluster."""
    request.broker.global_parameters.set(CLUSTER_NAME, request.read(ClusterName).name)
    return NO_CONTENT


@endpoints.on("POST /api/rebalance/queues", tag=ADMINISTRATOR)
def rebalance(request: Request) -> Answer:
    """Do nothing: the leaders of all queues are on the one node."""
    return NO_CONTENT


@endpoints.on("DELETE /api/reset", "DELETE /api/reset/{node}", tag=ADMINISTRATOR)
def reset_statistics(request: Request) -> Steps[Answer]:
    """Let the samples of rates and charts begin anew. Counters go on."""
    request.require_node()
    yield from request.node.rates.resetting()
    return NO_CONTENT
