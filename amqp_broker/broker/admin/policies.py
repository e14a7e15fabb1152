"""Policies: settings for all queues and exchanges whose names match a pattern.

At most one policy and one operator policy apply to a queue or exchange: the one of the highest priority that matches
its name and kind and has no key that the queue's type does not support. RabbitMQ does not define which of two policies
with the same priority applies; here it is the first by name.
Source: RabbitMQ, "Policies"; rabbit_policy.erl, rabbit_policies.erl, and the capabilities of each queue type.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import DoesNotExist, InvalidParameter
from amqp_broker.broker.admin import patterns
from amqp_broker.broker.admin.mirroring import MIRROR_KEYS, wrong_mirrors
from amqp_broker.broker.admin.policy_merging import interval_ms, merged

if TYPE_CHECKING:
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.queues.queue import Queue


# Upper bound of stream-max-segment-size-bytes in policies and arguments.
SEGMENT_BYTES_MAX: Final = 3_000_000_000
APPLY_TO_QUEUE_TYPE: Final = {"classic": "classic_queues", "quorum": "quorum_queues", "stream": "streams"}
APPLY_TO: Final = ("all", "exchanges", "queues", *APPLY_TO_QUEUE_TYPE.values())

# A policy with one of these keys does not apply to queues of the type.
UNSUPPORTED: Final[dict[str, frozenset[str]]] = {
    "classic": frozenset(
        {
            "delivery-limit",
            "dead-letter-strategy",
            "max-in-memory-length",
            "max-in-memory-bytes",
            "target-group-size",
            "max-age",
            "stream-max-segment-size-bytes",
            "stream-filter-size-bytes",
            "initial-cluster-size",
        }
    ),
    "quorum": frozenset(
        {
            "queue-mode",
            "queue-master-locator",
            "max-age",
            "stream-max-segment-size-bytes",
            "stream-filter-size-bytes",
            "initial-cluster-size",
            *MIRROR_KEYS,
        }
    ),
    "stream": frozenset(
        {
            *MIRROR_KEYS,
            "expires",
            "message-ttl",
            "dead-letter-exchange",
            "dead-letter-routing-key",
            "dead-letter-strategy",
            "max-length",
            "max-in-memory-length",
            "max-in-memory-bytes",
            "overflow",
            "queue-mode",
            "queue-master-locator",
            "delivery-limit",
        }
    ),
}


@dataclass(frozen=True)
class Policy:
    """A policy or operator policy, as it was set."""

    name: str
    pattern: str
    definition: Mapping[str, Any]
    priority: int | float = 0
    apply_to: str = "all"

    def as_event(self) -> dict[str, Any]:
        """Return the headers of an event about the policy."""
        return {
            "name": self.name,
            "pattern": self.pattern,
            "apply-to": self.apply_to,
            "definition": dict(self.definition),
            "priority": self.priority,
        }

    def applies_to_queue(self, queue: Queue) -> bool:
        return (
            self.apply_to in ("all", "queues", APPLY_TO_QUEUE_TYPE[queue.type])
            and UNSUPPORTED[queue.type].isdisjoint(self.definition)
            and patterns.matches(self.pattern, queue.name)
        )

    def applies_to_exchange(self, exchange: Exchange) -> bool:
        return self.apply_to in ("all", "exchanges") and patterns.matches(self.pattern, exchange.name)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_int(value: Any) -> bool:
    # A field table cannot hold more than 64 bits.
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63


def _is_number(value: Any) -> bool:
    return _is_int(value) or isinstance(value, float)


def _is_count(value: Any) -> bool:
    return _is_int(value) and value >= 0


def _is_age(value: Any) -> bool:
    return _is_text(value) and interval_ms(value) is not None


def _is_positive(value: Any) -> bool:
    return _is_count(value) and value > 0


def _one_of(*choices: str | int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, (str, int)) and not isinstance(value, bool) and value in choices


# By key: a test of the value, and RabbitMQ's name of the value for errors.
POLICY_VALUES: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "alternate-exchange": (_is_text, "alternate exchange name"),
    "consumer-disconnected-timeout": (_is_count, "consumer disconnected timeout"),
    "consumer-timeout": (_is_count, "consumer timeout"),
    "dead-letter-exchange": (_is_text, "dead letter exchange name"),
    "dead-letter-routing-key": (_is_text, "dead letter routing key"),
    "dead-letter-strategy": (_one_of("at-most-once", "at-least-once"), "dead letter strategy"),
    "delayed-retry-max": (_is_positive, "delayed retry maximum delay. Must be a positive integer"),
    "delayed-retry-min": (_is_positive, "delayed retry minimum delay. Must be a positive integer"),
    "delayed-retry-type": (
        _one_of("all", "failed", "returned", "disabled"),
        "delayed retry type. Must be one of: all, failed, returned, disabled",
    ),
    "delivery-limit": (_is_int, "delivery limit"),
    "expires": (_is_positive, "queue expiry"),
    "initial-cluster-size": (_is_count, "cluster size"),
    "max-age": (_is_age, "max age"),
    "max-in-memory-bytes": (_is_count, "maximum memory in bytes"),
    "max-in-memory-length": (_is_count, "maximum memory in bytes"),
    "max-length": (_is_count, "maximum length"),
    "max-length-bytes": (_is_count, "maximum length in bytes"),
    "message-ttl": (_is_count, "message TTL"),
    "overflow": (_one_of("drop-head", "reject-publish", "reject-publish-dlx"), "overflow value"),
    "queue-leader-locator": (
        _one_of("client-local", "balanced", "random", "least-leaders"),
        "queue leader locator value",
    ),
    "queue-master-locator": (
        _one_of("client-local", "balanced", "random", "least-leaders", "min-masters"),
        "master locator",
    ),
    "queue-mode": (_one_of("default", "lazy"), "queue-mode value"),
    "queue-version": (_one_of(1, 2), "queue-version value"),
    "stream-filter-size-bytes": (
        lambda value: _is_count(value) and 16 <= value <= 255,
        "filter size. Valid range is 16-255",
    ),
    "stream-max-segment-size-bytes": (lambda value: _is_count(value) and value <= SEGMENT_BYTES_MAX, "segment size"),
    "target-group-size": (_is_positive, "qq target count value"),
    # The broker does not federate; these are kept for exported definitions.
    "federation-upstream": (_is_text, "federation upstream name"),
    "federation-upstream-pattern": (_is_text, "federation upstream pattern name"),
    "federation-upstream-set": (_is_text, "federation upstream set name"),
    # Those of mirrored queues, which `wrong_mirrors` checks; RabbitMQ had them before 4.0.
    **dict.fromkeys(MIRROR_KEYS, (lambda value: True, "")),
    # Those of the sharding plugin, which `_wrong_shards` checks; they have no effect.
    "routing-key": (lambda value: True, ""),
    "shards-per-node": (lambda value: True, ""),
}
MASTER_LOCATOR: Final = "queue-master-locator"
DELAYED_RETRY_KEYS: Final = frozenset({"delayed-retry-max", "delayed-retry-min", "delayed-retry-type"})
OPERATOR_KEYS: Final = frozenset(
    {
        *DELAYED_RETRY_KEYS,
        MASTER_LOCATOR,
        "delivery-limit",
        "expires",
        "max-in-memory-bytes",
        "max-in-memory-length",
        "max-length",
        "max-length-bytes",
        "message-ttl",
        "overflow",
        "queue-version",
        "target-group-size",
    }
)


def effective_definition(policed: Queue | Exchange) -> dict[str, Any]:
    """Return the merged definitions of the policy and operator policy of a queue or exchange."""
    return merged(definition_of(policed.policy), definition_of(policed.operator_policy))


def definition_of(policy: Policy | None) -> Mapping[str, Any]:
    return policy.definition if policy is not None else {}


class Policies:
    """The policies or operator policies of a vhost. After a change, the caller updates queues and exchanges."""

    def __init__(self, keys: Collection[str]) -> None:
        """Create policies; `keys` are those that a definition may have."""
        self.keys = keys
        self._by_name: dict[str, Policy] = {}

    def __getitem__(self, name: str) -> Policy:
        """Return the policy of that name. Raises DoesNotExist."""
        policy = self._by_name.get(name)
        if policy is None:
            raise DoesNotExist(f"policy '{name}' does not exist")
        return policy

    def __iter__(self) -> Iterator[Policy]:
        """Yield all policies in the order in which they are tried."""
        return iter(sorted(self._by_name.values(), key=lambda policy: (-policy.priority, policy.name)))

    def __len__(self) -> int:
        return len(self._by_name)

    def put(self, policy: Policy) -> bool:
        """Add a policy, replacing the one of that name; return whether that changes anything.

        Raises InvalidParameter, and changes nothing then.
        """
        self.check(policy)
        if self._by_name.get(policy.name) == policy:
            return False
        self._by_name[policy.name] = policy
        return True

    def restore(self, policy: Policy) -> None:
        """Add a policy from the journal: it was accepted once, maybe by another version of RabbitMQ's rules."""
        self._by_name[policy.name] = policy

    def check(self, policy: Policy) -> None:
        """Raise InvalidParameter for an invalid policy."""
        check(policy, self.keys)

    def remove(self, name: str) -> Policy:
        """Remove and return a policy. Raises DoesNotExist."""
        policy = self[name]
        del self._by_name[name]
        return policy

    def for_queue(self, queue: Queue) -> Policy | None:
        """Return the policy that applies to a queue."""
        return next((policy for policy in self if policy.applies_to_queue(queue)), None)

    def for_exchange(self, exchange: Exchange) -> Policy | None:
        """Return the policy that applies to an exchange."""
        return next((policy for policy in self if policy.applies_to_exchange(exchange)), None)


