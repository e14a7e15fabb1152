"""The state of the shovels that parameters of component `shovel` or the configuration have started.

Source: rabbitmq_shovel_management, rabbit_shovel_mgmt_shovel(s).erl; rabbit_shovel_status.erl.
"""

from __future__ import annotations

from typing import Any, Final

from amqp_broker.broker.runtime_parameters import Parameter
from amqp_broker.management.documents.exporting import parameter_row
from amqp_broker.management.http.answers import NO_CONTENT, Answer, not_found
from amqp_broker.management.http.auth import MONITORING, POLICYMAKER
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.listing import ListQuery, listed_rows
from amqp_broker.management.http.request import Request
from amqp_broker.management.node.node import ShovelStatus

endpoints = Endpoints()

SHOVEL: Final = "shovel"


def shovel_row(request: Request, status: ShovelStatus) -> dict[str, Any]:
    """Return the row of a shovel."""
    is_static = status.vhost is None
    return {
        "node": request.broker.node,
        "name": status.name,
        **({} if is_static else {"vhost": status.vhost}),
        "type": "static" if is_static else "dynamic",
        "state": status.state,
        **status.details,
    }


@endpoints.on("GET /api/shovels", "GET /api/shovels/{vhost}", tag=MONITORING, query=ListQuery)
def shovels(request: Request) -> Any:
    """List the state of shovels, of one vhost or of all. Static ones belong to none."""
    seen: set[str | None] = {vhost.name for vhost in request.vhosts}
    if "vhost" not in request.path:
        seen.add(None)
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
    """Return the parameter of a shovel; with RabbitMQ 3 its state."""
    status = _status(request)
    if request.broker.profile.release < (4, 0):
        return shovel_row(request, status)
    value = request.vhost.parameters.get(SHOVEL, status.name)
    return parameter_row(request.vhost, Parameter(SHOVEL, status.name, value))


@endpoints.on("DELETE /api/shovels/vhost/{vhost}/{name}", tag=POLICYMAKER)
def delete(request: Request) -> Answer:
    """Delete a shovel."""
    status = _status(request)
    request.vhost.parameters.clear(SHOVEL, status.name)
    return NO_CONTENT


@endpoints.on("DELETE /api/shovels/vhost/{vhost}/{name}/restart", tag=POLICYMAKER)
def restart(request: Request) -> Answer:
    """Restart a shovel."""
    status = _status(request)
    request.node.restart_shovel(request.vhost.name, status.name)
    return NO_CONTENT
