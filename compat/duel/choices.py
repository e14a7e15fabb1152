"""Values of steps, with weights. The simplest comes first, since hypothesis shrinks towards it."""

from __future__ import annotations

from typing import Any, TypeVar

from hypothesis import strategies as st

from amqp_broker.conformance.duel.player import OF_USER
from amqp_broker.conformance.duel.steps import SHORT_MS, At, Name
from amqp_broker.conformance.wire import Field

Value = TypeVar("Value")

# A program waits until SHORT_MS have passed, but not LONG_MS.
WAIT_MS = SHORT_MS + 500
LONG_MS = 600_000

Q0, Q1, Q2 = Name("q0"), Name("q1"), Name("q2")
X0, X1 = Name("x0"), Name("x1")


def weighted(*choices: tuple[Value, int]) -> st.SearchStrategy[Value]:
    """Return a strategy of values with weights. It costs one draw, and few draws make it quick."""
    return st.sampled_from([choice for choice, weight in choices for _ in range(weight)])


ATS = weighted((At(0, 0), 16), (At(1, 0), 9), (At(0, 1), 3), (At(2, 0), 2), (At(1, 1), 1), (At(3, 0), 2), (At(2, 2), 1))
# Most steps on one channel, and most steps of the user whose permissions change (`player.OF_USER`).
FEW_ATS = weighted((At(0, 0), 8), (At(1, 0), 2), (At(0, 1), 1))
ATS_OF_USER = weighted((At(0, 0), 1), (At(OF_USER, 0), 2), (At(OF_USER, 1), 1))
QUEUES = weighted((Q0, 8), (Q1, 3), (Q2, 1))
EXCHANGES = weighted((X0, 2), (X1, 1))
KEYS = weighted(("k", 3), ("k.l", 1), ("", 1), ("k.*", 1), ("#", 1))
TAGS = weighted(("c0", 4), ("c1", 2), ("", 1))
NOW_AND_THEN = weighted((False, 2), (True, 1))
OFTEN, HALF, SELDOM = weighted((True, 4), (False, 1)), weighted((False, 1), (True, 1)), weighted((False, 5), (True, 1))

# --- Queues

KINDS = weighted(("classic", 8), ("quorum", 10), ("", 3), ("stream", 1))
QUEUE_FLAGS: st.SearchStrategy[dict[str, bool]] = weighted(
    ({"durable": True}, 16), ({"durable": True, "auto_delete": True}, 2), ({"exclusive": True}, 1), ({}, 1)
)
TRANSIENT: st.SearchStrategy[dict[str, bool]] = weighted(({"exclusive": True}, 2), ({}, 1))
ARGUMENTS_COUNT = weighted((0, 2), (1, 3), (2, 3), (3, 1))

