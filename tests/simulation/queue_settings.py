"""The settings of a queue from its arguments and policies: the rules again, as short as possible."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

# The smallest number applies, or the first of argument, operator policy and policy.
NUMBERS = ["message-ttl", "expires", "max-length", "max-length-bytes", "delivery-limit", "consumer-timeout"]
TEXTS = ["dead-letter-exchange", "dead-letter-routing-key", "overflow"]

DELIVERY_LIMIT = 20
CONSUMER_TIMEOUT_MS = 1_800_000


@dataclass(frozen=True)
class PolicyModel:
    name: str
    pattern: str
    apply_to: str
    priority: int
    definition: dict[str, Any]

    def applies(self, kind: str, name: str) -> bool:
        """`kind` is what the name is of: classic_queues, quorum_queues or exchanges."""
        if kind == "classic_queues" and "delivery-limit" in self.definition:
            return False
        kinds = {"all", kind} if kind == "exchanges" else {"all", "queues", kind}
        return self.apply_to in kinds and re.search(self.pattern, name) is not None


def policy_for(policies: list[PolicyModel], kind: str, name: str) -> PolicyModel | None:
    """The one that applies; of equal ones the first by name."""
    found = [policy for policy in policies if policy.applies(kind, name)]
    return min(found, key=lambda policy: (-policy.priority, policy.name), default=None)


@dataclass(frozen=True)
class Settings:
    """The settings of a queue; None is "not set"."""

    ttl_ms: int | None = None
    expires_ms: int | None = None
    length_max: int | None = None
    bytes_max: int | None = None
    delivery_limit: int | None = None
    consumer_timeout_ms: int = CONSUMER_TIMEOUT_MS
    dead_letter_exchange: str | None = None
    dead_letter_routing_key: str | None = None
    overflow: str = "drop-head"

    @property
    def refuses(self) -> bool:
        """Return whether a full queue refuses messages instead of dropping its head."""
        return self.overflow != "drop-head" and (self.length_max is not None or self.bytes_max is not None)


def settings_of(
    is_quorum: bool, arguments: dict[str, Any], policy: PolicyModel | None, operator_policy: PolicyModel | None
) -> Settings:
    said = [
        {name.removeprefix("x-"): value for name, value in arguments.items()},
        operator_policy.definition if operator_policy else {},
        policy.definition if policy else {},
    ]
    values = {name: [one[name] for one in said if name in one] for name in NUMBERS + TEXTS}
    # A negative number is no limit.
    numbers = {name: min((value for value in values[name] if value >= 0), default=None) for name in NUMBERS}
    texts = {name: next(iter(values[name]), None) for name in TEXTS}
    overflow = texts["overflow"] or "drop-head"
    if is_quorum and len(values["overflow"]) > 1 and "overflow" in said[0]:
        # Any policy comes before the argument of a quorum queue.
        overflow = values["overflow"][1]
    delivery_limit = numbers["delivery-limit"] if values["delivery-limit"] else DELIVERY_LIMIT
    timeout_ms = numbers["consumer-timeout"]
    return Settings(
        ttl_ms=numbers["message-ttl"],
        expires_ms=numbers["expires"],
        length_max=numbers["max-length"],
        bytes_max=numbers["max-length-bytes"],
        delivery_limit=delivery_limit if is_quorum else None,
        consumer_timeout_ms=CONSUMER_TIMEOUT_MS if timeout_ms is None else timeout_ms,
        dead_letter_exchange=texts["dead-letter-exchange"],
        dead_letter_routing_key=texts["dead-letter-routing-key"],
        # Quorum queues do not dead-letter what they refuse, and drop instead.
        overflow="drop-head" if is_quorum and overflow == "reject-publish-dlx" else overflow,
    )
