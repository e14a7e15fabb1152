"""Policies and operator policies. Source: rabbit_mgmt_wm_policy.erl, rabbit_mgmt_wm_operator_policy.erl."""

from __future__ import annotations

from typing import Any

from amqp_broker.broker.parameters import policy_of
from amqp_broker.broker.policies import Policies, Policy
from amqp_broker.broker.vhost import VHost
from amqp_broker.errors import InvalidParameter
from amqp_broker.management import body
from amqp_broker.management.access import ADMINISTRATOR, MANAGEMENT, POLICYMAKER
from amqp_broker.management.listing import listed
from amqp_broker.management.request import CREATED, NO_CONTENT, Answer, Request, Resource, bad_request
from amqp_broker.management.vhosts import changed_vhost, named_vhosts


def of_policy(vhost: VHost, policy: Policy) -> dict[str, Any]:
    return {
        "vhost": vhost.name,
        "name": policy.name,
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "definition": dict(policy.definition),
        "priority": policy.priority,
    }


def _listed(request: Request, is_operators: bool) -> Any:
    found = []
    for vhost in named_vhosts(request):
        policies = vhost.operator_policies if is_operators else vhost.policies
        found += [of_policy(vhost, policy) for policy in sorted(policies, key=lambda policy: policy.name)]
    return listed(request, found)


def policies(request: Request) -> Any:
    return _listed(request, is_operators=False)


def operator_policies(request: Request) -> Any:
    return _listed(request, is_operators=True)


def policy(request: Request) -> dict[str, Any]:
    return of_policy(request.vhost, request.vhost.policies[request.path["name"]])


def operator_policy(request: Request) -> dict[str, Any]:
    return of_policy(request.vhost, request.vhost.operator_policies[request.path["name"]])


def _given(request: Request) -> Policy:
    given = body.body_of(request, "pattern", "definition")
    told: dict[str, Any] = {
        key: given[key] for key in ("pattern", "definition", "priority", "apply-to") if key in given
    }
    return policy_of(request.path["name"], told)


def _is_new(policies: Policies, name: str) -> bool:
    return all(policy.name != name for policy in policies)


def put_policy(request: Request) -> Answer:
    vhost = changed_vhost(request)
    given = _given(request)
    is_new = _is_new(vhost.policies, given.name)
    try:
        vhost.set_policy(given)
    except InvalidParameter as error:
        escaped = str(error).replace("<", "&lt;").replace(">", "&gt;")
        raise bad_request(f"Validation failed\n\n{escaped}\n") from None
    return CREATED if is_new else NO_CONTENT


def put_operator_policy(request: Request) -> Answer:
    vhost = changed_vhost(request)
    given = _given(request)
    is_new = _is_new(vhost.operator_policies, given.name)
    try:
        vhost.set_operator_policy(given)
    except InvalidParameter as error:
        raise bad_request(f"Validation failed\n\n{error}\n") from None
    return CREATED if is_new else NO_CONTENT


def delete_policy(request: Request) -> Answer:
    request.vhost.clear_policy(request.path["name"])
    return NO_CONTENT


def delete_operator_policy(request: Request) -> Answer:
    request.vhost.clear_operator_policy(request.path["name"])
    return NO_CONTENT


RESOURCES = (
    Resource("/api/policies", MANAGEMENT, {"GET": policies}),
    Resource("/api/policies/{vhost}", MANAGEMENT, {"GET": policies}),
    Resource("/api/policies/{vhost}/{name}", POLICYMAKER, {"GET": policy, "PUT": put_policy, "DELETE": delete_policy}),
    Resource("/api/operator-policies", MANAGEMENT, {"GET": operator_policies}),
    Resource("/api/operator-policies/{vhost}", MANAGEMENT, {"GET": operator_policies}),
    Resource(
        "/api/operator-policies/{vhost}/{name}",
        ADMINISTRATOR,
        {"GET": operator_policy, "PUT": put_operator_policy, "DELETE": delete_operator_policy},
    ),
)