def check(policy: Policy, keys: Collection[str]) -> None:
    """Raise InvalidParameter for an invalid policy, with all its faults in RabbitMQ's words and order."""
    wrong = [
        _wrong_definition(policy.definition, keys),
        _wrong_scope(policy.apply_to),
        _wrong_pattern(policy.pattern),
        "" if _is_number(policy.priority) else _no_number("priority", policy.priority),
    ]
    if any(wrong):
        raise InvalidParameter("\n".join(text for text in wrong if text))


def _no_number(name: str, value: Any) -> str:
    return f"{name} should be a number, actually was {fields.json_term(value)}"


def _wrong_pattern(pattern: Any) -> str:
    if not isinstance(pattern, str):
        return f"pattern should be a binary but was {fields.json_term(pattern)}"
    problem = patterns.problem_of(pattern)
    return f"pattern should be regular expression but is invalid: {problem}" if problem else ""


def _wrong_scope(apply_to: Any) -> str:
    if apply_to in APPLY_TO:
        return ""
    return (
        f"apply-to '{apply_to}' unrecognised; should be one of: 'queues', 'classic_queues',  "
        "'quorum_queues', 'streams', 'exchanges', or 'all'"
    )


def _wrong_delays(definition: Mapping[str, Any]) -> str:
    kind, shortest, longest = (definition.get(f"delayed-retry-{name}") for name in ("type", "min", "max"))
    if kind not in (None, "disabled") and shortest is None:
        return f"delayed-retry-min is required when delayed-retry-type is {kind}"
    if shortest is not None and longest is not None and longest < shortest:
        return f"delayed-retry-max ({longest}) must not be smaller than delayed-retry-min ({shortest})"
    return ""


