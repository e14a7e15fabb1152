from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp.errors import DoesNotExist, InvalidParameter
from amqp_broker.broker.admin.policies import Policy
from amqp_broker.broker.runtime_parameters import Parameter
from amqp_broker.broker.vhost import VHost
from tests.broker_parts import new_broker, new_vhost

UNTELLABLE = "a name must not exceed 255 octets, nor a number 64 bits"
SHOVEL = {"src-uri": "amqp://", "src-queue": "a"}
OPERATOR_POLICY = {"pattern": "^q", "definition": {"max-length": 5}, "priority": 2, "apply-to": "queues"}


@pytest.fixture
def vhost() -> VHost:
    return new_vhost()


def test_a_parameter_is_set_replaced_and_cleared(vhost: VHost) -> None:
    vhost.parameters.set("shovel", "b", SHOVEL)
    vhost.parameters.set("shovel", "a", SHOVEL)
    vhost.parameters.set("shovel", "b", {})
    assert list(vhost.parameters) == [Parameter("shovel", "a", SHOVEL), Parameter("shovel", "b", {})]
    assert vhost.parameters.get("shovel", "a") == SHOVEL
    vhost.parameters.clear("shovel", "a")
    assert vhost.parameters.of("shovel") == [Parameter("shovel", "b", {})]


@pytest.mark.parametrize("component", ["shovel", "policy", "vhost-limits", "operator_policy", "unknown"])
def test_a_missing_parameter_is_not_found(vhost: VHost, component: str) -> None:
    with pytest.raises(DoesNotExist, match=r"^Parameter does not exist$"):
        vhost.parameters.get(component, "x")


@pytest.mark.parametrize("component", ["shovel", "vhost-limits", "operator_policy", "unknown"])
def test_a_missing_parameter_cannot_be_cleared(vhost: VHost, component: str) -> None:
    with pytest.raises(DoesNotExist, match=r"^Parameter does not exist$"):
        vhost.parameters.clear(component, "x")


@pytest.mark.parametrize(
    ("component", "name", "value", "text"),
    [
        ("foo", "x", {}, "component foo not found"),
        ("policy", "x", {}, "policies may not be set using this method"),
        ("shovel", "x", 5, "value of x must be a dictionary: 5"),
        (
            "shovel",
            "x",
            {"a": [{"b": 1 << 63}]},
            UNTELLABLE,
        ),
        ("shovel", "x", {"a" * 256: 1}, UNTELLABLE),
        ("vhost-limits", "x", {}, "component vhost-limits has no parameter 'x', only 'limits'"),
        ("vhost-limits", "limits", {"foo": 4}, 'Unrecognised terms [{<<"foo">>,4}] in limits'),
        ("operator_policy", "x", {"definition": {"expires": 5}}, "pattern should be a binary but was null"),
        (
            "operator_policy",
            "x",
            {**OPERATOR_POLICY, "definition": {"max-age": "5D"}},
            '[{<<"max-age">>,<<"5D">>}] are not recognised policy settings',
        ),
    ],
)
def test_an_invalid_parameter_is_refused_and_changes_nothing(
    vhost: VHost, component: str, name: str, value: Any, text: str
) -> None:
    with pytest.raises(InvalidParameter) as caught:
        vhost.parameters.set(component, name, value)
    assert str(caught.value) == text
    assert list(vhost.parameters) == []


def test_vhost_limits_are_a_parameter(vhost: VHost) -> None:
    vhost.limits.set("max-queues", 3)
    assert list(vhost.parameters) == [Parameter("vhost-limits", "limits", {"max-queues": 3})]
    vhost.parameters.set("vhost-limits", "limits", {"max-connections": 5})
    assert vhost.limits.given == {"max-connections": 5}
    vhost.parameters.clear("vhost-limits", "limits")
    assert (vhost.limits.given, list(vhost.parameters)) == ({}, [])


def test_operator_policies_are_parameters_and_in_force(vhost: VHost) -> None:
    vhost.parameters.set("operator_policy", "most", OPERATOR_POLICY)
    policy = Policy("most", "^q", {"max-length": 5}, 2, "queues")
    assert list(vhost.operator_policies) == [policy]
    assert list(vhost.parameters) == [Parameter("operator_policy", "most", OPERATOR_POLICY)]
    vhost.parameters.clear("operator_policy", "most")
    assert len(vhost.operator_policies) == 0


def test_policies_are_listed_only_by_component_and_cannot_be_changed_as_parameters(vhost: VHost) -> None:
    vhost.policies.set(Policy("p", "^q", {"max-length": 5}, 2, "queues"))
    assert list(vhost.parameters) == []
    assert vhost.parameters.of("policy") == [Parameter("policy", "p", OPERATOR_POLICY)]
    assert vhost.parameters.get("policy", "p") == OPERATOR_POLICY
    with pytest.raises(InvalidParameter, match="policies may not be cleared using this method"):
        vhost.parameters.clear("policy", "p")


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "", "text", [], [1, {"a": None}], {"a": {}}])
def test_a_global_parameter_may_have_any_json_value(value: Any) -> None:
    parameters = new_broker().global_parameters
    parameters.set("b", 0)
    parameters.set("b", value)
    parameters.set("a", 1)
    assert list(parameters) == [("a", 1), ("b", value)]
    assert parameters["b"] == value
    parameters.clear("b")
    for forget in (parameters.clear, parameters.__getitem__):
        with pytest.raises(DoesNotExist, match=r"^Parameter does not exist$"):
            forget("b")


def test_a_global_parameter_must_fit_into_the_headers_of_an_event() -> None:
    parameters = new_broker().global_parameters
    with pytest.raises(InvalidParameter):
        parameters.set("a", [1 << 63])
    assert list(parameters) == []
