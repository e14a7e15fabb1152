"""Measure how long an innocent client waits while another one sends little that means much work.

    python -m bench.attacks [--compiled] [--rabbitmq 4.3] [--attacks fanout,keys]

Prints a table for docs/reliability.md. The innocent client declares a queue passively, again and again, until the
broker has answered the attacker's last method: the 99th percentile and the longest answer, in milliseconds, and the
growth of the broker's memory at its peak.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final, NamedTuple

import pika
from pamqp import body, commands, frame, header

from bench.raw_client import CHANNEL, PATIENCE_S, RawClient, marshalled
from bench.subjects import Subject, amqp_broker, compiled, rabbitmq
from compat.brokers import AmqpBroker, BrokerProcess
from compat.oracles.rabbitmq import RabbitMQ

PAUSE_S: Final = 0.002
# Between two looks whether an attack is over.
POLL_S: Final = 0.1
ROUTES: Final = 1000
READERS: Final = 200
LARGE_BYTES: Final = 20_000
UNACKED: Final = 20_000
MANY: Final = 200_000
CHAIN: Final = 1000
TARGETS: Final = 300
DYING: Final = 5000
CYCLE: Final = 50
# Time for which a broker is watched that is not done with an attack before its end.
ENDLESS_S: Final = 8.0
DEAD_LETTERS: Final[dict[str, Any]] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


class Attack(NamedTuple):
    """An attack: what is declared before it, and what it sends at once.

    With `until`, it is over when that queue has that many messages, or after `patience_s`; with `limit`, an
    administrator limits the length of the queue "attacked" to that.
    """

    name: str
    title: str
    prepare: Callable[[RawClient, RawClient], object]
    data: Callable[[], bytes]
    until: tuple[str, int] | None = None
    patience_s: float = PATIENCE_S
    limit: int | None = None


def published(exchange: str, key: str, expiration: str | None = None, content: bytes = b"8 octets") -> bytes:
    """Return the frames of a message."""
    parts = (
        commands.Basic.Publish(exchange=exchange, routing_key=key),
        header.ContentHeader(body_size=len(content), properties=commands.Basic.Properties(expiration=expiration)),
        body.ContentBody(content),
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


def bind_idle_readers(helper: RawClient, attacker: RawClient) -> None:
    """Bind queues to a fanout exchange, each with a consumer on a connection that reads nothing."""
    helper.do(commands.Exchange.Declare(exchange="attacked", exchange_type="fanout", nowait=True))
    for number in range(READERS):
        name = f"q{number}"
        reader = RawClient(helper.broker)
        reader.do(
            commands.Queue.Declare(queue=name, exclusive=True, nowait=True),
            commands.Queue.Bind(queue=name, exchange="attacked", nowait=True),
            commands.Basic.Consume(queue=name, consumer_tag=name, no_ack=True, nowait=True),
        )
        helper.companions.append(reader)


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


def declare_with_dead_letters(client: RawClient) -> None:
    client.call(commands.Queue.Declare(queue="dead", exclusive=True), commands.Queue.DeclareOk)
    declare = commands.Queue.Declare(queue="attacked", exclusive=True, arguments=DEAD_LETTERS)
    client.call(declare, commands.Queue.DeclareOk)


def fill_queue(helper: RawClient, attacker: RawClient) -> None:
    declare_with_dead_letters(attacker)
    attacker.socket.sendall(published("", "attacked") * MANY)
    attacker.do()


def fill_behind_one_that_stays(helper: RawClient, attacker: RawClient) -> None:
    """Have messages expire behind the head, so that they all leave when it is taken."""
    declare_with_dead_letters(attacker)
    attacker.socket.sendall(published("", "attacked") + published("", "attacked", expiration="1") * MANY)
    attacker.do()


def take_many(helper: RawClient, attacker: RawClient) -> None:
    declare_with_dead_letters(attacker)
    attacker.socket.sendall(published("", "attacked") * MANY)
    attacker.call(commands.Basic.Consume(queue="attacked", consumer_tag="c"), commands.Basic.ConsumeOk)
    attacker.wait_for(commands.Basic.Deliver, MANY)


def chain_queues(helper: RawClient, attacker: RawClient) -> None:
    """Declare queues of which each dead-letters all messages into the next."""
    for number in range(CHAIN):
        to: dict[str, Any] = {
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": f"q{number + 1}",
            "x-message-ttl": 0,
        }
        attacker.do(commands.Queue.Declare(queue=f"q{number}", exclusive=True, nowait=True, arguments=to))
    attacker.do(commands.Queue.Declare(queue=f"q{CHAIN}", exclusive=True, nowait=True))


def prepare_nothing(helper: RawClient, attacker: RawClient) -> None:
    pass


def bind_dead_letters(client: RawClient, count: int, arguments: dict[str, Any]) -> None:
    """Bind queues to a fanout exchange "dead"."""
    client.do(commands.Exchange.Declare(exchange="dead", exchange_type="fanout", nowait=True))
    for number in range(count):
        declare = commands.Queue.Declare(queue=f"d{number}", exclusive=True, nowait=True, arguments=arguments)
        client.do(declare, commands.Queue.Bind(queue=f"d{number}", exchange="dead", nowait=True))


def take_with_many_targets(helper: RawClient, attacker: RawClient) -> None:
    """Have the attacker hold messages whose dead letters go to many queues each."""
    bind_dead_letters(attacker, TARGETS, {})
    declare = commands.Queue.Declare(queue="attacked", exclusive=True, arguments={"x-dead-letter-exchange": "dead"})
    attacker.call(declare, commands.Queue.DeclareOk)
    attacker.socket.sendall(published("", "attacked") * DYING)
    attacker.call(commands.Basic.Consume(queue="attacked"), commands.Basic.ConsumeOk)
    attacker.wait_for(commands.Basic.Deliver, DYING)


def bind_cycle(helper: RawClient, attacker: RawClient) -> None:
    """Bind full queues to the exchange of their own dead letters."""
    bind_dead_letters(attacker, CYCLE, {"x-max-length": 1, "x-dead-letter-exchange": "dead"})


ATTACKS: Final = (
    Attack(
        "fanout",
        f"4 000 messages of 8 B to {ROUTES} queues with consumers, in 200 KB",
        bind_queues,
        lambda: published("attacked", "") * 4000,
    ),
    Attack(
        "readers",
        f"500 messages of 20 KB to {READERS} queues, whose consumers read nothing",
        bind_idle_readers,
        lambda: b"".join(published("attacked", "", content=random.randbytes(LARGE_BYTES)) for _ in range(500)),
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
    Attack(
        "policy",
        "a policy limits a queue of 200 000 messages to 10; the others are dead-lettered",
        fill_queue,
        lambda: b"",
        until=("dead", MANY - 10),
        limit=10,
    ),
    Attack(
        "expiry",
        "200 000 messages expire together, and are dead-lettered",
        fill_behind_one_that_stays,
        lambda: marshalled(commands.Basic.Get(queue="attacked", no_ack=True)),
        until=("dead", MANY),
    ),
    Attack(
        "rejects",
        "200 000 unacked messages, rejected together, are dead-lettered",
        take_many,
        lambda: marshalled(commands.Basic.Nack(0, multiple=True, requeue=False)),
        until=("dead", MANY),
    ),
    Attack(
        "returns",
        "200 000 unacked messages return together",
        take_many,
        lambda: marshalled(commands.Basic.Cancel("c", nowait=True), commands.Basic.Recover(requeue=True)),
    ),
    Attack(
        "chain",
        "one message passes 1 000 queues, each of which dead-letters it into the next",
        chain_queues,
        lambda: published("", "q0"),
        until=(f"q{CHAIN}", 1),
    ),
    Attack(
        "targets",
        f"{DYING} unacked messages, rejected together, are dead-lettered to {TARGETS} queues each",
        take_with_many_targets,
        lambda: marshalled(commands.Basic.Nack(0, multiple=True, requeue=False)),
        until=(f"d{TARGETS - 1}", DYING),
    ),
    Attack(
        "cycle",
        f"3 messages to {CYCLE} full queues that dead-letter into each other, without an end",
        bind_cycle,
        lambda: published("dead", "") * 3,
        until=("d0", -1),
        patience_s=ENDLESS_S,
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
    make = subject.make if attack.limit is None else subject.make_managed
    assert make is not None
    broker = make(folder / f"{subject.name}-{attack.name}".replace(" ", "-"))
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
            if attack.limit is not None:
                assert isinstance(broker, AmqpBroker | RabbitMQ)
                limit_length(broker, attack.limit)
            attacker.socket.sendall(data)
            attacker.call(commands.Basic.Qos(), commands.Basic.QosOk)
            while attack.until is not None and attacker.count(attack.until[0]) != attack.until[1]:
                time.sleep(POLL_S)
            outcomes.append(True)
        except (OSError, ConnectionError):
            outcomes.append(False)
        is_over.set()

    Thread(target=strike, daemon=True).start()
    waits = []
    deadline = time.monotonic() + attack.patience_s
    while not is_over.is_set() and time.monotonic() < deadline:
        begun = time.perf_counter()
        innocent.queue_declare("innocent", passive=True)
        waits.append(1000 * (time.perf_counter() - begun))
        memory.append(_memory_mb(broker.pid))
        time.sleep(PAUSE_S)
    waits.sort()
    return Waits(waits[len(waits) * 99 // 100], waits[-1], max(memory) - memory[0], outcomes == [True])


def limit_length(broker: AmqpBroker | RabbitMQ, length: int) -> None:
    """Limit the length of the attacked queue, as an administrator."""
    connection = http.client.HTTPConnection(broker.host, broker.management_port, timeout=PATIENCE_S)
    credentials = b64encode(f"{broker.user}:{broker.password}".encode()).decode()
    document = json.dumps({"pattern": "^attacked$", "definition": {"max-length": length}})
    headers = {"authorization": f"Basic {credentials}", "content-type": "application/json"}
    connection.request("PUT", "/api/policies/%2F/attack", document, headers)
    assert connection.getresponse().status == http.HTTPStatus.CREATED
    connection.close()


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
                cells = [_cell(measure(attack, subject, Path(folder)), attack) for subject in subjects]
                print(f"| {attack.title} | " + " | ".join(cells) + " |", flush=True)


def _cell(waits: Waits | None, attack: Attack) -> str:
    if waits is None:
        return f"not prepared after {PATIENCE_S:.0f} s"
    text = f"{waits.p99_ms:.1f}, {waits.longest_ms:.0f}, {waits.growth_mb:+.0f} MB"
    return text if waits.is_over else f"{text}; not over after {attack.patience_s:.0f} s"


if __name__ == "__main__":
    main()
