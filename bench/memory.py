"""Memory for each object and each queued message, on new processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pika

from bench.generator import LoadError
from bench.row import Row, Sample
from bench.side_by_side import SETTLE_S, Effort, Figures, Say, fill, memory_bytes
from bench.subjects import Subject
from compat.brokers import BrokerProcess

QUEUED_MESSAGES = 1_000_000
# Processes of each broker.
REPEATS = 3
# The name of a row, the number of objects, and the function that makes them in a process.
Step = tuple[str, int, Callable[[], None]]


def measure_memory(
    rows: Iterable[Row], subjects: Iterable[Subject], effort: Effort, folder: Path, figures: Figures, say: Say
) -> None:
    """Add the growth of each process, divided by the number of objects."""
    wanted = {row.name: row for row in rows if row.is_memory}
    new = [subject for subject in subjects if subject.make_managed is not None and wanted]
    for repeat in range(min(effort.repeats, REPEATS)):
        for subject in new:
            broker = subject.make(folder / f"{subject.name}-fresh-{repeat}".replace(" ", "-"))
            assert isinstance(broker, BrokerProcess)
            try:
                with broker.running(), ExitStack() as held:
                    for name, count, add in steps(broker, effort.divisor, held):
                        if name in wanted:
                            each = _growth(broker, add) / count
                            figures.add(wanted[name], subject.name, Sample(each))
                            say(f"{subject.name}: {wanted[name].title}: {wanted[name].unit.text(each)}")
            except (LoadError, OSError, pika.exceptions.AMQPError) as error:
                figures.failures.append(f"memory, {subject.name}: {error}")


def steps(broker: BrokerProcess, divisor: int, held: ExitStack) -> Iterator[Step]:
    """Yield the steps of a new broker; `held` keeps connections open."""

    def connect() -> pika.BlockingConnection:
        return held.enter_context(closing(pika.BlockingConnection(pika.URLParameters(broker.url))))

    def connections() -> None:
        for _ in range(500 // divisor):
            connect()

    first = connect()
    channel = first.channel()

    def channels() -> None:
        for _ in range(1000 // divisor):
            first.channel()

    def queues() -> None:
        for number in range(5000 // divisor):
            channel.queue_declare(f"memory {number}", durable=True)

    def bindings() -> None:
        for number in range(5000 // divisor):
            channel.queue_bind("memory 0", "amq.direct", f"key {number}")

    yield "queue", 5000 // divisor, queues
    yield "binding", 5000 // divisor, bindings
    yield "channel", 1000 // divisor, channels
    yield "connection", 500 // divisor, connections
    messages = QUEUED_MESSAGES // divisor
    yield "queued", messages, lambda: fill(broker, messages)


def _growth(broker: BrokerProcess, add: Callable[[], None]) -> int:
    time.sleep(SETTLE_S)
    before = memory_bytes(broker.pid)
    add()
    time.sleep(SETTLE_S)
    return memory_bytes(broker.pid) - before
