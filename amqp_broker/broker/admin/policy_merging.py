"""Merging the definitions of a policy and an operator policy that apply to the same queue or exchange.

Source: rabbit_policy.erl, rabbit_policies.erl (merge_policy_value).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

Definition: TypeAlias = Mapping[str, Any]

MAX_AGE: Final = re.compile(r"([0-9]+)([YMDhms])")
UNIT_MS: Final = {
    "Y": 365 * 86_400_000,
    "M": 30 * 86_400_000,
    "D": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1000,
}
SMALLEST: Final = (
    "expires",
    "message-ttl",
    "max-length",
    "max-length-bytes",
    "max-in-memory-length",
    "max-in-memory-bytes",
    "delivery-limit",
    "consumer-timeout",
    "delayed-retry-max",
)
LARGEST: Final = ("target-group-size", "delayed-retry-min")


def merged(policy: Definition, operator_policy: Definition) -> dict[str, Any]:
    """Return the merged definition, sorted by key."""
    definition = dict(policy)
    for key, value in operator_policy.items():
        definition[key] = _operated(key, definition[key], value) if key in definition else value
    return dict(sorted(definition.items()))


def interval_ms(text: str) -> int | None:
    """Return the milliseconds of a text like `7D`; None if it is invalid or 0 (rabbit_amqqueue.erl, check_max_age)."""
    found = MAX_AGE.fullmatch(text)
    return int(found[1]) * UNIT_MS[found[2]] or None if found is not None else None


def _operated(key: str, value: Any, operator_value: Any) -> Any:
    """Return the value for a key of both policies: the tighter number, or the operator's."""
    if key in SMALLEST:
        return smaller(key, value, operator_value)
    if key in LARGEST:
        return max(value, operator_value)
    return operator_value


def smaller(key: str, one: int, other: int) -> int:
    """Return the tighter of two values."""
    # A negative delivery limit means no limit.
    if key == "delivery-limit" and (one < 0 or other < 0):
        return max(one, other)
    return min(one, other)