def _wrong_shards(definition: Mapping[str, Any]) -> str:
    """Return the fault of the keys of the sharding plugin (rabbit_sharding_policy_validator.erl)."""
    shards, routing_key = definition.get("shards-per-node", 0), definition.get("routing-key", "")
    if "routing-key" in definition and "shards-per-node" not in definition:
        return "shards-per-node must be specified"
    if isinstance(shards, bool) or not isinstance(shards, int | float):
        return _no_number("shards-per-node", shards)
    if shards < 0:
        return f"shards-per-node should be greater than 0, actually was {fields.json_term(shards)}"
    if not isinstance(routing_key, str):
        return f"routing-key should be binary, actually was {fields.json_term(routing_key)}"
    return ""


def _wrong_definition(definition: Any, keys: Collection[str]) -> str:
    if not isinstance(definition, Mapping):
        return f"definition must be a dictionary: {fields.json_term(definition)}"
    if not definition:
        return "no policy provided"
    for key, value in definition.items():
        if key in keys:
            is_valid, kind = POLICY_VALUES[key]
            if not is_valid(value):
                return f"{fields.json_term(value)} is not a valid {kind}"
    if MASTER_LOCATOR in definition and MASTER_LOCATOR not in keys:
        return f"use of deprecated {MASTER_LOCATOR} argument is not permitted"
    delays = {key: value for key, value in definition.items() if key in DELAYED_RETRY_KEYS.intersection(keys)}
    mirrors = {key: value for key, value in definition.items() if key in MIRROR_KEYS.intersection(keys)}
    if wrong := _wrong_delays(delays) or _wrong_shards(definition) or wrong_mirrors(mirrors):
        return wrong
    unknown = [(key, definition[key]) for key in sorted(definition) if key not in keys]
    if not unknown:
        return ""
    terms = ",".join(f"{{{fields.json_term(key)},{fields.json_term(value)}}}" for key, value in unknown)
    return f"[{terms}] are not recognised policy settings"
