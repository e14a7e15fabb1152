"""Which RabbitMQ the broker imitates: one field for each difference between its versions that a client can see.

The value that most versions share is the default. Where each fact stands is told by its test: tests/test_compat.py and
tests/broker/test_quorum_queue_versions.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final


@dataclass(frozen=True)
class Profile:
    """One version of RabbitMQ, where it is not like the others."""

    version: str
    auth_mechanisms: str = "PLAIN AMQPLAIN ANONYMOUS"
    frame_max_lowest: int = 8192
    message_bytes_max: int = 16_777_216
    # The share of memory beyond which publishers are blocked.
    memory_watermark: str = "0.6"
    # How often a message of a quorum queue may come back if the queue does not say; None: as often as it likes.
    delivery_limit: int | None = 20
    # Whether only deliveries that failed count for that limit (reject, a lost channel), not those given back (nack).
    counts_failures: bool = False
    # Priorities of messages that quorum queues tell apart.
    quorum_priority_levels: int = 2
    # Whether a consumer of higher priority becomes the single active one of a quorum queue as soon as that is idle.
    priority_takes_over: bool = True
    # Whether an x-death header that a client publishes is the message's history.
    client_deaths_count: bool = False
    # Whether each direct reply has a delivery tag of its own.
    reply_tags_count: bool = True
    # Whether binding the name of a direct reply-to finds no such queue (404), rather than being forbidden (403).
    reply_names_are_bindable: bool = True
    # Whether a mandatory reply comes back to who sent it if nobody waits for it.
    returns_late_replies: bool = False
    # Whether a queue may be neither durable nor exclusive.
    has_transient_queues: bool = True
    # Whether basic.qos global limits the channel; else it is taken for one that is not global.
    has_global_prefetch: bool = True
    has_local_random: bool = True
    has_queue_modes: bool = True
    has_queue_version_1: bool = True
    has_master_locator: bool = True
    # Whether it takes any permission to declare passively.
    passive_needs_permission: bool = False
    # Whether only quorum queues wait no longer than the consumer timeout, and then end the consumer, not the channel.
    times_out_quorum_only: bool = False

    def without(self, features: Iterable[str]) -> Profile:
        """The same, but some deprecated features are not permitted."""
        changes: dict[str, Any] = {DEPRECATED[feature]: False for feature in features if feature in DEPRECATED}
        return replace(self, **changes) if changes else self


# Features that an administrator may forbid (deprecated_features.permit), and what they are.
DEPRECATED: Final = {
    "transient_nonexcl_queues": "has_transient_queues",
    "global_qos": "has_global_prefetch",
    "queue_master_locator": "has_master_locator",
}


PROFILES: Final = {
    "3.13": Profile(
        version="3.13.7",
        auth_mechanisms="PLAIN AMQPLAIN",
        frame_max_lowest=4096,
        message_bytes_max=134_217_728,
        memory_watermark="0.4",
        delivery_limit=None,
        quorum_priority_levels=1,
        priority_takes_over=False,
        client_deaths_count=True,
        reply_tags_count=False,
        returns_late_replies=True,
        has_local_random=False,
    ),
    "4.2": Profile(version="4.2.1"),
    "4.3": Profile(
        version="4.3.5",
        has_transient_queues=False,
        has_global_prefetch=False,
        has_queue_modes=False,
        has_queue_version_1=False,
        has_master_locator=False,
        passive_needs_permission=True,
        times_out_quorum_only=True,
        counts_failures=True,
        quorum_priority_levels=32,
        reply_names_are_bindable=False,
    ),
}
DEFAULT: Final = "4.2"