DELAYED_RETRY = "x-delayed-retry-type"
DEAD_LETTERS_TO_Q1: dict[str, Any] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": Q1}
_DEAD_LETTER: list[tuple[dict[str, Any], int]] = [
    (DEAD_LETTERS_TO_Q1, 5),
    ({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": Q0}, 1),
    ({"x-dead-letter-exchange": X0}, 2),
    ({"x-dead-letter-exchange": ""}, 1),
    ({"x-dead-letter-exchange": X0, "x-dead-letter-routing-key": "k"}, 1),
]
_LIMITS: list[tuple[dict[str, Any], int]] = [
    *(({"x-max-length": length}, weight) for length, weight in ((1, 2), (2, 3), (3, 2), (0, 1))),
    *(({"x-max-length-bytes": size}, 1) for size in (2, 5, 20)),
    ({"x-overflow": "reject-publish"}, 3),
    ({"x-message-ttl": LONG_MS}, 1),
    ({"x-message-ttl": 0}, 1),
    ({"x-message-ttl": SHORT_MS}, 1),
    ({"x-single-active-consumer": True}, 2),
    ({"x-expires": LONG_MS}, 1),
    ({"x-expires": SHORT_MS}, 1),
    *_DEAD_LETTER,
]
_OF_KIND: dict[str, list[tuple[dict[str, Any], int]]] = {
    "classic": [
        *_LIMITS,
        *(({"x-max-priority": priority}, 2) for priority in (3, 1, 10)),
        ({"x-overflow": "reject-publish-dlx"}, 2),
        ({"x-queue-mode": "lazy"}, 1),
    ],
    "quorum": [
        *_LIMITS,
        *(({"x-delivery-limit": limit}, 2) for limit in (1, 2, 0, -1)),
        ({"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}, 2),
        ({DELAYED_RETRY: "all", "x-delayed-retry-min": SHORT_MS}, 1),
        ({DELAYED_RETRY: "failed", "x-delayed-retry-min": SHORT_MS}, 1),
        ({"x-consumer-timeout": SHORT_MS}, 1),
    ],
    "stream": [({"x-max-length-bytes": 20_000_000}, 1), ({"x-max-age": "1D"}, 1)],
}
_OF_KIND[""] = _OF_KIND["classic"]
ARGUMENTS = {kind: weighted(*choices) for kind, choices in _OF_KIND.items()}
# Values that are refused, or that clients of other languages send.
ODD_ARGUMENTS: st.SearchStrategy[dict[str, Any]] = weighted(
    *(
        ({name: value}, 1)
        for name in ("x-max-length", "x-message-ttl", "x-expires", "x-delivery-limit", "x-max-priority")
        for value in (-1, "a", 2.0, True, None, 2**40)
    ),
    *(
        ({name: Field(tag, 5)}, 1)
        for name in ("x-max-length", "x-delivery-limit", "x-max-priority")
        for tag in ("b", "s", "l")
    ),
    *(({name: Field(tag, 30_000)}, 1) for name in ("x-message-ttl", "x-expires") for tag in ("s", "l")),
    ({"x-overflow": "none"}, 1),
    ({"x-queue-type": "none"}, 1),
    ({"x-queue-type": ""}, 1),
    ({"x-unknown": 1}, 1),
    ({"x-dead-letter-routing-key": "k"}, 1),
    ({"x-dead-letter-exchange": 1}, 1),
    ({"x-single-active-consumer": "true"}, 1),
    ({"x-max-age": "1D"}, 1),
    ({"x-dead-letter-strategy": "at-least-once"}, 1),
)

# --- Exchanges

EXCHANGE_KINDS = weighted(
    ("fanout", 5), ("direct", 4), ("topic", 4), ("headers", 2), ("x-recent-history", 1), ("x-none", 1)
)
EXCHANGE_FLAGS: st.SearchStrategy[dict[str, Any]] = weighted(
    ({"durable": True}, 8),
    ({}, 1),
    ({"durable": True, "auto_delete": True}, 1),
    ({"durable": True, "internal": True}, 1),
    ({"durable": True, "arguments": {"alternate-exchange": X1}}, 2),
    ({"durable": True, "arguments": {"alternate-exchange": X0}}, 1),
)
BINDING_ARGUMENTS: st.SearchStrategy[dict[str, Any]] = weighted(
    ({}, 8), ({"arguments": {"h": 1}}, 1), ({"arguments": {"x-match": "any", "h": 1, "i": 2}}, 1)
)

# --- Messages

COUNTS_AND_SIZES = weighted(
    ((1, 0), 24), ((2, 0), 10), ((4, 0), 8), ((1, 30), 2), ((1, 4088), 1), ((1, 131_064), 1), ((1, 131_065), 1)
)
PROPERTIES: st.SearchStrategy[dict[str, Any]] = weighted(
    ({}, 14),
    ({"delivery_mode": 2}, 3),
    ({"delivery_mode": 1}, 1),
    *(({"priority": priority}, 1) for priority in (1, 5, 0, 255)),
    ({"expiration": str(LONG_MS)}, 1),
    ({"expiration": "0"}, 1),
    ({"expiration": str(SHORT_MS)}, 1),
    ({"expiration": "a"}, 1),
    ({"headers": {"h": 1}}, 2),
    ({"headers": {"CC": [Q1]}}, 1),
    ({"headers": {"CC": [Q1, Q0], "h": 1}}, 1),
    ({"headers": {"BCC": [Q1]}}, 1),
    ({"headers": {"CC": Q1}}, 1),
    (
        {
            "content_type": "text/plain",
            "content_encoding": "gzip",
            "headers": {"b": True, "n": None, "t": {"x": [1, "y", 2.5]}, "l": 2**40},
            "delivery_mode": 2,
            "priority": 3,
            "correlation_id": "c",
            "reply_to": "r",
            "message_id": "m",
            "timestamp": 1,
            "message_type": "t",
            "app_id": "a",
        },
        1,
    ),
    ({"user_id": "guest"}, 1),
    ({"user_id": "other"}, 1),
)
FLAGS: st.SearchStrategy[dict[str, bool]] = weighted(({}, 8), ({"mandatory": True}, 3))

# --- Consumers

CONSUME_FLAGS: st.SearchStrategy[dict[str, Any]] = weighted(
    ({}, 10),
    ({"no_ack": True}, 3),
    ({"exclusive": True}, 1),
    ({"arguments": {"x-priority": 1}}, 1),
    ({"arguments": {"x-priority": -1}}, 1),
    *(({"arguments": {"x-stream-offset": offset}}, 1) for offset in ("first", "last", "next", 1)),
    ({"nowait": True}, 1),
)
PREFETCHES = weighted((1, 4), (2, 3), (3, 2), (0, 1))
PICKS: st.SearchStrategy[int | None] = weighted((0, 8), (1, 4), (2, 2), (3, 1), (None, 2))
SETTLEMENTS: st.SearchStrategy[tuple[str, dict[str, bool]]] = weighted(
    (("ack", {}), 8),
    (("ack", {"multiple": True}), 4),
    (("nack", {"requeue": True}), 4),
    (("nack", {"requeue": False}), 3),
    (("nack", {"requeue": True, "multiple": True}), 3),
    (("nack", {"requeue": False, "multiple": True}), 2),
    (("reject", {"requeue": True}), 4),
    (("reject", {"requeue": False}), 4),
)

# Consumers at the beginning: their channels.
CONSUMERS: st.SearchStrategy[tuple[At, ...]] = weighted(
    ((), 3), ((At(1, 0),), 4), ((At(0, 0),), 2), ((At(1, 0), At(0, 0)), 2), ((At(1, 0), At(1, 0)), 1)
)

CONSUMERS_OF_A_CHANNEL: st.SearchStrategy[tuple[At, ...]] = weighted(
    ((At(0, 0),), 3), ((At(0, 0), At(0, 0)), 2), ((At(0, 0), At(1, 0)), 1)
)
# Queues at the beginning.
QUEUE_COUNTS: st.SearchStrategy[tuple[Name, ...]] = weighted(((Q0,), 2), ((Q0, Q1), 4), ((Q1, Q0), 1))
THREE_QUEUES: st.SearchStrategy[tuple[Name, ...]] = weighted(((Q0, Q1, Q2), 3), ((Q0, Q1), 1))

# --- HTTP

_DEFINITIONS: list[tuple[dict[str, Any], int]] = [
    ({"max-length": 2}, 3),
    ({"max-length": 1}, 2),
    ({"max-length-bytes": 5}, 1),
    ({"message-ttl": 0}, 1),
    ({"message-ttl": SHORT_MS}, 1),
    ({"expires": LONG_MS}, 1),
    ({"delivery-limit": 1}, 2),
    ({"overflow": "reject-publish", "max-length": 1}, 2),
    ({"overflow": "drop-head"}, 1),
    ({"overflow": "reject-publish"}, 1),
]
DEFINITIONS = weighted(
    *_DEFINITIONS,
    ({"dead-letter-exchange": "", "dead-letter-routing-key": "{prefix}q1"}, 3),
    ({"dead-letter-exchange": "{prefix}x0"}, 2),
    ({"alternate-exchange": "{prefix}x1"}, 4),
    ({"max-length": 1, "dead-letter-exchange": "", "dead-letter-routing-key": "{prefix}q1"}, 2),
    ({"unknown": 1}, 1),
    ({"max-length": "a"}, 1),
)
OPERATOR_DEFINITIONS = weighted(*_DEFINITIONS)
# Without an overflow: a channel of RabbitMQ learns some time after a change that a quorum queue refuses no more.
LENGTH_DEFINITIONS: st.SearchStrategy[dict[str, Any]] = weighted(*(({"max-length": length}, 2) for length in (1, 2, 3)))
EXPIRING_DEFINITIONS: st.SearchStrategy[dict[str, Any]] = weighted(
    ({"message-ttl": 0}, 3),
    ({"message-ttl": 0, "max-length": 2}, 2),
    ({"message-ttl": SHORT_MS}, 1),
    ({"max-length": 1}, 1),
)
ALTERNATES: st.SearchStrategy[dict[str, Any]] = weighted(
    ({"alternate-exchange": "{prefix}x1"}, 6),
    ({"alternate-exchange": "{prefix}x0"}, 1),
    ({"alternate-exchange": "{prefix}x1", "max-length": 2}, 1),
    ({"max-length": 2}, 1),
)
PATTERNS = weighted(("^{prefix}q0$", 3), ("^{prefix}", 2), ("^{prefix}q[01]$", 1))
APPLY_TO = weighted(("queues", 4), ("all", 2), ("quorum_queues", 1), ("classic_queues", 1), ("exchanges", 1))
ACK_MODES = weighted(
    ("ack_requeue_false", 3), ("ack_requeue_true", 3), ("reject_requeue_false", 1), ("reject_requeue_true", 1)
)
NAME_PATTERNS = weighted((".*", 3), ("", 2), ("^{prefix}q0$", 2), ("^{prefix}(q0|x0)", 1), ("^amq", 1))
KEY_PATTERNS = weighted((".*", 2), ("^k$", 3), ("^k[.]", 2), ("", 1))
LIMITS = weighted(("max-queues", 3), ("max-connections", 1))

# --- Themes: the first queue of a program of one subject, and the properties of its messages

NOTHING: st.SearchStrategy[dict[str, Any]] = st.just({})

EXPIRING: st.SearchStrategy[dict[str, Any]] = weighted(
    ({"x-message-ttl": SHORT_MS}, 4),
    ({"x-message-ttl": LONG_MS}, 1),
    ({"x-expires": SHORT_MS}, 2),
    ({"x-message-ttl": SHORT_MS, **DEAD_LETTERS_TO_Q1}, 3),
    (DEAD_LETTERS_TO_Q1, 2),
)
SOME_EXPIRE: st.SearchStrategy[dict[str, Any]] = weighted(
    ({}, 4), ({"expiration": str(SHORT_MS)}, 4), ({"expiration": str(LONG_MS)}, 1)
)
EXPIRATIONS: st.SearchStrategy[dict[str, Any]] = weighted(
    ({}, 4),
    ({"expiration": str(SHORT_MS)}, 4),
    ({"expiration": str(LONG_MS)}, 2),
    ({"expiration": "0"}, 1),
    ({"expiration": str(SHORT_MS), "headers": {"CC": [Q1]}}, 1),
)
SHORT_LIMITS: st.SearchStrategy[dict[str, Any]] = weighted(
    *(
        ({**limit, **more}, 1)
        for limit in ({"x-max-length": 1}, {"x-max-length": 2}, {"x-max-length": 3}, {"x-max-length-bytes": 4})
        for more in ({}, {"x-overflow": "reject-publish"}, DEAD_LETTERS_TO_Q1)
    )
)
FULL_SOON: st.SearchStrategy[dict[str, Any]] = weighted(
    *(({"x-max-length": length, "x-overflow": "reject-publish"}, 1) for length in (1, 2))
)
REFUSING: st.SearchStrategy[dict[str, Any]] = weighted(
    *(({"x-max-length": length, "x-overflow": "reject-publish"}, 2) for length in (1, 2, 3)),
    ({"x-max-length": 1, "x-overflow": "reject-publish-dlx", **DEAD_LETTERS_TO_Q1}, 6),
)
PRIORITIZING: st.SearchStrategy[dict[str, Any]] = weighted(({"x-max-priority": 5}, 3), ({"x-max-priority": 2}, 1))
PRIORITIES: st.SearchStrategy[dict[str, Any]] = weighted(
    *(({"priority": priority}, 1) for priority in (0, 1, 3, 4, 5, 9)), ({}, 1)
)
EXPIRING_PRIORITIES: st.SearchStrategy[dict[str, Any]] = weighted(
    ({"priority": 9}, 2), ({}, 1), *(({"priority": priority, "expiration": str(SHORT_MS)}, 2) for priority in (0, 1, 9))
)
DYING: st.SearchStrategy[dict[str, Any]] = weighted(
    (DEAD_LETTERS_TO_Q1, 3),
    ({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": Q0}, 3),
    ({**DEAD_LETTERS_TO_Q1, "x-delivery-limit": 1}, 2),
    ({**DEAD_LETTERS_TO_Q1, "x-message-ttl": 0}, 1),
    ({"x-dead-letter-exchange": ""}, 1),
    ({"x-dead-letter-exchange": X0}, 2),
)
# Of a first queue whose messages die at once, mostly.
DYING_AT_ONCE: st.SearchStrategy[dict[str, Any]] = weighted(
    (DEAD_LETTERS_TO_Q1, 2),
    ({**DEAD_LETTERS_TO_Q1, "x-max-length": 1}, 3),
    ({**DEAD_LETTERS_TO_Q1, "x-message-ttl": 0}, 3),
    ({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": Q0}, 2),
)
SOME_DEAD_LETTERS: st.SearchStrategy[dict[str, Any]] = weighted(({}, 1), (DEAD_LETTERS_TO_Q1, 1))
# Of a second queue, which dead-letters to a third one, or to the first one again.
DYING_AGAIN: st.SearchStrategy[dict[str, Any]] = weighted(
    *(
        ({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": target, **more}, weight)
        for target in (Q2, Q2, Q0)
        for more, weight in (({}, 1), ({"x-max-length": 1}, 2), ({"x-message-ttl": 0}, 2))
    )
)
COPIES: st.SearchStrategy[dict[str, Any]] = weighted(
    ({}, 4), ({"headers": {"CC": [Q1], "h": 1}}, 2), ({"headers": {"BCC": [Q1]}}, 1), ({"expiration": str(LONG_MS)}, 1)
)
# The kinds of two exchanges.
BOUND_KINDS = weighted(
    (("fanout", "direct"), 3), (("fanout", "topic"), 2), (("direct", "direct"), 1), (("topic", "fanout"), 1)
)
SINGLE: st.SearchStrategy[dict[str, Any]] = weighted(({"x-single-active-consumer": True}, 1))


def permitted(arguments: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the arguments that a queue of this type may have."""
    if kind == "stream":
        return {}
    return {name: value for name, value in arguments.items() if _is_permitted(name, value, kind)}


def _is_permitted(name: str, value: Any, kind: str) -> bool:
    if kind == "quorum":
        return name != "x-max-priority" and value != "reject-publish-dlx"
    return name != "x-delivery-limit"
