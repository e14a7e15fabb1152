"""Versions of RabbitMQ to imitate: one field for each difference between them that a client can see.

Defaults are the values that most versions share. The source of each fact is in its test:
tests/settings/test_profiles.py and tests/broker/queues/test_quorum_versions.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final


@dataclass(frozen=True)
class Profile:
    """One version of RabbitMQ, as far as it differs from the others."""

    version: str
    auth_mechanisms: str = "PLAIN AMQPLAIN ANONYMOUS"
    frame_max_lowest: int = 8192
    message_bytes_max: int = 16_777_216
    # Share of memory beyond which publishers are blocked.
    memory_watermark: str = "0.6"
    # Redeliveries after which a quorum queue without a limit of its own drops a message; None: no limit.
    delivery_limit: int | None = 20
    # A negative delivery limit stands for none; otherwise messages are given up with their first return.
    has_unlimited_deliveries: bool = True
    # Only failed deliveries (reject, a lost channel) count for that limit, returned ones (nack) do not.
    counts_failures: bool = False
    # A message that a client returns to a quorum queue without a delivery limit goes behind all others.
    returns_to_tail: bool = True
    # The consumers of a lost channel return their messages to a quorum queue in the order of their tags, otherwise in
    # that of their subscriptions, before those of basic.get.
    returns_by_tag: bool = False
    # Of several messages that a quorum queue drops at once, the last is dead-lettered first.
    drops_in_reverse: bool = True
    # Quorum queues delay returned messages if their arguments or policies say so.
    delays_retries: bool = False
    # For x-expires, another policy is a use of a quorum queue.
    policies_use_quorum: bool = True
    # A purge of a quorum queue drops dead letters that wait for their targets, too.
    purges_dead_letters: bool = False
    # The octets of a message in a quorum queue are those of its properties and its body, otherwise of its body alone.
    quorum_counts_properties: bool = False
    # Number of message priorities of a quorum queue.
    quorum_priority_levels: int = 2
    # The first message of each priority of a quorum queue expires, and not only the one that is delivered next.
    quorum_expires_by_level: bool = False
    # The single active consumer of a quorum queue is one of the highest priority: a consumer of higher priority follows
    # it once it is idle.
    priority_activates: bool = True
    # Dead letters bring the number of their failed deliveries to a quorum queue, where they count for its limit.
    quorum_takes_failures: bool = True
    # Classic queues count failed deliveries, too, and mark dead letters with such a number as redelivered.
    classic_counts_failures: bool = False
    # Headers leave the broker sorted by key, each key once; expirations without sign and zeros. Exchanges see the last
    # value of a key, and times in ms.
    normalizes_properties: bool = True
    # Streams deliver transient messages with delivery_mode=1, whatever they were published with.
    streams_name_delivery_mode: bool = True
    # The header CC of a dead letter stays if x-dead-letter-routing-key replaces the routing keys.
    keeps_copies: bool = True
    # An x-death header that a client publishes counts as the message's history.
    client_deaths_count: bool = False
    # Each direct reply has its own delivery tag.
    reply_tags_count: bool = True
    # Binding the name of a direct reply fails with 404 (no such queue) rather than 403 (forbidden).
    reply_names_are_bindable: bool = True
    # A mandatory direct reply is returned to its publisher if no consumer waits for it.
    returns_late_replies: bool = False
    # A queue may be neither durable nor exclusive.
    has_transient_queues: bool = True
    # The type is among the arguments of each queue, and the arguments of one declared without a type are sorted.
    adds_queue_type: bool = True
    # A vhost without a default queue type takes that of the node when it is created or changed, and keeps it.
    notes_queue_type: bool = True
    # An empty x-queue-type stands for none.
    takes_empty_type: bool = False
    # Declaring a stream again compares x-max-age in milliseconds.
    compares_age_in_ms: bool = False
    # The text about basic.get and a single active consumer names the type of the queue as an Erlang binary.
    names_type_as_binary: bool = False
    # Wrong names of direct replies, and basic.cancel-ok from a client, crash the channel (541).
    crashes_channels: bool = False
    # basic.qos with global limits the channel; otherwise it works as without global.
    has_global_prefetch: bool = True
    # A commit finds the queues of its publishes by their names, otherwise these are the queues at the publish.
    commits_by_name: bool = False
    # A commit to a queue that was deleted closes the connection (506), unless another queue has its name.
    commits_need_queues: bool = False
    # A message's topics, with those of CC and BCC, and its user_id are checked after expiration and headers, otherwise
    # before them, and its own topic alone.
    checks_rights_last: bool = True
    # A refused routing key of a topic exchange is reported with the action: read or write.
    names_topic_action: bool = True
    has_local_random: bool = True
    has_queue_modes: bool = True
    has_queue_version_1: bool = True
    has_master_locator: bool = True
    # Passive declaration requires some permission.
    passive_needs_permission: bool = False
    # Only quorum queues have the consumer timeout, which then cancels the consumer and keeps the channel open.
    times_out_quorum_only: bool = False

    # Deprecated features that this version permits, and an administrator refuses.
    denied_features: frozenset[str] = frozenset()

    @cached_property
    def release(self) -> tuple[int, int]:
        """The major and minor version number. Arguments, the HTTP API and the metrics depend on them."""
        major, minor, _ = self.version.split(".")
        return int(major), int(minor)

    def with_features(self, permitted: Iterable[str], denied: Iterable[str]) -> Profile:
        """Return this profile with the choices that an administrator made about deprecated features."""
        granted: dict[str, bool] = {DEPRECATED[name]: True for name in permitted if name in DEPRECATED}
        refused = frozenset(name for name in denied if name in DEPRECATED and getattr(self, DEPRECATED[name]))
        changes: dict[str, Any] = {**granted, **{DEPRECATED[name]: False for name in refused}}
        return replace(self, **changes, denied_features=refused) if changes else self


# Features that an administrator may permit or refuse (deprecated_features.permit), and their fields.
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
        returns_by_tag=True,
        has_unlimited_deliveries=False,
        priority_activates=False,
        client_deaths_count=True,
        reply_tags_count=False,
        returns_late_replies=True,
        has_local_random=False,
        adds_queue_type=False,
        notes_queue_type=False,
        quorum_takes_failures=False,
        keeps_copies=False,
        normalizes_properties=False,
        streams_name_delivery_mode=False,
        commits_by_name=True,
        checks_rights_last=False,
        names_topic_action=False,
    ),
    "4.0": Profile(
        version="4.0.5",
        frame_max_lowest=4096,
        notes_queue_type=False,
        reply_tags_count=False,
        returns_late_replies=True,
    ),
    "4.2": Profile(version="4.2.1"),
    "4.3": Profile(
        version="4.3.6",
        has_transient_queues=False,
        has_global_prefetch=False,
        has_queue_modes=False,
        has_queue_version_1=False,
        has_master_locator=False,
        passive_needs_permission=True,
        times_out_quorum_only=True,
        counts_failures=True,
        returns_to_tail=False,
        drops_in_reverse=False,
        delays_retries=True,
        policies_use_quorum=False,
        purges_dead_letters=True,
        quorum_counts_properties=True,
        quorum_priority_levels=32,
        quorum_expires_by_level=True,
        reply_names_are_bindable=False,
        takes_empty_type=True,
        compares_age_in_ms=True,
        names_type_as_binary=True,
        crashes_channels=True,
        commits_need_queues=True,
        classic_counts_failures=True,
    ),
}
DEFAULT: Final = "4.2"
