"""What a queue is told to do: its arguments and the policies that apply to it, merged into one object.

Of numbers the smaller counts, of the rest the argument before the policy. An operator policy is merged with the other
policy first, key by key, and can only tighten: an argument with a smaller number, or another overflow, still counts.
Source: RabbitMQ, "Policies"; rabbit_policy.erl, rabbit_policies.erl (merge_policy_value), rabbit_queue_type_util.erl
(args_policy_lookup).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from amqp_broker import fields

# Definition key -> argument: what a queue follows here, whichever of the two says it.
POLICY_KEYS: Final = {
    "expires": "x-expires",
    "message-ttl": "x-message-ttl",
    "dead-letter-exchange": "x-dead-letter-exchange",
    "dead-letter-routing-key": "x-dead-letter-routing-key",
    "dead-letter-strategy": "x-dead-letter-strategy",
    "max-length": "x-max-length",
    "max-length-bytes": "x-max-length-bytes",
    "overflow": "x-overflow",
    "delivery-limit": "x-delivery-limit",
    "consumer-timeout": "x-consumer-timeout",
    "max-age": "x-max-age",
    "stream-max-segment-size-bytes": "x-stream-max-segment-size-bytes",
}
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
)

Definition = Mapping[str, Any]


@dataclass(frozen=True)
class QueueSettings:
    """The effective settings of a queue; None is "not set"."""

    expires_ms: int | None = None
    message_ttl_ms: int | None = None
    dead_letter_exchange: str | None = None
    dead_letter_routing_key: str | None = None
    dead_letter_strategy: str | None = None
    length_max: int | None = None
    bytes_max: int | None = None
    overflow: str = "drop-head"
    delivery_limit: int | None = None
    consumer_timeout_ms: int | None = None
    age_max_ms: int | None = None
    segment_bytes_max: int | None = None

    @cached_property
    def rejects_publish(self) -> bool:
        """Whether the queue refuses a message that is one too many."""
        return self.overflow != "drop-head" and (self.length_max is not None or self.bytes_max is not None)

    @cached_property
    def drops_head(self) -> bool:
        """Whether the queue drops its first message for one that is one too many."""
        return self.overflow == "drop-head" and (self.length_max is not None or self.bytes_max is not None)


def merged(policy: Definition, operator_policy: Definition) -> dict[str, Any]:
    """The effective definition of a policy and an operator policy that apply to the same thing, sorted by key."""
    definition = dict(policy)
    for key, value in operator_policy.items():
        definition[key] = _operated(key, definition[key], value) if key in definition else value
    return dict(sorted(definition.items()))


def effective(arguments: fields.Table, policy: Definition, operator_policy: Definition) -> QueueSettings:
    """Merge a queue's arguments with the definitions of its policy and operator policy."""
    definition = merged(policy, operator_policy)
    if arguments.get("x-queue-type") == "stream":
        # Of streams alone the policy counts, whatever it says (rabbit_stream_queue.erl, policy_precedence).
        arguments = {name: value for name, value in arguments.items() if name.removeprefix("x-") not in definition}
    found: dict[str, Any] = {}
    for key, argument in POLICY_KEYS.items():
        if argument in arguments and key in definition and key in SMALLEST:
            found[key] = _smaller(key, arguments[argument], definition[key])
        elif argument in arguments:
            found[key] = arguments[argument]
        elif key in definition:
            found[key] = definition[key]
    return QueueSettings(
        expires_ms=found.get("expires"),
        message_ttl_ms=found.get("message-ttl"),
        dead_letter_exchange=found.get("dead-letter-exchange"),
        dead_letter_routing_key=found.get("dead-letter-routing-key"),
        dead_letter_strategy=found.get("dead-letter-strategy"),
        length_max=found.get("max-length"),
        bytes_max=found.get("max-length-bytes"),
        overflow=found.get("overflow", "drop-head"),
        delivery_limit=found.get("delivery-limit"),
        consumer_timeout_ms=found.get("consumer-timeout"),
        age_max_ms=interval_ms(found.get("max-age", "")),
        segment_bytes_max=found.get("stream-max-segment-size-bytes"),
    )


def interval_ms(text: str) -> int | None:
    """Milliseconds of a text like `7D`; None if it is none, or says 0 (rabbit_amqqueue.erl, check_max_age)."""
    found = MAX_AGE.fullmatch(text)
    return int(found[1]) * UNIT_MS[found[2]] or None if found is not None else None


def _operated(key: str, value: Any, operator_value: Any) -> Any:
    """What counts where both policies say something: the operator's word, or the smaller of two numbers."""
    if key in SMALLEST:
        return _smaller(key, value, operator_value)
    if key == "target-group-size":
        return max(value, operator_value)
    return operator_value


def _smaller(key: str, one: int, other: int) -> int:
    # A negative delivery limit is none, so the other one is tighter.
    if key == "delivery-limit" and (one < 0 or other < 0):
        return max(one, other)
    return min(one, other)
