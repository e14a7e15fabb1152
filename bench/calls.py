"""Rows of an application's day, most of which wait for each answer. The messages are real ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bench.generator import Load
from bench.real import CELERY, NODE, SPRING
from bench.row import CALLS, PER_SECOND, RATE, Row, Unit, faster

_TWICE: Final = (faster(2),)
# Reasons.
_WAKING: Final = "a call is a read and a write of the broker, and wakes two processes: half of the time is the system's"
# A connection that repeats one thing, each time after the answer.
_LOOP: Final = replace(NODE, publishers=0, messages=4_000, callers=1)
_MANY: Final = replace(_LOOP, messages=100, callers=100)


def _row(name: str, title: str, load: Load, *, unit: Unit = RATE, before: Load | None = None, reason: str = "") -> Row:
    missing = ("RabbitMQ 4.3",) if load.delay else ()
    return Row(name, title, unit, load, _TWICE, before=before, reason=reason, missing_in=missing, group=CALLS)


CALL_ROWS: Final = (
    _row(
        "get",
        "basic.get in a loop, ack each",
        Load(publishers=0, consumers=0, messages=5_000, loop="get", callers=1, ack=1, prefix="got"),
        before=replace(NODE, consumers=0, messages=5_001, window=1000, prefix="got", keep=True),
        reason=_WAKING,
    ),
    _row(
        "reply",
        "10 workers with prefetch 1, an ack and a reply for each message",
        replace(CELERY, messages=10_000, consumers=11, ack=1, prefetch=1, reply=True),
    ),
    _row("rpc-1", "RPC over direct reply-to, 1 call at a time", replace(_LOOP, loop="rpc"), reason=_WAKING),
    _row("rpc-100", "RPC over direct reply-to, 100 calls at a time", replace(_MANY, loop="rpc"), reason=_WAKING),
    _row(
        "rpc-queue-1",
        "RPC over an exclusive queue for each call, 1 at a time",
        replace(_LOOP, messages=1_000, loop="rpc-queue"),
    ),
    _row(
        "rpc-queue-100",
        "RPC over an exclusive queue for each call, 100 at a time",
        replace(_MANY, messages=20, loop="rpc-queue"),
    ),
    _row(
        "channel-each", "a channel opened and closed for each publish", replace(_LOOP, loop="channel"), reason=_WAKING
    ),
    _row(
        "declare-each",
        "the queue declared before each publish",
        replace(_LOOP, loop="declare"),
        reason=f"{_WAKING}; declaring is not compiled",
    ),
    _row("tx-each", "tx.commit for each publish", replace(_LOOP, loop="tx"), reason=_WAKING),
    _row(
        "headers",
        "headers exchange with 100 bindings, no acks",
        replace(NODE, messages=20_000, queues=10, consumers=10, header_bindings=100),
    ),
    _row(
        "hash-unique",
        "consistent hash over 10 queues, keys that never repeat, no acks",
        replace(NODE, queues=10, consumers=10, hash_keys=1000, unique_keys=True),
        reason="each key is new, and the share of each queue in it is computed, which is not compiled",
    ),
    _row(
        "celery-priority",
        "Celery's tasks of 10 priorities, no acks",
        replace(CELERY, argument="x-max-priority=10", priorities=10),
    ),
    _row(
        "delayed-5",
        "Spring's messages delayed by 5 ms, no acks",
        replace(SPRING, messages=20_000, delay=5),
        reason="RabbitMQ 4.3 has no such exchange: its plugin was not released for it",
    ),
    _row(
        "dead-letter-real",
        "Node, expired after 5 ms into a dead-letter exchange, no acks",
        replace(NODE, messages=40_000, expiration=5, dead_letter=True),
    ),
    _row(
        "requeue",
        "Node, each message nacked, requeued and then acked, prefetch 50",
        replace(NODE, messages=40_000, ack=1, prefetch=50, requeue=True),
    ),
    _row(
        "connect-1000",
        "1 000 connections at once, each with a channel",
        Load(publishers=0, consumers=0, messages=1, loop="connect", callers=1000),
        unit=PER_SECOND,
    ),
)
