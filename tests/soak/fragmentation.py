"""Millions of messages of all sizes pass through a broker, whose memory must not stay in pieces.

python -m tests.soak.fragmentation --messages 10000000 --seed 1

Queues of each type fill to a length that differs each time, and are emptied. The memory is measured while they are
empty: it may grow with the first messages, and not with the millions after them.
"""

from __future__ import annotations

import math
import random
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
from pamqp import commands

from compat.brokers import AmqpBroker
from tests.adversity.watching import MIB, memory_bytes
from tests.client import READ_BYTES, Client
from tests.peer import publish_bytes
from tests.present import present

# Messages that are made once, and sent again and again.
POOL: Final = 2000
MEDIAN_BYTES: Final = 300
# Of the logarithm of sizes: one message of a thousand has more than 30 kB.
SIGMA: Final = 1.5
SIZE_MAX_BYTES: Final = 1024 * 1024
BACKLOG_MAX: Final = 100_000
# Messages after which the memory is that of a broker in use.
WARM_UP: Final = 400_000
GROWTH_MAX: Final = 1.3
GROWTH_MAX_BYTES: Final = 16 * MIB
PREFETCH: Final = 1000
QUEUES: Final[dict[str, dict[str, Any]]] = {
    "classic": {},
    "priority": {"x-max-priority": 5},
    "quorum": {"x-queue-type": "quorum"},
    "ttl": {"x-message-ttl": 3_600_000, "x-max-length": BACKLOG_MAX},
}
STREAM: Final[dict[str, Any]] = {"x-queue-type": "stream", "x-max-length-bytes": 20_000_000}

_DELIVER: Final = commands.Basic.Deliver.index.to_bytes(4, "big")
_ACK: Final = commands.Basic.Ack.index.to_bytes(4, "big")
_CANCELLED: Final = commands.Basic.CancelOk.index.to_bytes(4, "big")
_METHOD: Final = 1


@dataclass
class Course:
    """The memory of the broker in octets, by the number of messages that have passed."""

    memory: dict[int, int] = field(default_factory=dict)

    def errors(self) -> list[str]:
        """The growth of the memory since the warm-up, if it is too much."""
        early = [octets for messages, octets in self.memory.items() if messages <= WARM_UP] or [*self.memory.values()][
            :1
        ]
        allowed, last = GROWTH_MAX * max(early) + GROWTH_MAX_BYTES, [*self.memory.values()][-1]
        if last <= allowed:
            return []
        return [f"memory grew from {max(early) / MIB:.0f} to {last / MIB:.0f} MiB"]


class Reader:
    """Reads the frames of a client without decoding them; the client itself reads no more."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._data = b""
        self._at = 0

    def next_method(self) -> tuple[bytes, bytes]:
        """Return id and arguments of the next method; contents are passed over. Raise ConnectionError at the end."""
        data, at = self._data, self._at
        while True:
            while len(data) - at >= 8 and len(data) - at >= 8 + (size := int.from_bytes(data[at + 3 : at + 7], "big")):
                start, at = at, at + 8 + size
                if data[start] == _METHOD:
                    self._data, self._at = data, at
                    return data[start + 7 : start + 11], data[start + 11 : at - 1]
            read = self._client.socket.recv(READ_BYTES)
            if not read:
                raise ConnectionError("the broker closed the connection")
            data, at = data[at:] + read, 0

    def wait_for(self, kind: bytes) -> bytes:
        """Return the arguments of the next method of this kind."""
        while True:
            method, arguments = self.next_method()
            if method == kind:
                return arguments


def pool(choices: random.Random, queue: str) -> list[bytes]:
    """Return messages for a queue as applications send them: sizes, ids, headers and times to live differ."""
    made = []
    for number in range(POOL):
        size = min(int(choices.lognormvariate(math.log(MEDIAN_BYTES), SIGMA)), SIZE_MAX_BYTES)
        made.append(
            publish_bytes(
                queue,
                choices.randbytes(size),
                message_id=f"{number:08x}-{choices.randrange(1 << 32):08x}",
                headers={"trace": f"{choices.randrange(1 << 62):016x}", "attempt": choices.randrange(4)},
                delivery_mode=choices.choice((1, 2)),
                priority=choices.randrange(6),
                expiration="3600000" if choices.random() < 0.1 else None,
            )
        )
    return made


def passed(folder: Path, messages: int, seed: int, backlog_max: int = BACKLOG_MAX) -> Course:
    """Have messages pass through a new broker, and return the course of its memory."""
    choices, course, count = random.Random(seed), Course(), 0
    broker = AmqpBroker(folder)
    with broker.running():
        publisher = Client(broker.port).open()
        consumer = Client(broker.port).open()
        publisher.call(commands.Confirm.Select())
        consumer.call(commands.Basic.Qos(prefetch_count=PREFETCH))
        for name, arguments in (*QUEUES.items(), ("stream", STREAM)):
            publisher.declare(name, durable=True, arguments=arguments)
        pools = {name: pool(choices, name) for name in (*QUEUES, "stream")}
        confirms, deliveries, published = Reader(publisher), Reader(consumer), 0
        while count < messages:
            lengths = {name: choices.randrange(1, max(2, backlog_max // len(QUEUES))) for name in QUEUES}
            for name, length in (*lengths.items(), ("stream", 500)):
                for start in range(0, length, PREFETCH):
                    sent = choices.choices(pools[name], k=min(PREFETCH, length - start))
                    publisher.send_bytes(b"".join(sent))
                    published += len(sent)
                    wait_for_confirms(confirms, published)
            for name, length in lengths.items():
                consume(consumer, deliveries, name, length)
            count += sum(lengths.values())
            course.memory[count] = memory_bytes(present(broker.process).pid, "RssAnon")
    return course


def wait_for_confirms(confirms: Reader, published: int) -> None:
    while int.from_bytes(confirms.wait_for(_ACK)[:8], "big") < published:
        pass


def consume(client: Client, deliveries: Reader, queue: str, count: int) -> None:
    """Take this number of messages from a queue, and ack them."""
    client.send(commands.Basic.Consume(queue=queue, consumer_tag=queue))
    for number in range(1, count + 1):
        deliveries.wait_for(_DELIVER)
        if number % (PREFETCH // 2) == 0 or number == count:
            client.send(commands.Basic.Ack(0, multiple=True))
    client.send(commands.Basic.Cancel(queue))
    deliveries.wait_for(_CANCELLED)


@click.command()
@click.option("--messages", default=10_000_000, show_default=True, help="Number of messages.")
@click.option("--seed", default=1, show_default=True, help="Seed of sizes and lengths.")
def main(messages: int, seed: int) -> None:
    """Have messages of all sizes pass through a broker, and check that its memory does not stay in pieces."""
    with tempfile.TemporaryDirectory() as folder:
        course = passed(Path(folder), messages, seed)
    for count, octets in [*course.memory.items()][:: max(1, len(course.memory) // 20)]:
        click.echo(f"{count} messages: {octets / MIB:.1f} MiB")
    click.echo(f"{[*course.memory][-1]} messages: {[*course.memory.values()][-1] / MIB:.1f} MiB")
    for error in course.errors():
        click.echo(error, err=True)
    sys.exit(1 if course.errors() else 0)


if __name__ == "__main__":
    main()
