"""Policies and operator policies with each key: a valid value, and wrong ones."""

from __future__ import annotations

from typing import Final

from compat.management.http_asking import Ask, put

# A valid value of each key that a RabbitMQ with the plugins of this suite knows, and of some that it does not.
VALID: Final[dict[str, object]] = {
    "alternate-exchange": "x",
    "consumer-disconnected-timeout": 60000,
    "consumer-timeout": 60000,
    "dead-letter-exchange": "x",
    "dead-letter-routing-key": "x",
    "dead-letter-strategy": "at-least-once",
    "delayed-retry-max": 1000,
    "delayed-retry-min": 1000,
    "delayed-retry-type": "all",
    "delivery-limit": 5,
    "expires": 60000,
    "federation-upstream": "u",
    "federation-upstream-pattern": "u.*",
    "federation-upstream-set": "all",
    "ha-mode": "all",
    "initial-cluster-size": 3,
    "max-age": "1D",
    "max-in-memory-bytes": 5,
    "max-in-memory-length": 5,
    "max-length": 5,
    "max-length-bytes": 5,
    "max-priority": 5,
    "message-ttl": 60000,
    "overflow": "reject-publish",
    "queue-leader-locator": "balanced",
    "queue-master-locator": "min-masters",
    "queue-mode": "lazy",
    "queue-version": 2,
    "stream-filter-size-bytes": 16,
    "stream-max-segment-size-bytes": 1_000_000,
    "target-group-size": 3,
    "unknown": "<<x>>",
}
WRONG: Final = (-1, 0, "x", True, ["a"])
OTHERS: Final[dict[str, tuple[object, ...]]] = {
    "delayed-retry-type": ("failed", "returned", "disabled"),
    "max-age": ("1", "D", "0D", "1d"),
    "queue-leader-locator": ("client-local", "random", "least-leaders", "min-masters"),
    "queue-master-locator": ("client-local", "random", "balanced"),
    "queue-version": (1, 3),
    "stream-filter-size-bytes": (15, 255, 256),
    "stream-max-segment-size-bytes": (3_000_000_001,),
    "target-group-size": (1,),
}


def _set(kind: str, key: str, value: object) -> Ask:
    return put(f"{kind}/%2F/{key}", {"pattern": "^none$", "definition": {key: value}})


POLICY_KEYS: Final = [
    *(_set("policies", key, value) for key, valid in VALID.items() for value in (valid, *WRONG, *OTHERS.get(key, ()))),
    *(_set("operator-policies", key, value) for key, valid in VALID.items() for value in (valid, -1)),
]
