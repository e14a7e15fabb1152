"""Peers that do not read: their messages stay in the queues, once, and other clients do not wait."""

from __future__ import annotations

import select
import threading
from collections.abc import Iterator

import pytest
from pamqp import commands, frame

from compat.brokers import AmqpBroker
from compat.waiting import wait_until
from tests.adversity.watching import MIB, memory_bytes, needs_proc, open_files
from tests.client import READ_BYTES, TIMEOUT_S, Client
from tests.peer import publish_bytes

SMALL_BUFFER = 16 * 1024
# Memory that a socket with its session may use, and memory that the allocator may keep.
PER_CONNECTION_BYTES = 1 * MIB
SLACK_BYTES = 48 * MIB


@pytest.fixture(scope="module")
def stalled(broker: AmqpBroker) -> Iterator[list[Client]]:
    """Provide clients that have stopped reading; they stay until the end of the module."""
    clients: list[Client] = []
    yield clients
    for client in clients:
        client.close()


def stall_consumer(broker: AmqpBroker, queue: str, stalled: list[Client]) -> None:
    consumer = Client(broker.port, receive_bytes=SMALL_BUFFER).open()
    stalled.append(consumer)
    consumer.declare(queue)
    consumer.consume(queue, no_ack=True)


def publish_much(client: Client, queue: str, *, exchange: str = "", count: int, body_bytes: int) -> None:
    """Publish `count` messages and wait until the broker has processed them."""
    one = publish_bytes(queue, bytes(body_bytes), exchange=exchange)
    portion = max(1, MIB // len(one))
    for start in range(0, count, portion):
        client.send_bytes(one * min(portion, count - start))
    client.sync()


def has_room(client: Client, timeout_s: float = 1.0) -> bool:
    """Return whether the client's socket becomes writable within the time."""
    _, writable, _ = select.select([], [client.socket], [], timeout_s)
    return bool(writable)


def send_without_reading(client: Client, requests: bytes, bytes_max: int) -> int:
    """Send the same requests until the broker reads no more; return the number of octets sent."""
    sent = 0
    client.socket.setblocking(False)
    while sent < bytes_max and has_room(client):
        try:
            sent += client.socket.send(requests)
        except BlockingIOError:
            continue
    client.socket.setblocking(True)
    return sent


@needs_proc
@pytest.mark.parametrize("body_bytes", [1000, 100_000])
def test_a_backlog_for_a_consumer_that_does_not_read_is_kept_once(
    broker: AmqpBroker, client: Client, stalled: list[Client], body_bytes: int
) -> None:
    queue = f"slow-{body_bytes}"
    stall_consumer(broker, queue, stalled)
    before, volume = memory_bytes(broker.pid), 64 * MIB
    publish_much(client, queue, count=volume // body_bytes, body_bytes=body_bytes)
    # A message of 1000 octets also needs memory for its frames and its object.
    assert memory_bytes(broker.pid) - before < volume * 3 // 2 + SLACK_BYTES
    client.call(commands.Queue.Purge(queue=queue))


@needs_proc
@pytest.mark.parametrize("body_bytes", [4000, 64 * 1024])
def test_fifty_consumers_that_do_not_read_share_one_copy(
    broker: AmqpBroker, client: Client, stalled: list[Client], body_bytes: int
) -> None:
    count, exchange = 50, f"fan-{body_bytes}"
    client.call(commands.Exchange.Declare(exchange=exchange, exchange_type="fanout"))
    for number in range(count):
        stall_consumer(broker, f"{exchange}-{number}", stalled)
        client.call(commands.Queue.Bind(queue=f"{exchange}-{number}", exchange=exchange))
    before, volume = memory_bytes(broker.pid), 64 * MIB
    publish_much(client, "", exchange=exchange, count=volume // body_bytes, body_bytes=body_bytes)
    assert memory_bytes(broker.pid) - before < volume + count * PER_CONNECTION_BYTES + SLACK_BYTES
    # All have their messages, and so do clients that read.
    assert client.ready_count(f"{exchange}-{count - 1}") > 0
    reader = Client(broker.port).open()
    for number in range(count):
        ready = reader.ready_count(f"{exchange}-{number}")
        assert client.call(commands.Queue.Purge(queue=f"{exchange}-{number}")).message_count == ready > 0
    reader.close()


def test_other_clients_are_answered_meanwhile(broker: AmqpBroker, client: Client, stalled: list[Client]) -> None:
    stall_consumer(broker, "slow", stalled)
    flooding = threading.Event()

    def flood() -> None:
        with Client(broker.port).open() as publisher:
            while not flooding.is_set():
                publish_much(publisher, "slow", count=100, body_bytes=10_000)

    thread = threading.Thread(target=flood, daemon=True)
    thread.start()
    try:
        wait_until(lambda: client.ready_count("slow") > 0)
        client.declare("fast")
        client.consume("fast", no_ack=True)
        for number in range(200):
            client.publish("fast", b"%d" % number)
            assert client.expect_delivery()[1] == b"%d" % number
    finally:
        flooding.set()
        thread.join()
    client.call(commands.Queue.Purge(queue="slow"))


@needs_proc
def test_a_peer_that_never_reads_its_replies_is_no_longer_read(broker: AmqpBroker, client: Client) -> None:
    name = "q" * 250
    client.declare(name)
    before = memory_bytes(broker.pid)
    with Client(broker.port, receive_bytes=SMALL_BUFFER).open() as asker:
        request = frame.marshal(commands.Queue.Declare(queue=name, passive=True), 1)
        sent = send_without_reading(asker, request * 200, 256 * MIB)
        assert sent < 64 * MIB
        assert memory_bytes(broker.pid) - before < SLACK_BYTES
        client.sync()
        # Once it reads, each request is answered.
        answers = sent // len(request)
        for _ in range(min(answers, 1000)):
            assert asker.expect(commands.Queue.DeclareOk).queue == name


@needs_proc
def test_a_peer_that_never_reads_its_gets_is_no_longer_read(broker: AmqpBroker, client: Client) -> None:
    client.declare("got")
    publish_much(client, "got", count=1000, body_bytes=64 * 1024)
    before = memory_bytes(broker.pid)
    with Client(broker.port, receive_bytes=SMALL_BUFFER).open() as getter:
        # Gets are small, so one read has many of them. The messages are shared with the queue.
        getter.send_bytes(frame.marshal(commands.Basic.Get(queue="got"), 1) * 1000)
        wait_until(lambda: client.ready_count("got") < 1000)
        assert memory_bytes(broker.pid) - before < SLACK_BYTES
    wait_until(lambda: client.ready_count("got") == 1000)
    client.call(commands.Queue.Purge(queue="got"))


@needs_proc
def test_a_flood_that_is_consumed_does_not_grow_the_broker(broker: AmqpBroker, client: Client) -> None:
    volume, sent, received = 256 * MIB, 0, 0
    client.declare("river")
    flood = memoryview(publish_bytes("river", bytes(50_000)) * 5)
    before = highest = memory_bytes(broker.pid)
    with Client(broker.port).open() as consumer, Client(broker.port).open() as publisher:
        consumer.consume("river", no_ack=True)
        publisher.socket.setblocking(False)
        # No more is in flight than a delayed broker may hold.
        while received < volume:
            senders = [publisher.socket] if sent - received < volume // 16 else []
            readable, writable, _ = select.select([consumer.socket], senders, [], TIMEOUT_S)
            assert readable or writable
            if writable:
                sent += publisher.socket.send(flood[sent % len(flood) :])
            if readable:
                received += len(consumer.socket.recv(READ_BYTES))
            highest = max(highest, memory_bytes(broker.pid))
    assert highest - before < volume // 4


@needs_proc
def test_disconnected_stalled_peers_leak_nothing(broker: AmqpBroker, client: Client) -> None:
    files = open_files(broker.pid)
    peers: list[Client] = []
    for number in range(4):
        stall_consumer(broker, f"gone-{number}", peers)
        publish_much(client, f"gone-{number}", count=160, body_bytes=100_000)
        assert client.ready_count(f"gone-{number}") > 0
    for number, peer in enumerate(peers):
        if number % 2:
            peer.reset()
        else:
            peer.close()
    wait_until(lambda: open_files(broker.pid) <= files)
    for number in range(4):
        assert client.declare(f"gone-{number}", passive=True).consumer_count == 0
        client.call(commands.Queue.Delete(queue=f"gone-{number}"))
