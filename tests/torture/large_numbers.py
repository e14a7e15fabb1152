"""Measure a broker with large numbers of queues, bindings, connections, unacked messages and octets.

python -m tests.torture.large_numbers --scale 1.0 queues bindings connections channels unacked message backlog
"""

from __future__ import annotations

import resource
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click
from pamqp import commands, frame

from compat.brokers import AmqpBroker, BrokerProcess
from compat.oracles.oracle import ORACLES
from compat.oracles.rabbitmq import RabbitMQ
from compat.waiting import wait_until
from tests.adversity.watching import MIB, memory_bytes, open_files
from tests.client import Client
from tests.peer import publish_bytes

# Requests that are sent before their answers are read.
WINDOW = 500
# Time that a client waits for an answer to a large request, in seconds.
PATIENCE_S = 600.0
# The class and the method of channel.open-ok.
OPEN_OK = struct.pack(">HH", 20, 11)
Attempt = Callable[[BrokerProcess, float], str]


@contextmanager
def timed(durations: dict[str, float], name: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    durations[name] = time.monotonic() - began


def shown(broker: BrokerProcess, durations: dict[str, float]) -> str:
    times = ", ".join(f"{name} in {duration_s:.1f} s" for name, duration_s in durations.items())
    return f"{times}; {memory_bytes(broker.pid, 'RssAnon') // MIB} MiB at the end"


def queues(broker: BrokerProcess, scale: float) -> str:
    """Declare 100 000 queues, ask one of them, and restart the broker."""
    count, durations = int(100_000 * scale), dict[str, float]()
    with Client(broker.port).open() as client:
        with timed(durations, f"{count} durable queues declared"):
            for start in range(0, count, WINDOW):
                names = [f"queue-{number}" for number in range(start, min(count, start + WINDOW))]
                client.send(*(commands.Queue.Declare(queue=name, durable=True) for name in names))
                for _ in names:
                    client.expect(commands.Queue.DeclareOk)
        assert client.ready_count(f"queue-{count - 1}") == 0
    broker.stop()
    with timed(durations, "started again"):
        broker.start()
    with Client(broker.port).open() as client:
        assert client.ready_count(f"queue-{count - 1}") == 0
    return shown(broker, durations)


def bindings(broker: BrokerProcess, scale: float) -> str:
    """Bind a queue to a topic exchange a million times, publish, and delete it."""
    count, durations = int(1_000_000 * scale), dict[str, float]()
    with Client(broker.port).open() as client:
        client.call(commands.Exchange.Declare(exchange="many", exchange_type="topic"))
        client.declare("q", durable=broker.declares_durable)
        with timed(durations, f"{count} bindings"):
            for start in range(0, count, WINDOW):
                keys = [f"key.{number}" for number in range(start, min(count, start + WINDOW))]
                client.send(*(commands.Queue.Bind(queue="q", exchange="many", routing_key=key) for key in keys))
                for _ in keys:
                    client.expect(commands.Queue.BindOk)
        with timed(durations, "1000 publishes"):
            for number in range(1000):
                client.publish(f"key.{number * count // 1000}", b"x", exchange="many")
            client.sync()
            assert client.ready_count("q") == 1000
        # The deletion takes longer than an answer usually may.
        client.socket.settimeout(PATIENCE_S)
        with timed(durations, "queue deleted"):
            client.call(commands.Queue.Delete(queue="q"))
    return shown(broker, durations)


def connections(broker: BrokerProcess, scale: float) -> str:
    """Open 10 000 connections with 10 channels each, use them, and close them."""
    return _connections(broker, scale, 10)


def channels(broker: BrokerProcess, scale: float) -> str:
    """Open 10 000 connections with 100 channels each, use them, and close them."""
    return _connections(broker, scale, 100)


def _connections(broker: BrokerProcess, scale: float, channel_count: int) -> str:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (hard, hard))
    count, durations = min(int(10_000 * scale), hard - 200), dict[str, float]()
    clients = []
    before = open_files(broker.pid)
    requests = b"".join(frame.marshal(commands.Channel.Open(), number) for number in range(2, channel_count + 1))
    with timed(durations, f"{count} connections with {channel_count} channels each opened"):
        for _ in range(count):
            client = Client(broker.port).open()
            client.send_bytes(requests)
            clients.append(client)
        for client in clients:
            # Decoding a million answers would take longer than sending them.
            answers = b""
            while answers.count(OPEN_OK) < channel_count - 1:
                answers += client.socket.recv(1 << 16)
    with timed(durations, "each used once"):
        for client in clients:
            client.sync()
    text = shown(broker, durations)
    with timed(durations, "closed"):
        for client in clients:
            client.close()
        wait_until(lambda: open_files(broker.pid) <= before + 2, 120)
    return f"{text}; closed in {durations['closed']:.1f} s"


