"""The state of the shovels that parameters of component `shovel` have started.

Source: rabbitmq_shovel_management, rabbit_shovel_mgmt_shovel(s).erl; rabbit_shovel_status.erl.
"""

from __future__ import annotations

from typing import Any

from amqp_broker.management.http.answers import NO_CONTENT, Answer, not_found
from amqp_broker.management.http.auth import MONITORING, POLICYMAKER
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.listing import ListQuery, listed_rows
from amqp_broker.management.http.request import Request
from amqp_broker.management.node import ShovelStatus

endpoints = Endpoints()


def shovel_row(request: Request, status: ShovelStatus) -> dict[str, Any]:
    """Return the row of a shovel."""
    return {
        "node": request.broker.node,
        "name": status.name,
        "vhost": status.vhost,
        "type": "dynamic",
        "state": status.state,
        **status.details,
    }


@endpoints.on("GET /api/shovels", "GET /api/shovels/{vhost}", tag=MONITORING, query=ListQuery)
def shovels(request: Request) -> Any:
    """List the state of shovels, of one vhost or of all."""
    seen = {vhost.name for vhost in request.vhosts}
    found = [shovel_row(request, status) for status in request.node.shovels() if status.vhost in seen]
    return listed_rows(request, found)


def _status(request: Request) -> ShovelStatus:
    vhost, name = request.vhost.name, request.path["name"]
    for status in request.node.shovels():
        if (status.vhost, status.name) == (vhost, name):
            return status
    raise not_found()


@endpoints.on("GET /api/shovels/vhost/{vhost}/{name}", tag=POLICYMAKER)
def shovel(request: Request) -> dict[str, Any]:
    """Return the state of a shovel."""
    return shovel_row(request, _status(request))


@endpoints.on("DELETE /api/shovels/vhost/{vhost}/{name}", tag=POLICYMAKER)
def delete(request: Request) -> Answer:
    """Delete a shovel."""
    status = _status(request)
    request.vhost.parameters.clear("shovel", status.name)
    return NO_CONTENT


@endpoints.on("DELETE /api/shovels/vhost/{vhost}/{name}/restart", tag=POLICYMAKER)
def restart(request: Request) -> Answer:
    """Restart a shovel."""
    status = _status(request)
    request.node.restart_shovel(status.vhost, status.name)
    return NO_CONTENT
