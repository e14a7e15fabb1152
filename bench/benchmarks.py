"""The list of rows: first those of real messages, then those of one message repeated."""

from __future__ import annotations

from dataclasses import replace

from bench.calls import CALL_ROWS
from bench.generator import Load
from bench.real import REAL_ROWS
from bench.row import (
    BYTES,
    CPU_US,
    MEGABYTES,
    MICROSECONDS,
    MILLISECONDS,
    NO_WORSE,
    PER_SECOND,
    RATE,
    REPEATED,
    SECONDS,
    SHARE,
    STALL,
    Goal,
    Row,
    below,
    cheaper,
    faster,
)

# Persistent messages to each kind of queue, with a limited number of unconfirmed ones. A stream has no reader.
_KINDS = {
    "classic": Load(body=1024, ack=1, prefetch=200, persistent=True),
    "quorum": Load(body=1024, ack=1, prefetch=200, persistent=True, argument="x-queue-type=quorum"),
    "stream": Load(body=100, consumers=0, persistent=True, stream=True),
}
_WINDOWS = {1: 2_000, 10: 20_000, 100: 50_000}
_WINDOW_GOALS: dict[tuple[str, int], tuple[Goal, ...]] = {
    ("classic", 100): (faster(4), cheaper(8.5)),
    ("quorum", 100): (faster(3.3), cheaper(8.5)),
    ("stream", 100): (faster(2.6), cheaper(8)),
}

_REPEATED_ROWS = (
    Row(
        "plain",
        "16 B, no ack, no confirm",
        RATE,
        Load(messages=400_000),
        (faster(7), cheaper(13)),
    ),
    Row(
        "plain-1k",
        "1 KiB, no ack, no confirm",
        RATE,
        Load(messages=250_000, body=1024),
        (faster(5.2), cheaper(9)),
    ),
    Row(
        "confirm",
        "16 B, confirms (window 1000), ack each, prefetch 200",
        RATE,
        Load(messages=200_000, window=1000, ack=1, prefetch=200),
        (faster(8), cheaper(16)),
    ),
    Row(
        "plain-64k",
        "64 KiB, no ack, no confirm",
        RATE,
        Load(messages=20_000, body=65_536),
        (faster(1.7), cheaper(2.6)),
    ),
    Row(
        "many",
        "10 publishers, consumers and queues, confirms, ack each",
        RATE,
        Load(publishers=10, consumers=10, queues=10, messages=20_000, window=1000, ack=1, prefetch=200),
        (faster(8), cheaper(16)),
    ),
    Row(
        "fanout",
        "fanout to 10 queues (deliveries)",
        RATE,
        Load(consumers=10, queues=10, messages=40_000, fanout=True),
        (faster(11), cheaper(24)),
    ),
    Row(
        "ttl",
        "16 B, no ack, a queue with x-message-ttl",
        RATE,
        Load(messages=200_000, argument="x-message-ttl=3600000"),
        (faster(2.5),),
    ),
    Row(
        "max-length",
        "16 B into a full queue (x-max-length 1000), confirms",
        RATE,
        Load(consumers=0, messages=200_000, window=1000, argument="x-max-length=1000"),
        (faster(2.5),),
    ),
    Row(
        "priority",
        "16 B, no ack, 10 priorities (x-max-priority 10)",
        RATE,
        Load(messages=200_000, argument="x-max-priority=10", priorities=10),
        (faster(2.5),),
    ),
    Row(
        "dead-letter",
        "16 B, expired after 5 ms and dead-lettered, no ack",
        RATE,
        Load(messages=100_000, expiration=5, dead_letter=True),
        (faster(2.5),),
    ),
    Row(
        "consistent-hash",
        "16 B, no ack, 10 000 keys hashed over 10 queues",
        RATE,
        Load(consumers=10, queues=10, messages=200_000, hash_keys=10_000),
        (faster(2.5),),
    ),
    Row(
        "persistent",
        "1 KiB persistent, confirms (window 1000), ack each",
        RATE,
        Load(messages=100_000, body=1024, window=1000, ack=1, prefetch=200, persistent=True),
        (faster(7), cheaper(11)),
    ),
    Row(
        "persistent-backlog",
        "1 KiB persistent, confirms (window 1000), no consumer",
        RATE,
        Load(consumers=0, messages=100_000, body=1024, window=1000, persistent=True),
        (faster(4.5), cheaper(8.5)),
    ),
    *(
        Row(
            f"{kind}-{window}",
            f"{'100 B' if kind == 'stream' else '1 KiB'} persistent to a {kind} queue, {window} unconfirmed",
            RATE,
            replace(load, messages=messages, window=window),
            _WINDOW_GOALS.get((kind, window), (faster(1),)),
        )
        for kind, load in _KINDS.items()
        for window, messages in _WINDOWS.items()
    ),
    Row(
        "persistent-drain",
        "a backlog of 200 000 persistent 1 KiB messages, ack each",
        RATE,
        Load(publishers=0, ack=1, prefetch=200, receive=200_000, persistent=True, prefix="drain"),
        (faster(3),),
        before=Load(consumers=0, messages=200_000, body=1024, window=1000, persistent=True, prefix="drain", keep=True),
    ),
    Row(
        "stream",
        "100 B to a stream, confirms (window 1000), one reader",
        RATE,
        Load(messages=200_000, body=100, window=1000, ack=100, prefetch=1000, persistent=True, stream=True),
        (faster(2),),
    ),
    Row(
        "stream-replay",
        "a stream of 200 000 messages of 100 B, an ack for a hundred",
        RATE,
        Load(publishers=0, ack=100, prefetch=1000, receive=200_000, persistent=True, stream=True, prefix="replay"),
        (faster(2),),
        before=Load(
            consumers=0,
            messages=200_000,
            body=100,
            window=1000,
            persistent=True,
            stream=True,
            prefix="replay",
            keep=True,
        ),
    ),
)

