"""The policies and operator policies of a vhost, and their application to its exchanges and queues.

Each change is durable and announced. It applies to one object after the other, in steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker import journal_entries
from amqp_broker.broker.admin.mirroring import MIRROR_KEYS
from amqp_broker.broker.admin.patterns import problem_with
from amqp_broker.broker.admin.policies import (
    DELAYED_RETRY_KEYS,
    MASTER_LOCATOR,
    OPERATOR_KEYS,
    POLICY_VALUES,
    Policies,
    Policy,
    definition_of,
)
from amqp_broker.broker.queues.queue_settings import effective
from amqp_broker.broker.scheduling.portions import Steps, finished

if TYPE_CHECKING:
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.vhost import VHost
    from amqp_broker.settings.profiles import Profile

# Queues that follow a change in one step.
QUEUES_AT_ONCE: Final = 16


def known_keys(keys: Collection[str], profile: Profile) -> frozenset[str]:
    """Return those of the keys that a version of RabbitMQ knows."""
    unknown = frozenset() if profile.delays_retries else DELAYED_RETRY_KEYS | {"consumer-disconnected-timeout"}
    if profile.release >= (4, 0):
        unknown |= MIRROR_KEYS
    return frozenset(keys) - unknown - (frozenset() if profile.has_master_locator else {MASTER_LOCATOR})


class VHostPolicies(Policies):
    """The policies that users of a vhost set."""

    # The kind of the journal's entries.
    kind = "policy"

    def __init__(self, vhost: VHost) -> None:
        super().__init__(known_keys(POLICY_VALUES, vhost.broker.profile))
        self._vhost = vhost

    def set(self, policy: Policy) -> None:
        """Set a policy, replacing the one of that name. Raises InvalidParameter."""
        finished(self.setting(policy))

    def setting(self, policy: Policy) -> Steps[None]:
        """Do `set` in steps."""
        self.check(policy)
        yield from self._try_names(policy)
        if self.put(policy):
            vhost = self._vhost
            vhost.broker.journal.define(*journal_entries.of_policy(self.kind, vhost.name, policy))
            yield from apply_to_all(vhost, policy.name, policy)
            vhost.broker.events.emit_action("policy.set", vhost=vhost.name, **policy.as_event())
            vhost.broker.advice.on_policy(vhost, policy)

    def _try_names(self, policy: Policy) -> Steps[None]:
        """Raise InvalidParameter for a pattern that takes too long for the names of the vhost."""
        problem = yield from problem_with(policy.pattern, [*self._vhost.exchanges, *self._vhost.queues])
        if problem:
            raise InvalidParameter(f"pattern should be regular expression but is invalid: {problem}")

    def clear(self, name: str) -> None:
        """Remove a policy. Raises DoesNotExist."""
        finished(self.clearing(name))

    def clearing(self, name: str) -> Steps[None]:
        """Do `clear` in steps."""
        self.remove(name)
        vhost = self._vhost
        vhost.broker.journal.undefine((self.kind, vhost.name, name))
        yield from apply_to_all(vhost, name, None)
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
        self.keys = known_keys(OPERATOR_KEYS, vhost.broker.profile)

    def setting(self, policy: Policy) -> Steps[None]:
        self.check(policy)
        yield from self._try_names(policy)
        if self.put(policy):
            vhost, events = self._vhost, self._vhost.broker.events
            vhost.broker.journal.define(*journal_entries.of_policy(self.kind, vhost.name, policy))
            value = policy.as_event()
            events.parameter_set(vhost.name, self.kind, value.pop("name"), value)
            yield from apply_to_all(vhost, policy.name, policy)
            events.emit_action("policy.set", vhost=vhost.name, **policy.as_event())

    def clearing(self, name: str) -> Steps[None]:
        self.remove(name)
        vhost, events = self._vhost, self._vhost.broker.events
        vhost.broker.journal.undefine((self.kind, vhost.name, name))
        events.parameter_cleared(vhost.name, self.kind, name)
        yield from apply_to_all(vhost, name, None)
        events.emit_action("operator.policy.cleared", vhost=vhost.name, name=name)


def apply_to_all(vhost: VHost, name: str, policy: Policy | None) -> Steps[None]:
    """Find the policies of exchanges and queues anew after that of a name was set or (None) cleared.

    Queues come last: they may drop messages, which are then routed as the new policies say, to queues that follow them,
    too. If the steps are given up, the rest follows at once.
    """
    exchanges, queues = deque(vhost.exchanges.values()), deque(vhost.queues.values())
    try:
        while exchanges or queues:
            _apply_to_next(vhost, exchanges, queues, name, policy)
            yield
    finally:
        while exchanges or queues:
            _apply_to_next(vhost, exchanges, queues, name, policy)


def _apply_to_next(
    vhost: VHost, exchanges: deque[Exchange], queues: deque[Queue], name: str, policy: Policy | None
) -> None:
    # All policies are tried only for objects that the change concerns: there may be thousands of both.
    if exchanges:
        exchange = exchanges.popleft()
        before = exchange.policy, exchange.operator_policy
        if _has(before, name) or (policy is not None and policy.applies_to_exchange(exchange)):
            apply_to_exchange(vhost, exchange)
            if before != (exchange.policy, exchange.operator_policy):
                vhost.topology_changed()
        return
    # In RabbitMQ, all queues hear of a policy before a dead letter comes from one to another.
    following = [queues.popleft() for _ in range(min(QUEUES_AT_ONCE, len(queues)))]
    with vhost.broker.dead_letters_held():
        for queue in following:
            is_concerned = _has((queue.policy, queue.operator_policy), name) or (
                policy is not None and policy.applies_to_queue(queue)
            )
            if is_concerned and not queue.is_deleted and apply_to_queue(vhost, queue):
                vhost.broker.events.queue_policy_changed(queue, policy)


def _has(applied: tuple[Policy | None, Policy | None], name: str) -> bool:
    return any(policy is not None and policy.name == name for policy in applied)


def apply_to_exchange(vhost: VHost, exchange: Exchange) -> None:
    """Apply the policies that match an exchange from now on."""
    exchange.policy = vhost.policies.for_exchange(exchange)
    exchange.operator_policy = vhost.operator_policies.for_exchange(exchange)


def apply_to_queue(vhost: VHost, queue: Queue) -> bool:
    """Apply the policies that match a queue from now on; return whether they are others than before."""
    policy, operator_policy = vhost.policies.for_queue(queue), vhost.operator_policies.for_queue(queue)
    if (policy, operator_policy) == (queue.policy, queue.operator_policy):
        return False
    queue.policy, queue.operator_policy = policy, operator_policy
    vhost.topology_changed()
    queue.use_by_policy()
    queue.apply(effective(queue.arguments, definition_of(policy), definition_of(operator_policy)))
    return True
