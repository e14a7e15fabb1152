"""Runtime parameters of vhosts and of the broker.

Source: rabbit_mgmt_wm_parameter.erl, rabbit_mgmt_wm_global_parameter.erl.
"""

from __future__ import annotations

from typing import Any

from amqp_broker.broker.parameters import POLICY, Parameter
from amqp_broker.broker.vhost import VHost
from amqp_broker.errors import DoesNotExist, InvalidParameter
from amqp_broker.management import body
from amqp_broker.management.access import MANAGEMENT, POLICYMAKER
from amqp_broker.management.limits import validation_failed
from amqp_broker.management.listing import listed
from amqp_broker.management.request import CREATED, NO_CONTENT, Answer, Request, Resource
from amqp_broker.management.vhosts import changed_vhost, named_vhosts


def of_parameter(vhost: VHost, parameter: Parameter) -> dict[str, Any]:
    return {
        "value": parameter.value,
        "vhost": vhost.name,
        "component": parameter.component,
        "name": parameter.name,
    }


def parameters(request: Request) -> Any:
    component, found = request.path.get("component"), []
    for vhost in named_vhosts(request):
        there = vhost.parameters if component is None else vhost.parameters.of(component)
        found += [of_parameter(vhost, parameter) for parameter in there]
    return listed(request, found)


def parameter(request: Request) -> dict[str, Any]:
    vhost, component, name = request.vhost, request.path["component"], request.path["name"]
    return of_parameter(vhost, Parameter(component, name, vhost.parameters.get(component, name)))


def put_parameter(request: Request) -> Answer:
    vhost, component, name = changed_vhost(request), request.path["component"], request.path["name"]
    value = body.body_of(request, "value")["value"]
    try:
        vhost.parameters.get(component, name)
        answer = NO_CONTENT
    except DoesNotExist:
        answer = CREATED
    try:
        vhost.parameters.set(component, name, value, request.user)
    except InvalidParameter as error:
        raise error if component == POLICY else validation_failed(error) from None
    return answer


def delete_parameter(request: Request) -> Answer:
    request.vhost.parameters.clear(request.path["component"], request.path["name"])
    return NO_CONTENT


def global_parameters(request: Request) -> Any:
    return listed(request, [{"name": name, "value": value} for name, value in request.broker.global_parameters])


def global_parameter(request: Request) -> dict[str, Any]:
    name = request.path["name"]
    return {"name": name, "value": request.broker.global_parameters[name]}


def put_global_parameter(request: Request) -> Answer:
    name, parameters = request.path["name"], request.broker.global_parameters
    value = body.body_of(request, "value")["value"]
    is_new = name not in parameters.values
    parameters.set(name, value)
    return CREATED if is_new else NO_CONTENT


def delete_global_parameter(request: Request) -> Answer:
    request.broker.global_parameters.clear(request.path["name"])
    return NO_CONTENT


def links(request: Request) -> Any:
    """Federation links: there are none."""
    named_vhosts(request)
    return listed(request, [])


RESOURCES = (
    Resource("/api/parameters", POLICYMAKER, {"GET": parameters}),
    Resource("/api/parameters/{component}", POLICYMAKER, {"GET": parameters}),
    Resource("/api/parameters/{component}/{vhost}", POLICYMAKER, {"GET": parameters}),
    Resource(
        "/api/parameters/{component}/{vhost}/{name}",
        POLICYMAKER,
        {"GET": parameter, "PUT": put_parameter, "DELETE": delete_parameter},
    ),
    Resource("/api/global-parameters", POLICYMAKER, {"GET": global_parameters}),
    Resource(
        "/api/global-parameters/{name}",
        POLICYMAKER,
        {"GET": global_parameter, "PUT": put_global_parameter, "DELETE": delete_global_parameter},
    ),
    Resource("/api/federation-links", MANAGEMENT, {"GET": links}),
    Resource("/api/federation-links/{vhost}", MANAGEMENT, {"GET": links}),
)
