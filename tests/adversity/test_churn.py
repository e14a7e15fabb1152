"""Many clients that connect, disconnect or are killed."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pamqp import commands

from compat.brokers import AmqpBroker
from compat.waiting import wait_until
from tests.adversity.watching import MIB, memory_bytes, needs_proc, open_files
from tests.client import Client
from tests.running import RunningServer

ROOT = Path(__file__).parents[2]
CONNECTIONS = 1000


@pytest.fixture(scope="module", autouse=True)
def many_files() -> Iterator[None]:
    """Both ends of the connections are in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * CONNECTIONS + 200
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"this user may open {hard} files only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def close_properly(client: Client) -> None:
    client.call(commands.Connection.Close(200, "bye", 0, 0), channel=0)
    client.close()


@pytest.mark.verify
def test_a_thousand_clients_connect_at_once() -> None:
    with RunningServer() as running:
        clients = [Client(running.port).open() for _ in range(CONNECTIONS)]
        assert running.ask(lambda server: len(server.broker.connections)) == CONNECTIONS
        for number, client in enumerate(clients):
            client.send(commands.Queue.Declare(queue=f"q{number}", exclusive=True))
        for client in clients:
            client.expect(commands.Queue.DeclareOk)
        # Some send connection.close, some close the socket, some reset it.
        for number, client in enumerate(clients):
            [close_properly, Client.close, Client.reset][number % 3](client)
        running.until(lambda server: not server.transports)
        assert running.ask(lambda server: (len(server.broker.connections), server.broker.vhosts["/"].queues)) == (0, {})


@needs_proc
def test_clients_that_come_and_go_leak_nothing(broker: AmqpBroker) -> None:
    def come_and_go(count: int) -> None:
        for _ in range(count):
            client = Client(broker.port).open()
            client.declare("")
            client.publish("nowhere", b"x" * 1000)
            close_properly(client)

    with ThreadPoolExecutor(4) as pool:
        files = open_files(broker.pid)
        list(pool.map(come_and_go, [50] * 4))
        memory = memory_bytes(broker.pid)
        list(pool.map(come_and_go, [150] * 4))
    wait_until(lambda: open_files(broker.pid) <= files)
    assert memory_bytes(broker.pid) < memory + 32 * MIB


def test_unsettled_messages_of_a_killed_client_are_requeued(broker: AmqpBroker) -> None:
    with Client(broker.port).open() as client:
        client.declare("killed")
        for number in range(20):
            client.publish("killed", b"%d" % number)
        client.sync()
        command = [sys.executable, "-m", "tests.adversity.stalled_consumer", str(broker.port), "killed", "10"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as consumer:
            assert consumer.stdout is not None
            assert consumer.stdout.readline() == b"received\n"
            assert client.ready_count("killed") == 10
            consumer.kill()
        wait_until(lambda: client.ready_count("killed") == 20)
        client.consume("killed", no_ack=True)
        received = [client.expect_delivery() for _ in range(20)]
        assert [body for _, body in received] == [b"%d" % number for number in range(20)]
        assert [delivery.redelivered for delivery, _ in received] == [True] * 10 + [False] * 10


@needs_proc
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux limits other processes")
def test_clients_beyond_the_limit_of_files_are_refused(broker: AmqpBroker) -> None:
    client = Client(broker.port).open()
    before = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
    files = open_files(broker.pid)
    try:
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (files + 20, before[1]))
        crowd = [Client(broker.port) for _ in range(100)]
        wait_until(lambda: open_files(broker.pid) >= files + 20)
        # Connected clients are still served.
        client.sync()
        for peer in crowd:
            peer.close()
        wait_until(lambda: open_files(broker.pid) <= files)
        Client(broker.port).open().close()
    finally:
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, before)
        client.close()
