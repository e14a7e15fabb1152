"""/api/shovels: how the shovels are doing that parameters of component `shovel` have started.

Source: rabbitmq_shovel_management, rabbit_shovel_mgmt_shovel(s).erl; rabbit_shovel_status.erl.
"""

from __future__ import annotations

from typing import Any

from amqp_broker.management.access import MONITORING, POLICYMAKER
from amqp_broker.management.listing import listed
from amqp_broker.management.node import ShovelStatus
from amqp_broker.management.request import NO_CONTENT, Answer, Request, Resource, not_found


def view(request: Request, status: ShovelStatus) -> dict[str, Any]:
    return {
        "node": request.broker.node,
        "name": status.name,
        "vhost": status.vhost,
        "type": "dynamic",
        "state": status.state,
        **status.told,
    }


def shovels(request: Request) -> Any:
    seen = {vhost.name for vhost in request.vhosts}
    found = [view(request, status) for status in request.node.shovels() if status.vhost in seen]
    return listed(request, found)


def _status(request: Request) -> ShovelStatus:
    vhost, name = request.vhost.name, request.path["name"]
    for status in request.node.shovels():
        if (status.vhost, status.name) == (vhost, name):
            return status
    raise not_found()


def shovel(request: Request) -> dict[str, Any]:
    return view(request, _status(request))


def delete(request: Request) -> Answer:
    status = _status(request)
    request.vhost.parameters.clear("shovel", status.name)
    return NO_CONTENT


def restart(request: Request) -> Answer:
    status = _status(request)
    request.node.restart_shovel(status.vhost, status.name)
    return NO_CONTENT


RESOURCES = (
    Resource("/api/shovels", MONITORING, {"GET": shovels}),
    Resource("/api/shovels/{vhost}", MONITORING, {"GET": shovels}),
    Resource("/api/shovels/vhost/{vhost}/{name}", POLICYMAKER, {"GET": shovel, "DELETE": delete}),
    Resource("/api/shovels/vhost/{vhost}/{name}/restart", POLICYMAKER, {"DELETE": restart}),
)
