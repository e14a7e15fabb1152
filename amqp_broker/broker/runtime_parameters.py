"""Runtime parameters: settings by component and name, of a vhost or of the whole broker.

Limits of a vhost and operator policies are also parameters (components `vhost-limits` and `operator_policy`): each of
them can be set and read in both ways. Policies are parameters only in requests for the component `policy`.
Source: RabbitMQ, "Parameters and Policies"; rabbit_runtime_parameters.erl.
"""

from __future__ import annotations

import contextlib
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from amqp_broker.amqp import fields, nested
from amqp_broker.amqp.errors import DoesNotExist, InvalidParameter
from amqp_broker.broker import journal_entries
from amqp_broker.broker.admin import federation
from amqp_broker.broker.admin.limits import VHOST_LIMITS as KNOWN_LIMITS
from amqp_broker.broker.admin.limits import Limits
from amqp_broker.broker.admin.policies import OPERATOR_KEYS, Policy
from amqp_broker.broker.admin.policies import check as check_policy

if TYPE_CHECKING:
    from amqp_broker.broker.admin.access import User
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.vhost import VHost

POLICY: Final = "policy"
OPERATOR_POLICY: Final = "operator_policy"
VHOST_LIMITS: Final = "vhost-limits"
LIMITS: Final = "limits"
# Of a parameter's value. Other than tables of clients, it is also compared, and kept as JSON.
LEVELS_MAX: Final = 100

# Takes the name and the JSON value of a parameter; raises InvalidParameter.
Validator: TypeAlias = Callable[[str, Any], None]


class Parameter(NamedTuple):
    """A parameter of a vhost."""

    component: str
    name: str
    value: Any


