"""A generated trace: the same for the same seed, with events for each part of a report."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from amqp_broker.pipeline.event_rows import ARROW
from amqp_broker.pipeline.lake import tables_of
from amqp_broker.pipeline.lake_table import LakeTable

Event = dict[str, Any]

EVENTS = 50_000
START_US = 1_790_000_000_000_000
NODE = "rabbit@here"
QUEUES = ("orders", "mail", "slow", "loop", "audit", "stream")
# Mean handling time (µs) by queue.
HANDLING_US = {"orders": 2_000, "mail": 8_000, "slow": 90_000, "loop": 5_000, "audit": 500, "stream": 1_000}


class Log:
    """Events in the order of a broker's trace."""

    def __init__(self, seed: int, run: int = 1) -> None:
        self.random = random.Random(seed)
        self.since_us = START_US + run
        self.events: list[tuple[int, Event]] = []
        self.number = 0
        self.now_us = START_US

    def tell(self, at_us: int, event: str, number: int | None, **said: Any) -> None:
        of_all = {"node": NODE, "vhost": "/", "numbered_since_us": self.since_us, "time_source": "broker"}
        self.events.append((at_us, {"event": event, "message_number": number, **of_all, **said}))

    def soon(self, mean_us: int) -> int:
        return 1 + int(self.random.expovariate(1 / mean_us))

    def message(self) -> None:
        """Add the events of a message, from its publish to its end, or until shortly before."""
        draw = self.random
        self.now_us += self.soon(48_000)
        self.number += 1
        number, at = self.number, self.now_us
        exchange = draw.choice(("", "events", "events", "gone"))
        queues = [] if exchange == "gone" else sorted(draw.sample(QUEUES, draw.choice((1, 1, 1, 2, 3))))
        publisher = {"exchange": exchange, "connection": f"publisher {number % 3}", "channel": 1, "user": "guest"}
        size = draw.choice((100, 1000, 10_000))
        self.tell(at, "publish", number, **publisher, routed_queues=queues, body_bytes=size, routing_key="k")
        if exchange == "gone":
            self.tell(at + 5, "return", number, **publisher, reply_code=312, reply_text="NO_ROUTE")
        if draw.random() < 0.9:
            self.tell(at + self.soon(400), "confirm", number, **publisher, is_ack=draw.random() < 0.99)
        for queue in queues:
            self.in_queue(queue, number, at, exchange, 1)

    def in_queue(self, queue: str, number: int, at: int, exchange: str, deaths: int) -> None:
        draw = self.random
        of = {"queue": queue, "exchange": exchange}
        fate = draw.random()
        at += self.soon(HANDLING_US[queue] * 3)
        if queue == "stream":
            self.be_read(number, at, of)
        elif fate < 0.02:
            self.tell(at, "expire", number, **of)
            self.die(queue, number, at, "expired", deaths)
        elif fate < 0.03:
            self.tell(at, "drop", number, **of, reason=draw.choice(("maxlen", "purged")))
        elif fate < 0.05:
            pass  # no consumer yet
        else:
            self.deliver(queue, number, at, of, deaths)

    def be_read(self, number: int, at: int, of: Event) -> None:
        """Add deliveries to all consumers of a stream, and their acks."""
        for reader in range(2):
            at += self.soon(100)
            consumer = {"connection": f"reader {reader}", "channel": 1, "user": "reader"}
            self.tell(at, "deliver", number, **of, **consumer, redelivered=False, no_ack=False, body_bytes=100)
            self.tell(at + self.soon(HANDLING_US["stream"]), "ack", number, **of, **consumer)

    def deliver(self, queue: str, number: int, at: int, of: Event, deaths: int) -> None:
        draw = self.random
        consumer = {"connection": f"{queue} {draw.randrange(3)}", "channel": draw.randrange(1, 3), "user": "worker"}
        no_ack = queue == "audit" and draw.random() < 0.5
        self.tell(at, "deliver", number, **of, **consumer, redelivered=False, no_ack=no_ack, body_bytes=100)
        redelivered = 0
        while not no_ack:
            at += self.soon(HANDLING_US[queue])
            fate = draw.random()
            if fate < 0.05 and redelivered < 5:
                self.tell(at, "nack", number, **of, **consumer, requeue=True)
                at += self.soon(300)
                redelivered += 1
                # The next consumer.
                consumer = consumer | {"connection": f"{queue} {draw.randrange(3)}"}
                self.tell(at, "deliver", number, **of, **consumer, redelivered=True, no_ack=False, body_bytes=100)
            elif fate < 0.07:
                self.tell(at, "nack", number, **of, **consumer, requeue=False)
                self.die(queue, number, at, "rejected", deaths)
                return
            elif fate < 0.08:
                return  # not acked yet
            else:
                self.tell(at, "ack", number, **of, **consumer)
                return

    def die(self, queue: str, number: int, at: int, reason: str, deaths: int) -> None:
        if queue == "audit":
            return
        targets = ["loop"] if queue == "loop" and deaths < 4 else [] if queue == "mail" else ["audit"]
        self.number += 1
        dead = self.number
        came = {"from_message_number": number, "reason": reason, "death_count": deaths}
        self.tell(at + 2, "dead_letter", dead, queue=queue, exchange="dead", routed_queues=targets, **came)
        for target in targets:
            self.in_queue(target, dead, at + 2, "dead", deaths + 1)

    def firehose(self) -> None:
        """Add a publish and its delivery as in RabbitMQ's firehose."""
        self.now_us += 700
        both = {"vhost": "plain", "numbered_since_us": None, "exchange": "", "time_source": "archive"}
        self.tell(self.now_us, "publish", None, **both, routed_queues=["q"], body_bytes=10)
        self.tell(self.now_us, "deliver", None, **both, queue="q", redelivered=self.number % 7 == 0, body_bytes=10)


def log(count: int, seed: int = 1) -> Iterator[Event]:
    """Return at least `count` events in order, with times and offsets."""
    story = Log(seed)
    # The same numbers again, from a restarted broker.
    again = Log(seed + 1, run=2)
    while len(story.events) + len(again.events) < count:
        story.message()
        if story.number % 10 == 0:
            again.now_us = story.now_us
            again.message()
        if story.number % 50 == 0:
            story.firehose()
    events = sorted([*story.events, *again.events], key=lambda told: told[0])
    for offset, (at_us, event) in enumerate(events):
        yield {**event, "time_us": at_us, "trace_queue": "trace", "trace_offset": offset}


def write(events: list[Event], folder: Path) -> None:
    """Write events into the lake at that path, as one batch."""
    table = tables_of(str(folder))["events"]
    table.create()
    append(table, events, "made", 0)


def append(table: LakeTable, events: list[Event], query: str, batch: int) -> None:
    """Append events to a table as an archive does, but without Spark."""
    by_date: dict[str, list[Event]] = {}
    for event in events:
        date = datetime.fromtimestamp(event["time_us"] // 1_000_000, UTC).date().isoformat()
        by_date.setdefault(date, []).append(event)
    name = table.new_folder(query, batch)
    for date, told in by_date.items():
        folder = Path(table.place, name, f"date={date}")
        folder.mkdir(parents=True)
        columns = {name: [event.get("time_us" if name == "time" else name) for event in told] for name in ARROW.names}
        pq.write_table(pa.table(columns, schema=ARROW), folder / "part-0.parquet")
    table.commit(name, {query: batch}, "the generator")
