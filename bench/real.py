"""Rows of messages as applications send them: each has ids of its own, and sizes vary.

The goals of the compiled build are those of messages with headers, whatever library sends them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bench.generator import Load
from bench.row import RATE, REAL, Goal, Row, cheaper, faster

# Sizes are medians. The largest of a thousand messages is ten times as large.
NODE: Final = Load(messages=100_000, shape="node", body=400)
CELERY: Final = Load(messages=60_000, shape="celery", body=200)
SPRING: Final = Load(messages=60_000, shape="spring", body=500)
SERVICE_BUS: Final = Load(messages=40_000, shape="servicebus", body=1200)
IDS: Final = Load(messages=200_000, shape="ids", body=400)
_STORED: Final = replace(NODE, messages=60_000, body=1024, persistent=True)
_TWICE: Final = (faster(2),)


def _row(name: str, title: str, load: Load, compiled: tuple[Goal, ...] = _TWICE) -> Row:
    return Row(name, title, RATE, load, _TWICE, compiled_goals=compiled, group=REAL)


REAL_ROWS: Final = (
    _row("ids", "ids and no headers, no acks", IDS, (faster(8), cheaper(14))),
    _row("node", "Node with OpenTelemetry, no acks", NODE, (faster(8), cheaper(14))),
    _row("celery", "Celery's tasks, no acks", CELERY, (faster(6.5), cheaper(12))),
    _row(
        "celery-worker",
        "Celery's tasks, persistent, ack each, prefetch 32",
        replace(CELERY, persistent=True, ack=1, prefetch=32),
    ),
    _row(
        "spring",
        "Spring with tracing, persistent, confirms (window 100), ack each, prefetch 250",
        replace(SPRING, persistent=True, window=100, ack=1, prefetch=250),
        (faster(3.6), cheaper(6.5)),
    ),
    _row(
        "service-bus",
        "MassTransit, fanout exchange to exchange to queue, persistent, confirms (window 100), ack each, prefetch 32",
        replace(SERVICE_BUS, fanout=True, endpoints=True, persistent=True, window=100, ack=1, prefetch=32),
    ),
    _row(
        "node-confirm",
        "Node, confirms (window 1000), ack each, prefetch 200",
        replace(NODE, window=1000, ack=1, prefetch=200),
        (faster(2.8), cheaper(8.5)),
    ),
    _row(
        "node-topic",
        "Node, topic exchange, 1 000 wildcard bindings, 1 000 keys at random, no acks",
        replace(NODE, queues=10, consumers=10, topic_bindings=1000),
        (faster(4.9), cheaper(14)),
    ),
    _row(
        "node-topic-unique",
        "Node, topic exchange, 1 000 wildcard bindings, keys that never repeat, no acks",
        replace(NODE, queues=10, consumers=10, topic_bindings=1000, unique_keys=True),
    ),
    _row(
        "node-fanout",
        "Node, fanout to 10 queues (deliveries)",
        replace(NODE, messages=20_000, queues=10, consumers=10, fanout=True),
        (faster(9.5), cheaper(18)),
    ),
    _row(
        "node-persistent",
        "Node, 1 KiB persistent, confirms (window 1000), ack each",
        replace(_STORED, window=1000, ack=1, prefetch=200),
        (faster(3.4), cheaper(7.5)),
    ),
    _row(
        "node-backlog",
        "Node, 1 KiB persistent, confirms (window 1000), no consumer",
        replace(_STORED, window=1000, consumers=0),
        (faster(2.5), cheaper(4.6)),
    ),
    _row(
        "node-quorum",
        "Node, 1 KiB to a quorum queue, confirms (window 100), ack each",
        replace(_STORED, messages=40_000, window=100, ack=1, prefetch=200, argument="x-queue-type=quorum"),
        (faster(1.8), cheaper(5.2)),
    ),
    _row(
        "node-stream",
        "Node, 1 KiB to a stream, confirms (window 100), no reader",
        replace(_STORED, messages=40_000, window=100, consumers=0, stream=True),
        (faster(3.1), cheaper(6.5)),
    ),
)
