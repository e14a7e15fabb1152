"""The policies and operator policies of a vhost: each change is durable and announced at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqp_broker.broker import journal_entries
from amqp_broker.broker.admin.policies import OPERATOR_KEYS, POLICY_VALUES, Policies, Policy

if TYPE_CHECKING:
    from amqp_broker.broker.vhost import VHost


class VHostPolicies(Policies):
    """The policies that users of a vhost set."""

    # The kind of the journal's entries.
    kind = "policy"

    def __init__(self, vhost: VHost) -> None:
        super().__init__(POLICY_VALUES)
        self._vhost = vhost

    def set(self, policy: Policy) -> None:
        """Set a policy, replacing the one of that name. Raises InvalidParameter."""
        if self.put(policy):
            vhost = self._vhost
            vhost.broker.journal.define(*journal_entries.of_policy(self.kind, vhost.name, policy))
            vhost.policies_changed(policy)
            vhost.broker.events.emit_action("policy.set", vhost=vhost.name, **policy.as_event())
            vhost.broker.advice.on_policy(vhost, policy)

    def clear(self, name: str) -> None:
        """Remove a policy. Raises DoesNotExist."""
        self.remove(name)
        vhost = self._vhost
        vhost.broker.journal.undefine((self.kind, vhost.name, name))
        vhost.policies_changed(None)
        vhost.broker.events.emit_action("policy.cleared", vhost=vhost.name, name=name)

    def forget(self) -> None:
        """Remove all policies from the journal, because the vhost is deleted."""
        for policy in self:
            self._vhost.broker.journal.undefine((self.kind, self._vhost.name, policy.name))


class VHostOperatorPolicies(VHostPolicies):
    """The operator policies, which users of the vhost cannot override; RabbitMQ also lists them as parameters."""

    kind = "operator_policy"

    def __init__(self, vhost: VHost) -> None:
        super().__init__(vhost)
        self.keys = OPERATOR_KEYS

    def set(self, policy: Policy) -> None:
        if self.put(policy):
            vhost, events = self._vhost, self._vhost.broker.events
            vhost.broker.journal.define(*journal_entries.of_policy(self.kind, vhost.name, policy))
            value = policy.as_event()
            events.parameter_set(vhost.name, self.kind, value.pop("name"), value)
            vhost.policies_changed(policy)
            events.emit_action("policy.set", vhost=vhost.name, **policy.as_event())

    def clear(self, name: str) -> None:
        self.remove(name)
        vhost, events = self._vhost, self._vhost.broker.events
        vhost.broker.journal.undefine((self.kind, vhost.name, name))
        events.parameter_cleared(vhost.name, self.kind, name)
        vhost.policies_changed(None)
        events.emit_action("operator.policy.cleared", vhost=vhost.name, name=name)