def _is_dictionary(name: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise InvalidParameter(f"value of {name} must be a dictionary: {fields.json_term(value)}")


def _is_limits(name: str, value: Any) -> None:
    if name != LIMITS:
        raise InvalidParameter(f"component {VHOST_LIMITS} has no parameter '{name}', only '{LIMITS}'")
    _is_dictionary(name, value)
    Limits("limits", KNOWN_LIMITS).check(value)


def _is_operator_policy(name: str, value: Any) -> None:
    _is_dictionary(name, value)
    check_policy(policy_of(name, value), OPERATOR_KEYS)


def policy_of(name: str, value: Mapping[str, Any]) -> Policy:
    """Return the policy in a JSON object, unchecked: missing members are None."""
    members: dict[str, Any] = {"priority": 0, "apply-to": "all", "pattern": None, "definition": None, **value}
    return Policy(name, members["pattern"], members["definition"], members["priority"], members["apply-to"])


# The broker does not federate; it only keeps the parameters, so that exported definitions have them.
COMPONENTS: Final[dict[str, Validator]] = {
    VHOST_LIMITS: _is_limits,
    OPERATOR_POLICY: _is_operator_policy,
    "shovel": _is_dictionary,
    "federation": federation.check_setting,
    "federation-upstream": federation.check_upstream,
    "federation-upstream-set": federation.check_upstream_set,
}


def check_value(value: Any) -> None:
    """Raise InvalidParameter for a value that is nested too deeply, or does not fit into an event."""
    try:
        fields.encode_table({"value": value})
    except (struct.error, ValueError):
        raise InvalidParameter("a name must not exceed 255 octets, nor a number 64 bits") from None
    if nested.levels(value) > LEVELS_MAX:
        raise InvalidParameter(f"a parameter must not be nested deeper than {LEVELS_MAX} levels")


class Component(ABC):
    """Acts on the parameters of a component. `Broker.components` has those that are registered."""

    @abstractmethod
    def check(self, name: str, value: Any, user: User | None) -> None:
        """Raise InvalidParameter for an invalid value, or one that the user must not set."""

    @abstractmethod
    def on_set(self, vhost: str, name: str, value: Any) -> None:
        """Act on a parameter that was set, replacing the one of that name."""

    @abstractmethod
    def on_cleared(self, vhost: str, name: str) -> None:
        """Act on a parameter that was cleared."""


def check(components: Mapping[str, Component], component: str, name: str, value: Any, user: User | None = None) -> None:
    """Raise InvalidParameter for a parameter that is invalid or that the user must not set.

    `components` are those of the broker. Without a user, the operator sets the parameter.
    """
    if component == POLICY:
        raise InvalidParameter("policies may not be set using this method")
    validate = COMPONENTS.get(component)
    if validate is None:
        raise InvalidParameter(f"component {component} not found")
    check_value(value)
    validate(name, value)
    if component in components:
        components[component].check(name, value, user)


class Parameters:
    """The parameters of a vhost; `values`, by component and name, are those without storage of their own."""

    def __init__(self, vhost: VHost) -> None:
        self._vhost = vhost
        self.values: dict[tuple[str, str], Any] = {}

    def __iter__(self) -> Iterator[Parameter]:
        """Yield the parameters that RabbitMQ lists, which excludes policies, sorted by component and name."""
        found = [Parameter(component, name, value) for (component, name), value in self.values.items()]
        found += [*self._limits(), *self._operator_policies()]
        return iter(sorted(found, key=lambda parameter: parameter[:2]))

    def of(self, component: str) -> list[Parameter]:
        """Return the parameters of a component, which may be `policy`."""
        if component == POLICY:
            return [_parameter(POLICY, policy) for policy in self._vhost.policies]
        return [parameter for parameter in self if parameter.component == component]

    def get(self, component: str, name: str) -> Any:
        """Return the value of a parameter. Raises DoesNotExist."""
        if (component, name) in self.values:
            return self.values[component, name]
        for parameter in self._elsewhere(component, name):
            if parameter.name == name:
                return parameter.value
        raise _absent()

    def _elsewhere(self, component: str, name: str) -> Iterator[Parameter]:
        """Yield what may be the parameter of that name, if it has a storage of its own."""
        if component == VHOST_LIMITS:
            yield from self._limits()
        elif component in (POLICY, OPERATOR_POLICY):
            vhost = self._vhost
            policies = vhost.policies if component == POLICY else vhost.operator_policies
            with contextlib.suppress(DoesNotExist):
                yield _parameter(component, policies[name])

    def set(self, component: str, name: str, value: Any, user: User | None = None) -> None:
        """Set a parameter, replacing the one of that name. Raises InvalidParameter."""
        vhost = self._vhost
        check(vhost.broker.components, component, name, value, user)
        if component == VHOST_LIMITS:
            vhost.limits.replace(value)
        elif component == OPERATOR_POLICY:
            vhost.operator_policies.set(policy_of(name, value))
        elif (component, name) not in self.values or self.values[component, name] != value:
            self.values[component, name] = value
            vhost.broker.journal.define(*journal_entries.of_parameter(vhost.name, component, name, value))
            vhost.broker.events.parameter_set(vhost.name, component, name, value)
            if component in vhost.broker.components:
                vhost.broker.components[component].on_set(vhost.name, name, value)

    def clear(self, component: str, name: str) -> None:
        """Remove a parameter. Raises DoesNotExist, and InvalidParameter for policies."""
        if component == POLICY:
            raise InvalidParameter("policies may not be cleared using this method")
        self.get(component, name)
        vhost = self._vhost
        if component == VHOST_LIMITS:
            vhost.limits.remove()
        elif component == OPERATOR_POLICY:
            vhost.operator_policies.clear(name)
        else:
            del self.values[component, name]
            vhost.broker.journal.undefine((journal_entries.PARAMETER, vhost.name, component, name))
            vhost.broker.events.parameter_cleared(vhost.name, component, name)
            self._on_cleared(component, name)

    def forget(self) -> None:
        """Remove all parameters from the journal, because the vhost is deleted."""
        while self.values:
            (component, name), _ = self.values.popitem()
            self._vhost.broker.journal.undefine((journal_entries.PARAMETER, self._vhost.name, component, name))
            self._on_cleared(component, name)

    def _on_cleared(self, component: str, name: str) -> None:
        registered = self._vhost.broker.components.get(component)
        if registered is not None:
            registered.on_cleared(self._vhost.name, name)

    def _limits(self) -> Iterator[Parameter]:
        limits = self._vhost.limits
        if limits.is_listed:
            # Erlang writes an empty object as an empty array.
            yield Parameter(VHOST_LIMITS, LIMITS, dict(limits.given) or [])

    def _operator_policies(self) -> Iterator[Parameter]:
        for policy in self._vhost.operator_policies:
            yield _parameter(OPERATOR_POLICY, policy)


class GlobalParameters:
    """The parameters that belong to no vhost: any JSON value under any name."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.values: dict[str, Any] = {}
        # Names of parameters that a node sets at its start, and that were removed since.
        self.removed: set[str] = set()

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Yield names and values, sorted by name."""
        return iter(sorted(self.values.items(), key=lambda item: item[0]))

    def __getitem__(self, name: str) -> Any:
        """Return the value of a parameter. Raises DoesNotExist."""
        if name not in self.values:
            raise _absent()
        return self.values[name]

    def set(self, name: str, value: Any) -> None:
        """Set a parameter, replacing the one of that name. Raises InvalidParameter."""
        check_value(value)
        if value == {}:
            # An empty list of pairs, in Erlang.
            value = []
        self.values[name] = value
        self.removed.discard(name)
        self._broker.journal.define(*journal_entries.of_global_parameter(name, value))
        self._broker.events.emit_action("parameter.set", component="global", name=name, value=value)

    def clear(self, name: str, *, is_own: bool = False) -> None:
        """Remove a parameter; with `is_own`, one that the node sets at each start. Raises DoesNotExist."""
        if name in self.values:
            del self.values[name]
            self._broker.journal.undefine((journal_entries.GLOBAL_PARAMETER, name))
        elif not is_own:
            raise _absent()
        if is_own:
            self.removed.add(name)
        self._broker.events.emit_action("parameter.cleared", component="global", name=name)


def _parameter(component: str, policy: Policy) -> Parameter:
    value = policy.as_event()
    return Parameter(component, value.pop("name"), value)


def _absent() -> DoesNotExist:
    return DoesNotExist("Parameter does not exist")
