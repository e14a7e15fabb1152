"""The settings of a queue: its arguments merged with the policies that apply to it.

Of two numbers the smaller one applies; other arguments take precedence over policies, but for the overflow of a quorum
queue. An operator policy is merged with the other policy first, key by key, and can only tighten it: an argument with a
smaller number, or with another overflow, still applies. Source: RabbitMQ, "Policies"; rabbit_policy.erl,
rabbit_policies.erl (merge_policy_value), rabbit_queue_type_util.erl (args_policy_lookup).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from amqp_broker.amqp import fields
from amqp_broker.broker.admin.policy_merging import SMALLEST, Definition, interval_ms, merged, smaller
from amqp_broker.broker.queues.delayed_retries import RetryDelay, retry_delay

# Key of a policy -> argument: those with an effect here. A number is also in `SMALLEST` of policy_merging.py.
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
    retry_delay: RetryDelay | None = None
    age_max_ms: int | None = None
    segment_bytes_max: int | None = None

    @cached_property
    def rejects_publish(self) -> bool:
        """True if a full queue refuses new messages."""
        return self.overflow != "drop-head" and (self.length_max is not None or self.bytes_max is not None)


# Most queues have no settings; a hundred thousand share these.
DEFAULTS: Final = QueueSettings()


def effective(arguments: fields.Table, policy: Definition, operator_policy: Definition) -> QueueSettings:
    """Merge a queue's arguments with the definitions of its policy and operator policy."""
    if not arguments and not policy and not operator_policy:
        return DEFAULTS
    definition = merged(policy, operator_policy)
    if arguments.get("x-queue-type") == "stream":
        # Of streams alone the policy counts, whatever it says (rabbit_stream_queue.erl, policy_precedence).
        arguments = {name: value for name, value in arguments.items() if name.removeprefix("x-") not in definition}
    elif "overflow" in definition and arguments.get("x-queue-type") == "quorum":
        # So does the overflow of a quorum queue (rabbit_quorum_queue.erl, policyHasPrecedence).
        arguments = {name: value for name, value in arguments.items() if name != "x-overflow"}
    found: dict[str, Any] = {}
    for key, argument in POLICY_KEYS.items():
        if argument in arguments:
            value = arguments[argument]
            # The integer types of AMQP end here: what is worked and listed with is a number.
            is_number = fields.is_integer(value)
            found[key] = int(value) if is_number else value
            if key in definition and key in SMALLEST:
                # Numbers are smaller than values of any other type, which some arguments may have.
                found[key] = smaller(key, found[key], definition[key]) if is_number else definition[key]
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
        retry_delay=_retry_delay(arguments, definition),
        delivery_limit=_count_or(-1, found.get("delivery-limit")),
        consumer_timeout_ms=_count_or(0, found.get("consumer-timeout")),
        age_max_ms=interval_ms(found.get("max-age", "")),
        segment_bytes_max=found.get("stream-max-segment-size-bytes"),
    )


def _retry_delay(arguments: fields.Table, definition: Definition) -> RetryDelay | None:
    """Return the merged delay of retries: with the type of the policy, and the smaller one of two numbers."""
    if "delayed-retry-type" not in definition and "x-delayed-retry-type" not in arguments:
        return None

    def smallest(key: str) -> int:
        values: list[Any] = [arguments.get(f"x-{key}"), definition.get(key)]
        return min((int(value) for value in values if fields.is_integer(value)), default=0)

    kind = definition.get("delayed-retry-type", arguments.get("x-delayed-retry-type"))
    return retry_delay(kind, smallest("delayed-retry-min"), smallest("delayed-retry-max"))


def _count_or(none: int, value: Any) -> int | None:
    """Return a number that was not validated; `none`, which stands for no limit, for a value of another type."""
    return value if value is None or fields.is_integer(value) else none