def unacked(broker: BrokerProcess, scale: float) -> str:
    """Drop a connection with 1000 consumers and 100 000 unacked messages."""
    count, durations = int(100_000 * scale), dict[str, float]()
    with Client(broker.port).open() as bystander, Client(broker.port).open() as client:
        client.declare("q", durable=broker.declares_durable)
        for start in range(0, count, WINDOW):
            client.send_bytes(
                b"".join(publish_bytes("q", b"x" * 100) for _ in range(start, min(count, start + WINDOW)))
            )
        client.sync()
        client.send(*(commands.Basic.Consume(queue="q", consumer_tag=str(number)) for number in range(1000)))
        taken = 0
        while taken < count:
            method, _ = client.next()
            if isinstance(method, commands.Basic.Deliver):
                client.expect_body()
                taken += 1
        client.reset()
        with timed(durations, f"{count} messages returned"):
            while bystander.ready_count("q") < count:
                pass
    return shown(broker, durations)


def message(broker: BrokerProcess, scale: float) -> str:
    """Publish one message of 512 MiB, and get it."""
    size, durations = int(512 * MIB * scale), dict[str, float]()
    with Client(broker.port).open() as client:
        client.socket.settimeout(PATIENCE_S)
        client.declare("q", durable=broker.declares_durable)
        with timed(durations, f"{size // MIB} MiB published"):
            client.send(commands.Basic.Publish(routing_key="q"))
            header = struct.pack(">HHQH", 60, 0, size, 0)
            client.send_bytes(b"\x02" + struct.pack(">HI", 1, len(header)) + header + b"\xce")
            piece = 131072 - 8
            body = b"x" * piece
            for start in range(0, size, piece):
                part = body[: min(piece, size - start)]
                client.send_bytes(b"\x03" + struct.pack(">HI", 1, len(part)) + part + b"\xce")
            client.sync()
        with timed(durations, "got"):
            client.send(commands.Basic.Get(queue="q", no_ack=True))
            client.expect(commands.Basic.GetOk)
            got = 0
            client.next()
            while got < size:
                got += len(client.next()[0].value)
        assert got == size
        client.sync()
    return shown(broker, durations)


def backlog(broker: BrokerProcess, scale: float) -> str:
    """Publish transient messages until the memory alarm blocks the publisher, and consume all."""
    durations = dict[str, float]()
    broker.run("ctl", "set_vm_memory_high_watermark", "absolute", f"{int(200 + 400 * scale)}MiB")
    client = Client(broker.port)
    client.capabilities["connection.blocked"] = True
    client.open().call(commands.Queue.Declare(queue="q", arguments={"x-max-priority": 1}))
    pieces = b"".join(publish_bytes("q", b"x" * 4000) for _ in range(64))
    client.socket.settimeout(0.001)
    published = 0
    with timed(durations, "blocked"):
        while True:
            with suppress(TimeoutError):
                client._received += client.socket.recv(4096)
            if client._has_frame():
                break
            client.socket.settimeout(30)
            client.send_bytes(pieces)
            client.socket.settimeout(0.001)
            published += 64
    client.socket.settimeout(60)
    assert isinstance(client.next()[0], commands.Connection.Blocked)
    peak = memory_bytes(broker.pid, "RssAnon") // MIB
    with Client(broker.port).open() as consumer, timed(durations, f"{published} messages consumed"):
        consumer.consume("q", no_ack=True)
        for _ in range(published):
            consumer.expect_delivery()
    assert isinstance(client.next()[0], commands.Connection.Unblocked)
    client.close()
    return f"{shown(broker, durations)}, {peak} when blocked"


ATTEMPTS: dict[str, Attempt] = {
    "queues": queues,
    "bindings": bindings,
    "connections": connections,
    "channels": channels,
    "unacked": unacked,
    "message": message,
    "backlog": backlog,
}
VARIABLES = {"message": {"AMQP_BROKER_MESSAGE_BYTES_MAX": "536870912"}}
CONF = ("max_message_size = 536870912",)


@click.command()
@click.option("--scale", default=1.0, show_default=True, help="Share of the full numbers.")
@click.option("--oracle", type=click.Choice(list(ORACLES)), help="Version of RabbitMQ to measure instead.")
@click.argument("names", nargs=-1, type=click.Choice(list(ATTEMPTS)))
def main(scale: float, oracle: str | None, names: tuple[str, ...]) -> None:
    """Measure a broker with large numbers of everything."""
    for name in names or ATTEMPTS:
        with tempfile.TemporaryDirectory() as folder:
            click.echo(f"{name}: {attempt(name, Path(folder, 'broker'), scale, oracle)}")


def attempt(name: str, folder: Path, scale: float, oracle: str | None = None) -> str:
    """Do one attempt with a new broker; return a sentence about its durations."""
    broker: BrokerProcess
    if oracle is None:
        broker = AmqpBroker(folder)
        broker.variables = VARIABLES.get(name, {})
    else:
        broker = RabbitMQ(folder, settings=CONF, oracle=ORACLES[oracle])
    with broker.running():
        text = ATTEMPTS[name](broker, scale)
        assert "Traceback" not in broker.log_path.read_text("utf-8")
    return text


if __name__ == "__main__":
    main()
