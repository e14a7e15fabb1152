"""A server with a store commits changes before it answers, and loses nothing when it stops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pamqp.commands import Basic, Confirm, Queue, Tx

from amqp_broker.server.server import Server
from compat.brokers import AmqpBroker
from tests.client import Client
from tests.present import present
from tests.running import RunningServer
from tests.server.stalling import transport_of


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], RunningServer]]:
    """Start a server on the test's folder, after stopping the previous one."""
    servers: list[RunningServer] = []

    def start_server() -> RunningServer:
        servers.append(RunningServer(ephemeral=False, data_dir=str(tmp_path)))
        return servers[-1].__enter__()

    yield start_server
    for running in servers:
        running.stop()


def held(server: Server) -> int:
    """Return the number of connections whose answers wait for a commit."""
    return sum(bool(session.outbox.held_until) for session in server.transports)


@pytest.mark.parametrize("is_persistent", [True, False])
def test_a_transaction_is_answered_after_its_commit(start: Callable[[], RunningServer], is_persistent: bool) -> None:
    running = start()
    with Client(running.port).open() as client:
        client.declare("q", durable=True)
        client.call(Tx.Select())
        with stuck_disk(running):
            client.publish("q", b"m", delivery_mode=2 if is_persistent else 1)
            client.send(Tx.Commit())
            running.until(lambda server: server.broker.vhosts["/"].queues["q"].ready_count == 1)
            assert running.ask(held) == 1
        client.expect(Tx.CommitOk)


def test_a_purge_is_answered_after_its_commit(start: Callable[[], RunningServer]) -> None:
    running = start()
    with Client(running.port).open() as client:
        client.declare("q", durable=True)
        client.call(Confirm.Select())
        client.publish("q", b"m", delivery_mode=2)
        client.expect(Basic.Ack)
        with stuck_disk(running):
            client.send(Queue.Purge(queue="q"))
            running.until(lambda server: server.broker.vhosts["/"].queues["q"].ready_count == 0)
            assert running.ask(held) == 1
        assert client.expect(Queue.PurgeOk).message_count == 1


@contextmanager
def stuck_disk(running: RunningServer) -> Iterator[None]:
    """Let no commit end meanwhile, not even one that has begun."""
    store = running.server.store
    assert store is not None
    with store.environment.writing:
        yield


def test_a_blocked_publisher_is_not_read_while_its_answer_waits_for_a_commit(
    start: Callable[[], RunningServer],
) -> None:
    running = start()
    with Client(running.port).open() as client:
        client.declare("q", durable=True)
        client.publish("q", b"m")
        client.sync()
        with stuck_disk(running):
            client.send(Queue.Declare(queue="other", durable=True))
            running.until(held)

            running.ask(lambda server: server.broker.set_alarm("disk", True))
            client.publish("q", b"n")
            running.until(lambda server: not transport_of(client)(server).is_reading)


def test_a_stopped_server_has_committed_everything(start: Callable[[], RunningServer]) -> None:
    running = start()
    client, consumer = Client(running.port).open(), Client(running.port).open()
    client.declare("q", durable=True)
    # These are published without confirms.
    for number in range(100):
        client.publish("q", b"%d" % number, delivery_mode=2)
    client.sync()
    consumer.send(Basic.Qos(prefetch_count=10))
    consumer.expect(Basic.QosOk)
    consumer.consume("q")
    tags = [present(consumer.expect_delivery()[0].delivery_tag) for _ in range(10)]
    consumer.send(Basic.Ack(tags[4], multiple=True))
    running.until(lambda server: server.broker.vhosts["/"].queues["q"].ready_count == 85)
    running.stop()
    with Client(start().port).open() as again:
        assert again.ready_count("q") == 95
        again.consume("q", no_ack=True)
        found = [again.expect_delivery() for _ in range(95)]
        assert [int(body) for _, body in found] == list(range(5, 100))
        assert [delivery.redelivered for delivery, _ in found] == [True] * 10 + [False] * 85


def test_sigterm_ends_a_broker_with_clients_without_losses(tmp_path: Path) -> None:
    broker = AmqpBroker(tmp_path)
    broker.start()
    client = Client(broker.port).open()
    client.declare("q", durable=True)
    for number in range(1000):
        client.publish("q", b"%d" % number, delivery_mode=2)
    client.sync()
    broker.stop()
    broker.start()
    with Client(broker.port).open() as again:
        assert again.ready_count("q") == 1000
    broker.kill()
