"""Runtime parameters of vhosts and of the broker.

Source: rabbit_mgmt_wm_parameter.erl, rabbit_mgmt_wm_global_parameter.erl.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from amqp_broker.amqp.errors import DoesNotExist, InvalidParameter
from amqp_broker.broker.broker import CLUSTER_ID, CLUSTER_TAGS
from amqp_broker.broker.runtime_parameters import POLICY, Parameter
from amqp_broker.management.api.vhosts import changed_vhost, named_vhosts
from amqp_broker.management.documents.exporting import parameter_row
from amqp_broker.management.http.answers import CREATED, NO_CONTENT, Answer, escaped, validation_failed
from amqp_broker.management.http.auth import MANAGEMENT, POLICYMAKER
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.listing import ListQuery, listed_rows
from amqp_broker.management.http.request import Request

endpoints = Endpoints()


class NewParameter(Struct):
    """A value of any type; its component checks it."""

    value: Any


@endpoints.on(
    "GET /api/parameters",
    "GET /api/parameters/{component}",
    "GET /api/parameters/{component}/{vhost}",
    tag=POLICYMAKER,
    query=ListQuery,
)
def parameters(request: Request) -> Any:
    """List runtime parameters, of one component or of all."""
    component, found = request.path.get("component"), []
    for vhost in named_vhosts(request):
        there = vhost.parameters if component is None else vhost.parameters.of(component)
        found += [parameter_row(vhost, parameter) for parameter in there]
    return listed_rows(request, found)


@endpoints.on("GET /api/parameters/{component}/{vhost}/{name}", tag=POLICYMAKER)
def parameter(request: Request) -> dict[str, Any]:
    """Return a runtime parameter."""
    vhost, component, name = request.vhost, request.path["component"], request.path["name"]
    return parameter_row(vhost, Parameter(component, name, vhost.parameters.get(component, name)))


@endpoints.on("PUT /api/parameters/{component}/{vhost}/{name}", tag=POLICYMAKER, body=NewParameter)
def put_parameter(request: Request) -> Answer:
    """Set a runtime parameter; one of component `shovel` starts a [shovel](shovels.md)."""
    vhost, component, name = changed_vhost(request), request.path["component"], request.path["name"]
    value = request.read(NewParameter).value
    try:
        vhost.parameters.get(component, name)
        answer = NO_CONTENT
    except DoesNotExist:
        answer = CREATED
    try:
        vhost.parameters.set(component, name, value, request.user)
    except InvalidParameter as error:
        if component == POLICY:
            raise
        raise validation_failed(escaped(error, request.broker.profile.release)) from None
    return answer


@endpoints.on("DELETE /api/parameters/{component}/{vhost}/{name}", tag=POLICYMAKER)
def delete_parameter(request: Request) -> Answer:
    """Delete a runtime parameter."""
    request.vhost.parameters.clear(request.path["component"], request.path["name"])
    return NO_CONTENT


@endpoints.on("GET /api/global-parameters", tag=POLICYMAKER, query=ListQuery)
def global_parameters(request: Request) -> Any:
    """List global parameters."""
    return listed_rows(request, [{"name": name, "value": value} for name, value in sorted(_global(request).items())])


def _own(request: Request) -> dict[str, Any]:
    """Return the global parameters that a node sets at its start, except those that were removed since."""
    broker, removed = request.broker, request.broker.global_parameters.removed
    own: dict[str, Any] = {} if CLUSTER_ID in removed else {CLUSTER_ID: broker.cluster_id}
    if broker.profile.release >= (4, 0) and CLUSTER_TAGS not in removed:
        own[CLUSTER_TAGS] = []
    return own


def _global(request: Request) -> dict[str, Any]:
    """Return the global parameters by name, with those that each node has."""
    return {**_own(request), **request.broker.global_parameters.values}


@endpoints.on("GET /api/global-parameters/{name}", tag=POLICYMAKER)
def global_parameter(request: Request) -> dict[str, Any]:
    """Return a global parameter."""
    name = request.path["name"]
    found = _global(request)
    return {"name": name, "value": found[name] if name in found else request.broker.global_parameters[name]}


@endpoints.on("PUT /api/global-parameters/{name}", tag=POLICYMAKER, body=NewParameter)
def put_global_parameter(request: Request) -> Answer:
    """Set a global parameter."""
    name, parameters = request.path["name"], request.broker.global_parameters
    value = request.read(NewParameter).value
    is_new = name not in _global(request)
    parameters.set(name, value)
    return CREATED if is_new else NO_CONTENT


@endpoints.on("DELETE /api/global-parameters/{name}", tag=POLICYMAKER)
def delete_global_parameter(request: Request) -> Answer:
    """Delete a global parameter."""
    name = request.path["name"]
    request.broker.global_parameters.clear(name, is_own=name in _own(request))
    return NO_CONTENT


@endpoints.on("GET /api/federation-links", "GET /api/federation-links/{vhost}", tag=MANAGEMENT, query=ListQuery)
def links(request: Request) -> Any:
    """List federation links, of which there are none."""
    named_vhosts(request)
    return listed_rows(request, [])
