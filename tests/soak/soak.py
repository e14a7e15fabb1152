"""Applications of all kinds work with one broker for a long time, and it must not leak.

python -m tests.soak --minutes 60
"""

from __future__ import annotations

import asyncio
import random
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from compat.brokers import AmqpBroker
from tests.adversity.watching import MIB, memory_bytes, open_files
from tests.soak.applications import APPLICATIONS, Place

WORKERS = 6
# Interval at which the applications pause and the broker is measured.
CHECKPOINTS = 6
SETTLING_S = 20.0
# Files of LMDB or a thread that are opened on first use.
OPEN_FILES_SLACK = 2
# Memory that the allocator and bounded caches may still take after the first checkpoint: 12 MiB were seen in 6 minutes.
GROWTH_MAX_BYTES = 24 * MIB


@dataclass(frozen=True)
class Checkpoint:
    """The broker's resources while no application works."""

    memory_bytes: int
    open_files: int
    # Queues, exchanges, connections, channels and consumers, by name of the kind.
    objects: dict[str, int]


@dataclass
class Result:
    """The result; `errors` are sentences about leaks and wrong results."""

    rounds: int = 0
    messages: int = 0
    checkpoints: list[Checkpoint] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def soak(folder: Path, duration_s: float, seed: int) -> Result:
    """Run applications with a broker in the folder, which must be new."""
    broker = AmqpBroker(folder)
    broker.start()
    try:
        result = asyncio.run(_soak(broker, duration_s, seed))
    finally:
        broker.stop()
    log = broker.log_path.read_text("utf-8")
    if "Traceback" in log:
        result.errors.append("the broker's log has a traceback: " + log[log.index("Traceback") :][:2000])
    result.errors += leftovers(result.checkpoints[0], result.checkpoints[-1])
    return result


async def _soak(broker: AmqpBroker, duration_s: float, seed: int) -> Result:
    result, began = Result(), time.monotonic()
    for checkpoint in range(1, CHECKPOINTS + 1):
        until = began + duration_s * checkpoint / CHECKPOINTS
        dice = [random.Random(f"{seed} {checkpoint} {worker}") for worker in range(WORKERS)]
        async with _place(broker) as place:
            await asyncio.gather(*(_work(place, each, until, result) for each in dice))
        async with _place(broker) as place:
            await _look(place, broker.pid, result.checkpoints)
    return result


@asynccontextmanager
async def _place(broker: AmqpBroker) -> AsyncIterator[Place]:
    """Yield the broker's addresses. Its HTTP connections, as many as were needed at once, end with it."""
    login = {"Authorization": "Basic " + b64encode(b"guest:guest").decode()}
    async with aiohttp.ClientSession(headers=login) as http:
        yield Place(broker.url, broker.port, f"http://127.0.0.1:{broker.management_port}", http)


async def _work(place: Place, dice: random.Random, until: float, result: Result) -> None:
    """Run the applications in turn."""
    while time.monotonic() < until and not result.errors:
        application = dice.choice(APPLICATIONS)
        try:
            result.messages += await application(place, dice)
        except Exception as error:
            result.errors.append(f"{application.__name__}: {error!r}")
        result.rounds += 1


async def _look(place: Place, pid: int, checkpoints: list[Checkpoint]) -> None:
    """Add the resources after the last client has left. Its sockets are closed a moment later."""
    deadline = time.monotonic() + SETTLING_S
    while (objects := (await place.ask("GET", "overview"))["object_totals"])["connections"]:
        assert time.monotonic() < deadline, f"connections stay open: {objects}"
        await asyncio.sleep(0.1)
    files = open_files(pid)
    files_max = checkpoints[0].open_files + OPEN_FILES_SLACK if checkpoints else files
    while files > files_max and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
        files = open_files(pid)
    checkpoints.append(Checkpoint(memory_bytes(pid, "RssAnon"), files, objects))


def leftovers(first: Checkpoint, last: Checkpoint) -> Iterator[str]:
    """Return sentences about resources at the end that did not exist at the beginning."""
    if last.objects != first.objects:
        yield f"objects were left: {first.objects}, at the end {last.objects}"
    if last.open_files > first.open_files + OPEN_FILES_SLACK:
        yield f"files were left open: {first.open_files}, at the end {last.open_files}"
    if last.memory_bytes > first.memory_bytes + GROWTH_MAX_BYTES:
        yield f"memory grew from {first.memory_bytes // MIB} to {last.memory_bytes // MIB} MiB"
