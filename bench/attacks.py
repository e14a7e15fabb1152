"""Measure how long an innocent client waits while another one sends little that means much work.

    python -m bench.attacks [--compiled] [--rabbitmq 4.3] [--attacks fanout,keys]

Prints a table for docs/reliability.md. The innocent client declares a queue passively, again and again, until the
broker has answered the attacker's last method: the 99th percentile and the longest answer, in milliseconds, and the
growth of the broker's memory at its peak.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Final, NamedTuple

import pika
from pamqp import base, body, commands, frame, header

from bench.subjects import Subject, amqp_broker, compiled, rabbitmq
from compat.brokers import BrokerProcess

PAUSE_S: Final = 0.002
# RabbitMQ may take longer; the row says so.
PATIENCE_S: Final = 60.0
CHANNEL: Final = 1
ROUTES: Final = 1000
UNACKED: Final = 20_000


def marshalled(*methods: base.Frame) -> bytes:
    return b"".join(frame.marshal(method, CHANNEL) for method in methods)


class RawClient:
    """A connection with one channel, which costs little itself."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.socket = socket.create_connection((broker.host, broker.port))
        self.socket.settimeout(PATIENCE_S)
        self._read = b""
        self.socket.sendall(b"AMQP\0\0\x09\1")
        self.wait_for(commands.Connection.Start)
        login = f"\0{broker.user}\0{broker.password}"
        self.call(commands.Connection.StartOk({}, "PLAIN", login), commands.Connection.Tune, 0)
        self.socket.sendall(frame.marshal(commands.Connection.TuneOk(2047, 131_072, 0), 0))
        self.call(commands.Connection.Open("/"), commands.Connection.OpenOk, 0)
        self.call(commands.Channel.Open(), commands.Channel.OpenOk)

    def call(self, method: base.Frame, answer: type[base.Frame], channel: int = CHANNEL) -> None:
        """Send a method and wait for its answer."""
        self.socket.sendall(frame.marshal(method, channel))
        self.wait_for(answer)

    def wait_for(self, kind: type[base.Frame], count: int = 1) -> None:
        """Read until this number of methods of this kind have come. Raise TimeoutError."""
        while True:
            at = 0
            while len(self._read) - at >= 8 and len(self._read) - at >= 8 + (
                size := int.from_bytes(self._read[at + 3 : at + 7], "big")
            ):
                is_one = self._read[at] == 1 and self._read[at + 7 : at + 11] == kind.index.to_bytes(4, "big")
                at += 8 + size
                count -= is_one
                if not count:
                    self._read = self._read[at:]
                    return
            data = self.socket.recv(1 << 20)
            if not data:
                raise ConnectionError("the broker has closed the connection")
            self._read = self._read[at:] + data

    def do(self, *methods: base.Frame) -> None:
        """Send methods that have no answers, and wait until they are done."""
        # In one write: a second one would wait for the system's acknowledgement of the first.
        self.socket.sendall(marshalled(*methods, commands.Basic.Qos()))
        self.wait_for(commands.Basic.QosOk)

    def drop_all(self) -> None:
        """Read on without looking, until the connection ends."""
        with contextlib.suppress(OSError):
            while self.socket.recv(1 << 20):
                pass


class Attack(NamedTuple):
    """An attack: what is declared before it, and what it sends at once."""

    name: str
    title: str
    prepare: Callable[[RawClient, RawClient], object]
    data: Callable[[], bytes]


def published(exchange: str, key: str) -> bytes:
    """Return the frames of a message of eight octets."""
    parts = (
        commands.Basic.Publish(exchange=exchange, routing_key=key),
        header.ContentHeader(body_size=8, properties=commands.Basic.Properties()),
        body.ContentBody(b"8 octets"),
    )
    return b"".join(frame.marshal(part, CHANNEL) for part in parts)


def bind_queues(helper: RawClient, attacker: RawClient) -> None:
    """Bind queues with consumers, which read, to a fanout exchange."""
    helper.do(commands.Exchange.Declare(exchange="attacked", exchange_type="fanout", nowait=True))
    for number in range(ROUTES):
        name = f"q{number}"
        helper.do(
            commands.Queue.Declare(queue=name, exclusive=True, nowait=True),
            commands.Queue.Bind(queue=name, exchange="attacked", nowait=True),
            commands.Basic.Consume(queue=name, consumer_tag=name, no_ack=True, nowait=True),
        )


def bind_patterns(helper: RawClient, attacker: RawClient) -> None:
    """Bind a queue with long patterns that have no literal words."""
    choices = random.Random(1)
    patterns = [".".join(choices.choice("*#") for _ in range(120)) for _ in range(200)]
    helper.do(
        commands.Queue.Declare(queue="attacked", exclusive=True, nowait=True),
        *(commands.Queue.Bind(0, "attacked", "amq.topic", pattern, nowait=True) for pattern in patterns),
    )


def take_messages(helper: RawClient, attacker: RawClient) -> None:
    """Have the attacker hold unacked messages."""
    attacker.call(commands.Queue.Declare(queue="attacked", exclusive=True), commands.Queue.DeclareOk)
    attacker.socket.sendall(published("", "attacked") * UNACKED)
    attacker.call(commands.Basic.Consume(queue="attacked"), commands.Basic.ConsumeOk)
    attacker.wait_for(commands.Basic.Deliver, UNACKED)


