"""Habits that work in a test and bite in production: what each is, and what to do instead (docs/advice.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from amqp_broker.broker.reply_queue import REPLY_PREFIX

# From how many on something is a habit.
POLLS_MIN: Final = 100
EMPTY_POLLS_MIN: Final = 10
SHORT_LIVED_MIN: Final = 20
LEFT_QUEUES_MIN: Final = 20
CONSUMERS_MIN: Final = 10
UNACKED_MIN: Final = 100
# Within which time that many channels or connections must come and go, and unacked messages only become more (ms, of
# the time that really passes).
RATE_MS: Final = 60_000
# How long nobody has used a queue that is left behind, and one that nobody needs (ms, of the broker's time).
LEFT_MS: Final = 60_000
UNUSED_MS: Final = 86_400_000

# Keys of policies, and with "x-" arguments of queues, that RabbitMQ 4.3 has no more; of queue-version only the value 1.
REMOVED_ARGUMENTS: Final = ("queue-mode", "queue-version", "queue-master-locator")

# What a server or a library puts behind "gen-".
GENERATED_LENGTH: Final = 22
# The part of a name that a program made up: by the server or a library, a UUID, long hexadecimal or decimal numbers.
_MADE_UP: Final = re.compile(
    r"(?<=gen-)[\w-]{22}(?![\w-])"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|[0-9a-fA-F]{16,}"
    r"|[0-9]{9,}"
)


@dataclass(frozen=True)
class Habit:
    """`sentence` says what somebody does and why it bites, `remedy` what to do instead."""

    name: str
    sentence: str
    remedy: str

    @property
    def link(self) -> str:
        """Where the documentation tells of it."""
        return f"docs/advice.md#{self.name}"


HABITS: Final = {
    habit.name: habit
    for habit in (
        Habit(
            "unlimited-prefetch",
            "A consumer that acknowledges has no prefetch limit: it gets a whole backlog at once.",
            "Call basic.qos with a prefetch_count, such as 50, before basic.consume.",
        ),
        Habit(
            "no-confirms",
            "Persistent messages are published without publisher confirms: nobody learns that one was lost.",
            "Call confirm.select on the channel, and publish again what is nacked or not confirmed in time.",
        ),
        Habit(
            "unroutable",
            "Messages that no queue is bound for are dropped, and their publisher is not told.",
            "Publish with mandatory and handle basic.return, or give the exchange an alternate-exchange.",
        ),
        Habit(
            "auto-ack",
            "A consumer has messages acknowledged as they are sent: those it has not worked on are lost if it fails.",
            "Consume with no_ack=false and a prefetch_count, and acknowledge what is done.",
        ),
        Habit(
            "polling",
            "A client polls a queue with basic.get: each message, or none, costs a round trip.",
            "Use basic.consume with a prefetch_count; the broker then sends what comes.",
        ),
        Habit(
            "channel-per-message",
            "A client opens a channel for each message: two round trips where none is needed.",
            "Keep a channel open per thread or task, and use it again.",
        ),
        Habit(
            "connection-per-message",
            "A client connects for each message: seven round trips, more with TLS, and sockets that pile up.",
            "Keep one connection per process, with a channel per thread or task.",
        ),
        Habit(
            "leaked-queues",
            "Queues with made-up names pile up: nobody consumes them, and nothing will delete them.",
            "Declare them exclusive, or with x-expires.",
        ),
        Habit(
            "unused-queue",
            "For a day a queue has had no binding, no consumer and no message.",
            "Delete it, or find out who should have bound or consumed it.",
        ),
        Habit(
            "leaked-consumers",
            "A channel has many consumers of the same queue: somebody consumes again and does not cancel.",
            "Consume once per channel, and cancel a consumer before subscribing again.",
        ),
        Habit(
            "growing-unacked",
            "Deliveries become more and none is settled: the queue and the consumer keep all of them in memory.",
            "Acknowledge or reject each delivery, also where handling fails, and set a prefetch_count.",
        ),
        Habit(
            "transient-queue",
            "A queue is neither durable nor exclusive, which RabbitMQ 4.3 refuses (transient_nonexcl_queues).",
            "Declare it durable, with x-expires if it is for a while, or exclusive.",
        ),
        Habit(
            "global-prefetch",
            "basic.qos with global=true limits a channel as a whole, which RabbitMQ 4.3 does no more (global_qos).",
            "Set global=false, and a prefetch_count for each consumer.",
        ),
        Habit(
            "removed-argument",
            "A queue or policy has an argument that RabbitMQ 4.3 has removed.",
            "Leave it out. Quorum queues took the place of mirrored ones; classic queues are all lazy, of version 2.",
        ),
    )
}


def named(names: Iterable[str]) -> frozenset[str]:
    """The habits that are named, `all` for all of them. Raises ValueError for a name that is none."""
    found = set(names)
    unknown = sorted(found - {"all", *HABITS})
    if unknown:
        raise ValueError(f"there is no habit '{unknown[0]}'; there are all, {', '.join(HABITS)}")
    return frozenset(HABITS) if "all" in found else frozenset(found)


def family(name: str) -> str:
    """A name with `*` for each part that a program made up: what names of the same origin have in common."""
    return _MADE_UP.sub(_star, name)


def _star(found: re.Match[str]) -> str:
    text = found[0]
    # Letters alone may be a word.
    return "*" if len(text) == GENERATED_LENGTH or not text.isalpha() else text


def is_reply(exchange: str, routing_key: str) -> bool:
    """Whether a message seems to be a reply; if who asked has gone it is lost, and that is as it should be."""
    return not exchange and (routing_key.startswith(REPLY_PREFIX) or family(routing_key) != routing_key)


def removed_from(table: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The arguments that RabbitMQ 4.3 knows no more, as they are named with this prefix."""
    return [
        prefix + name
        for name in REMOVED_ARGUMENTS
        if prefix + name in table and not (name == "queue-version" and table[prefix + name] != 1)
    ]