_OTHER_ROWS = (
    Row(
        "persistent-latency",
        "p99 latency at 1 000 persistent msg/s",
        MICROSECONDS,
        Load(messages=4_000, rate=1000, persistent=True),
        (NO_WORSE,),
    ),
    Row(
        "stall",
        "p99.9 at 1 000 msg/s, beside 20 000 persistent ones",
        STALL,
        Load(messages=5_000, rate=1000),
        (below(2000, "2 ms"),),
        beside=Load(messages=110_000, body=1024, window=1000, ack=1, prefetch=200, persistent=True, rate=20_000),
    ),
    Row(
        "latency",
        "p99 latency at 1 000 msg/s",
        MICROSECONDS,
        Load(messages=4_000, rate=1000),
        (NO_WORSE,),
    ),
    Row(
        "latency-20k",
        "p99 latency at 20 000 msg/s of 100 B",
        MICROSECONDS,
        Load(messages=80_000, body=100, rate=20_000),
        (NO_WORSE,),
    ),
    Row(
        "paced",
        "CPU per message at 20 000 msg/s of 100 B",
        CPU_US,
        Load(messages=80_000, body=100, rate=20_000),
        (cheaper(7),),
    ),
    Row(
        "sessions",
        "connect, declare, publish, confirm and close, one after another",
        PER_SECOND,
        Load(publishers=0, consumers=0, sessions=1_000),
        (faster(1),),
    ),
    Row("queued", "memory per queued 16 B message", BYTES, goals=(below(400, "400 B"),), is_memory=True),
    Row("connection", "memory per idle connection", BYTES, is_memory=True),
    Row("channel", "memory per idle channel", BYTES, is_memory=True),
    Row("queue", "memory per durable queue", BYTES, is_memory=True),
    Row("binding", "memory per binding", BYTES, is_memory=True),
    Row("ready", "process start to ready, with management", SECONDS, goals=(below(0.4, "0.4 s"),), is_managed=True),
    Row("idle", "memory when idle, with management", MEGABYTES, goals=(below(32, "32 MB"),), is_managed=True),
    Row("ping", "diagnostics ping", MILLISECONDS, goals=(below(100, "100 ms"),), is_managed=True),
    Row("queues-list", "GET /api/queues of 1 000 queues", MILLISECONDS, goals=(below(50, "50 ms"),), is_managed=True),
    Row(
        "scraped",
        "rate left while metrics and overview are asked for each second",
        SHARE,
        goals=(Goal("at least 97 %", lambda row, amqp_broker, rabbitmq: amqp_broker.value, at_least=0.97),),
        is_managed=True,
    ),
    Row(
        "administered",
        "p99 latency at 1 000 msg/s, beside administration",
        MILLISECONDS,
        goals=(NO_WORSE,),
        is_managed=True,
    ),
    Row(
        "administered-worst",
        "longest latency of these",
        MILLISECONDS,
        goals=(NO_WORSE,),
        is_managed=True,
    ),
)

ROWS = (*REAL_ROWS, *CALL_ROWS, *(replace(row, group=REPEATED) for row in _REPEATED_ROWS), *_OTHER_ROWS)