def begin_transactions(helper: RawClient, attacker: RawClient) -> None:
    take_messages(helper, attacker)
    attacker.call(commands.Tx.Select(), commands.Tx.SelectOk)


def prepare_nothing(helper: RawClient, attacker: RawClient) -> None:
    pass


ATTACKS: Final = (
    Attack(
        "fanout",
        f"4 000 messages of 8 B to {ROUTES} queues with consumers, in 200 KB",
        bind_queues,
        lambda: published("attacked", "") * 4000,
    ),
    Attack(
        "keys",
        "400 000 messages, each with a new routing key",
        prepare_nothing,
        lambda: b"".join(published("amq.topic", f"key.{number}") for number in range(400_000)),
    ),
    Attack(
        "patterns",
        "20 messages that 200 patterns of `*` and `#` match halfway",
        bind_patterns,
        lambda: b"".join(published("amq.topic", ".".join([*"a" * 119, str(number)])) for number in range(20)),
    ),
    Attack("flood", "600 000 messages as fast as they go", prepare_nothing, lambda: published("", "missing") * 600_000),
    Attack(
        "acks",
        f"{UNACKED} unacked messages, acked in tens",
        take_messages,
        lambda: marshalled(*(commands.Basic.Ack(tag, multiple=True) for tag in range(10, UNACKED + 1, 10))),
    ),
    Attack(
        "rollbacks",
        f"60 rollbacks of {UNACKED} acks, in 2 KB",
        begin_transactions,
        lambda: marshalled(commands.Basic.Ack(0, multiple=True), commands.Tx.Rollback()) * 60,
    ),
)


class Waits(NamedTuple):
    """The innocent client's answers in ms, the growth in MB, and whether the attack was over in time."""

    p99_ms: float
    longest_ms: float
    growth_mb: float
    is_over: bool


def measure(attack: Attack, subject: Subject, folder: Path) -> Waits | None:
    """Attack a new broker. Return None if the attack's queues and bindings take too long."""
    broker = subject.make(folder / f"{subject.name}-{attack.name}".replace(" ", "-"))
    assert isinstance(broker, BrokerProcess)
    broker.start()
    try:
        return _attack(attack, broker)
    finally:
        broker.kill()


def _attack(attack: Attack, broker: BrokerProcess) -> Waits | None:
    helper, attacker = RawClient(broker), RawClient(broker)
    try:
        attack.prepare(helper, attacker)
    except TimeoutError:
        return None
    Thread(target=helper.drop_all, daemon=True).start()
    data = attack.data()
    innocent = pika.BlockingConnection(pika.URLParameters(broker.url + "?heartbeat=0")).channel()
    innocent.queue_declare("innocent", exclusive=True)
    is_over, memory = Event(), [_memory_mb(broker.pid)]
    outcomes: list[bool] = []

    def strike() -> None:
        try:
            attacker.socket.sendall(data)
            attacker.call(commands.Basic.Qos(), commands.Basic.QosOk)
            outcomes.append(True)
        except (OSError, ConnectionError):
            outcomes.append(False)
        is_over.set()

    Thread(target=strike, daemon=True).start()
    waits = []
    deadline = time.monotonic() + PATIENCE_S
    while not is_over.is_set() and time.monotonic() < deadline:
        begun = time.perf_counter()
        innocent.queue_declare("innocent", passive=True)
        waits.append(1000 * (time.perf_counter() - begun))
        memory.append(_memory_mb(broker.pid))
        time.sleep(PAUSE_S)
    waits.sort()
    return Waits(waits[len(waits) * 99 // 100], waits[-1], max(memory) - memory[0], outcomes == [True])


def _memory_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text("utf-8").split()[1])
    return pages * 4096 / 1e6


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.attacks", description=__doc__)
    parser.add_argument("--compiled", action="store_true", help="measure the build of `make compiled`, too")
    parser.add_argument(
        "--rabbitmq", default="4.3", metavar="VERSION", help="of 3.10, 4.0, 4.3 (default 4.3); none: ''"
    )
    names = [attack.name for attack in ATTACKS]
    parser.add_argument("--attacks", default=",".join(names), help=f"only these (default {','.join(names)})")
    options = parser.parse_args(words)
    subjects = [*([compiled()] if options.compiled else []), amqp_broker()]
    if options.rabbitmq:
        subjects.append(rabbitmq(options.rabbitmq))
    print("| attack | " + " | ".join(subject.name for subject in subjects) + " |")
    print("|---|" + "--:|" * len(subjects))
    with tempfile.TemporaryDirectory() as folder:
        for attack in ATTACKS:
            if attack.name in options.attacks.split(","):
                cells = [_cell(measure(attack, subject, Path(folder))) for subject in subjects]
                print(f"| {attack.title} | " + " | ".join(cells) + " |", flush=True)


def _cell(waits: Waits | None) -> str:
    if waits is None:
        return f"not prepared after {PATIENCE_S:.0f} s"
    text = f"{waits.p99_ms:.1f}, {waits.longest_ms:.0f}, {waits.growth_mb:+.0f} MB"
    return text if waits.is_over else f"{text}; not over after {PATIENCE_S:.0f} s"


if __name__ == "__main__":
    main()
