"""Habits of clients that fail in production, and their remedies (docs/habits.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.broker.admin.similar_names import did_you_mean
from amqp_broker.broker.queues.reply import REPLY_PREFIX

if TYPE_CHECKING:
    from amqp_broker.broker.queues.queue import Queue

# Counts from which on something is a habit.
POLLS_MIN: Final = 100
EMPTY_POLLS_MIN: Final = 10
SHORT_LIVED_MIN: Final = 20
LEFT_QUEUES_MIN: Final = 20
CONSUMERS_MIN: Final = 10
UNACKED_MIN: Final = 100
# Period within which these counts must be reached (ms of the broker's time).
RATE_MS: Final = 60_000
# Time without use after which a queue is left behind, and after which it is unused (ms of the broker's time).
LEFT_MS: Final = 60_000
UNUSED_MS: Final = 86_400_000

# Keys of policies, and with "x-" arguments of queues, that RabbitMQ 4.3 removed; of queue-version only the value 1.
REMOVED_ARGUMENTS: Final = ("queue-mode", "queue-version", "queue-master-locator")

# Length of the text that a server or a library puts behind "gen-".
GENERATED_LENGTH: Final = 22
# Generated parts of a name: by the server or a library, a UUID, long hexadecimal or decimal numbers.
_MADE_UP: Final = re.compile(
    r"(?<=gen-)[\w-]{22}(?![\w-])"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|[0-9a-fA-F]{16,}"
    r"|[0-9]{9,}"
)


@dataclass(frozen=True)
class Habit:
    """`sentence` describes the habit and its danger, `remedy` the better way."""

    name: str
    sentence: str
    remedy: str

    @property
    def link(self) -> str:
        """Place of the habit in the documentation."""
        return f"docs/habits.md#{self.name}"


HABITS: Final = {
    habit.name: habit
    for habit in (
        Habit(
            "unlimited-prefetch",
            "A consumer that acknowledges has no prefetch limit: it is sent a whole backlog at once.",
            "Call basic.qos with a prefetch_count, such as 50, before basic.consume.",
        ),
        Habit(
            "no-confirms",
            "Persistent messages are published without publisher confirms: a loss goes unnoticed.",
            "Call confirm.select on the channel, and publish again what is nacked or not confirmed in time.",
        ),
        Habit(
            "unroutable",
            "Messages without a matching binding are dropped without notice to their publisher.",
            "Publish with mandatory and handle basic.return, or give the exchange an alternate-exchange.",
        ),
        Habit(
            "auto-ack",
            "A consumer has messages acknowledged as they are sent: if it fails, unprocessed messages are lost.",
            "Consume with no_ack=false and a prefetch_count, and acknowledge each message after processing.",
        ),
        Habit(
            "polling",
            "A client polls a queue with basic.get: each attempt costs a round trip.",
            "Use basic.consume with a prefetch_count; the broker then sends messages as they arrive.",
        ),
        Habit(
            "channel-per-message",
            "A client opens a channel for each message, which costs two round trips.",
            "Keep one channel open per thread or task.",
        ),
        Habit(
            "connection-per-message",
            "A client connects for each message: seven round trips, more with TLS, and many sockets.",
            "Keep one connection per process, with a channel per thread or task.",
        ),
        Habit(
            "leaked-queues",
            "Queues with generated names accumulate: they have no consumers, and are never deleted.",
            "Declare them exclusive, or with x-expires.",
        ),
        Habit(
            "unused-queue",
            "A queue has had no binding, no consumer and no message for a day.",
            "Delete it, or add the missing binding or consumer.",
        ),
        Habit(
            "leaked-consumers",
            "A channel has many consumers of the same queue: the client subscribes again without a cancel.",
            "Consume once per channel, and cancel a consumer before subscribing again.",
        ),
        Habit(
            "growing-unacked",
            "Unacked deliveries grow and none is settled: broker and consumer keep all of them in memory.",
            "Acknowledge or reject each delivery, even if processing fails, and set a prefetch_count.",
        ),
        Habit(
            "transient-queue",
            "A queue is neither durable nor exclusive, which RabbitMQ 4.3 refuses (transient_nonexcl_queues).",
            "Declare it durable, with x-expires if it is temporary, or exclusive.",
        ),
        Habit(
            "global-prefetch",
            "basic.qos with global=true limits a whole channel, which RabbitMQ 4.3 no longer does (global_qos).",
            "Set global=false, and a prefetch_count for each consumer.",
        ),
        Habit(
            "removed-argument",
            "A queue or policy has an argument that RabbitMQ 4.3 has removed.",
            "Leave it out. Quorum queues replace mirrored ones; all classic queues are lazy, of version 2.",
        ),
    )
}


def named(names: Iterable[str]) -> frozenset[str]:
    """Return the habits with these names; `all` stands for all. Raise ValueError for an unknown name."""
    found = set(names)
    unknown = sorted(found - {"all", *HABITS})
    if unknown:
        question = did_you_mean(unknown[0], HABITS, "; ")
        raise ValueError(f"unknown habit '{unknown[0]}'; the habits are all, {', '.join(HABITS)}{question}")
    return frozenset(HABITS) if "all" in found else frozenset(found)


def family(name: str) -> str:
    """Return a name with `*` for each generated part: names of the same origin have the same family."""
    return _MADE_UP.sub(_star, name)


def _star(found: re.Match[str]) -> str:
    text = found[0]
    # Letters alone may be a word.
    return "*" if len(text) == GENERATED_LENGTH or not text.isalpha() else text


def is_reply(exchange: str, routing_key: str) -> bool:
    """Return whether a message seems to be a reply, which may be lost when the requester has gone."""
    return not exchange and (routing_key.startswith(REPLY_PREFIX) or family(routing_key) != routing_key)


def removed_from(table: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the arguments that RabbitMQ 4.3 has removed, with this prefix before their names."""
    return [
        prefix + name
        for name in REMOVED_ARGUMENTS
        if prefix + name in table and not (name == "queue-version" and table[prefix + name] != 1)
    ]


def is_short(published: int, received: int) -> bool:
    """Return whether a channel or a connection carried one message, or one and its answer."""
    return published <= 1 and received <= 1 and published + received > 0


def is_left(queue: Queue) -> bool:
    """Return whether a queue without consumers will not be deleted by itself."""
    return not (queue.is_deleted or queue.owner is not None or queue.consumers or queue.settings.expires_ms)


def is_unused(queue: Queue) -> bool:
    """Return whether a queue was never used and has no bindings."""
    return not (
        queue.incoming
        or queue.message_count
        or queue.statistics.published
        or queue.statistics.deliveries.deliver_get
        or queue.statistics.deliveries.get_empty
    )
