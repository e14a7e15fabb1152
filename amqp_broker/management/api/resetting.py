"""Deleting everything, in the broker or in a vhost."""

from __future__ import annotations

from amqp_broker.broker.operations.resetting import resetting, resetting_vhost
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.management.http.answers import NO_CONTENT, Answer, bad_request, not_found
from amqp_broker.management.http.auth import ADMINISTRATOR
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import VHostQuery

endpoints = Endpoints()


@endpoints.on("POST /_broker/reset", tag=ADMINISTRATOR, query=VHostQuery)
def reset_broker(request: Request) -> Steps[Answer]:
    """Delete everything in one vhost or in the broker."""
    name = request.read_query(VHostQuery).vhost
    if name is None:
        yield from resetting(request.broker)
    elif name in request.broker.vhosts:
        yield from resetting_vhost(request.broker.vhosts[name])
    else:
        raise not_found()
    return NO_CONTENT


@endpoints.on("POST /_broker/reset-node", tag=ADMINISTRATOR)
def reset_node(request: Request) -> Steps[Answer]:
    """Delete everything in the broker of a stopped node (`reset`)."""
    if request.node.state != "stopped":
        raise bad_request("the node accepts clients: run stop_app first")
    yield from resetting(request.broker)
    return NO_CONTENT
