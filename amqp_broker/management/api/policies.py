"""Policies and operator policies. Source: rabbit_mgmt_wm_policy.erl, rabbit_mgmt_wm_operator_policy.erl."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, field

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.admin.policies import Policies, Policy
from amqp_broker.broker.runtime_parameters import policy_of
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.management.api.vhosts import changed_vhost, named_vhosts
from amqp_broker.management.documents.exporting import policy_row
from amqp_broker.management.http.answers import CREATED, NO_CONTENT, Answer, escaped, validation_failed
from amqp_broker.management.http.auth import ADMINISTRATOR, MANAGEMENT, POLICYMAKER
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.listing import ListQuery, listed_rows
from amqp_broker.management.http.request import Request

endpoints = Endpoints()


class NewPolicy(Struct):
    """A policy for the queues or exchanges whose names match its pattern."""

    pattern: Annotated[Any, Meta(extra_json_schema={"type": "string"})]
    definition: Annotated[Any, Meta(extra_json_schema={"type": "object"})]
    priority: Annotated[Any, Meta(extra_json_schema={"type": "integer"})] = UNSET
    apply_to: Annotated[Any, Meta(extra_json_schema={"type": "string"})] = field(default=UNSET, name="apply-to")


def _listed(request: Request, is_operators: bool) -> Any:
    found = []
    for vhost in named_vhosts(request):
        policies = vhost.operator_policies if is_operators else vhost.policies
        found += [policy_row(vhost, policy) for policy in sorted(policies, key=lambda policy: policy.name)]
    return listed_rows(request, found)


@endpoints.on("GET /api/policies", "GET /api/policies/{vhost}", tag=MANAGEMENT, query=ListQuery)
def policies(request: Request) -> Any:
    """List policies, of one vhost or of all."""
    return _listed(request, is_operators=False)


@endpoints.on("GET /api/operator-policies", "GET /api/operator-policies/{vhost}", tag=MANAGEMENT, query=ListQuery)
def operator_policies(request: Request) -> Any:
    """List operator policies, of one vhost or of all."""
    return _listed(request, is_operators=True)


@endpoints.on("GET /api/policies/{vhost}/{name}", tag=POLICYMAKER)
def policy(request: Request) -> dict[str, Any]:
    """Return a policy."""
    return policy_row(request.vhost, request.vhost.policies[request.path["name"]])


@endpoints.on("GET /api/operator-policies/{vhost}/{name}", tag=ADMINISTRATOR)
def operator_policy(request: Request) -> dict[str, Any]:
    """Return an operator policy."""
    return policy_row(request.vhost, request.vhost.operator_policies[request.path["name"]])


def _given(request: Request) -> Policy:
    given = request.read(NewPolicy)
    values = {"pattern": given.pattern, "definition": given.definition}
    optional = {"priority": given.priority, "apply-to": given.apply_to}
    values |= {key: value for key, value in optional.items() if value is not UNSET}
    return policy_of(request.path["name"], values)


def _is_new(policies: Policies, name: str) -> bool:
    return all(policy.name != name for policy in policies)


@endpoints.on("PUT /api/policies/{vhost}/{name}", tag=POLICYMAKER, body=NewPolicy)
def put_policy(request: Request) -> Steps[Answer]:
    """Create or change a policy."""
    vhost = changed_vhost(request)
    given = _given(request)
    is_new = _is_new(vhost.policies, given.name)
    try:
        yield from vhost.policies.setting(given)
    except InvalidParameter as error:
        raise validation_failed(escaped(error, request.broker.profile.release)) from None
    return CREATED if is_new else NO_CONTENT


@endpoints.on("PUT /api/operator-policies/{vhost}/{name}", tag=ADMINISTRATOR, body=NewPolicy)
def put_operator_policy(request: Request) -> Steps[Answer]:
    """Create or change an operator policy."""
    vhost = changed_vhost(request)
    given = _given(request)
    is_new = _is_new(vhost.operator_policies, given.name)
    try:
        yield from vhost.operator_policies.setting(given)
    except InvalidParameter as error:
        raise validation_failed(error) from None
    return CREATED if is_new else NO_CONTENT


@endpoints.on("DELETE /api/policies/{vhost}/{name}", tag=POLICYMAKER)
def delete_policy(request: Request) -> Steps[Answer]:
    """Delete a policy."""
    yield from request.vhost.policies.clearing(request.path["name"])
    return NO_CONTENT


@endpoints.on("DELETE /api/operator-policies/{vhost}/{name}", tag=ADMINISTRATOR)
def delete_operator_policy(request: Request) -> Steps[Answer]:
    """Delete an operator policy."""
    yield from request.vhost.operator_policies.clearing(request.path["name"])
    return NO_CONTENT
