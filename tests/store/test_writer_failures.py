"""While the disk fails the broker runs on and confirms nothing; afterwards it writes everything."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest
from pamqp import commands
from pamqp.commands import Basic, Confirm, Connection, Exchange

from amqp_broker.server.server import Server
from tests.client import Client
from tests.peer import publish_bytes, show
from tests.present import present
from tests.running import RunningServer
from tests.store.failing import Fault, full_disk, inject

PERSISTENT = 2
BODIES = [b"%d" % number for number in range(1, 6)]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningServer]:
    """A server with a store, and in it a queue with one message."""
    with RunningServer(ephemeral=False, data_dir=str(tmp_path)) as running:
        with Client(running.port).open() as client:
            client.declare("old", durable=True)
            client.declare("new", durable=True)
            client.call(Confirm.Select())
            client.publish("old", b"old", delivery_mode=PERSISTENT)
            client.expect(Basic.Ack)
        yield running


def open_publisher(running: RunningServer) -> Client:
    client = Client(running.port)
    client.capabilities["connection.blocked"] = True
    client.open()
    client.call(Confirm.Select())
    return client


def publish_bodies(client: Client) -> None:
    """In one read."""
    client.send_bytes(b"".join(publish_bytes("new", body, delivery_mode=PERSISTENT) for body in BODIES))


def is_failing(server: Server) -> bool:
    assert server.store is not None
    return server.store.is_failing and server.broker.alarms == {"disk"}


def retry(running: RunningServer) -> None:
    """Do not wait for the time when the broker tries again by itself."""
    running.ask(lambda server: present(server.store).commit())


def expect_confirms(client: Client, count: int) -> None:
    """Expect one confirm per message, in order; connection.blocked and unblocked may come between."""
    confirmed = 0
    while confirmed < count:
        method, _ = client.next()
        if not isinstance(method, Connection.Blocked | Connection.Unblocked):
            assert isinstance(method, Basic.Ack), show(method)
            assert method.multiple or method.delivery_tag == confirmed + 1
            assert confirmed < method.delivery_tag <= count
            confirmed = method.delivery_tag


def expect_trouble(running: RunningServer, client: Client) -> None:
    """The publisher is blocked, not confirmed and not read; consumers go on."""
    running.until(is_failing)
    assert client.expect(Connection.Blocked, channel=0).reason == "low on disk"
    client.publish("new", b"more", delivery_mode=PERSISTENT)
    with Client(running.port).open() as consumer:
        consumer.consume("old")
        delivery, body = consumer.expect_delivery()
        assert body == b"old"
        consumer.send(Basic.Ack(present(delivery.delivery_tag)))
        consumer.sync()
        # Nor was what came after the alarm read.
        assert consumer.ready_count("new") == len(BODIES)


def bodies(port: int, queue: str) -> list[bytes]:
    with Client(port).open() as client:
        count = client.ready_count(queue)
        client.consume(queue, no_ack=True)
        return [client.expect_delivery()[1] for _ in range(count)]


def restart_and_check(running: RunningServer, tmp_path: Path) -> None:
    """All that was published is there once, in order, and what was acked is not."""
    running.stop()
    with RunningServer(ephemeral=False, data_dir=str(tmp_path)) as again:
        assert bodies(again.port, "new") == [*BODIES, b"more"]
        assert bodies(again.port, "old") == []


# A full map is no fault but a limit: see tests/server/test_server_alarms.py.
ERRORS = [
    lmdb.DiskError("mdb_txn_commit: No space left on device"),
    lmdb.Error("mdb_txn_commit: Input/output error"),
    OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    MemoryError(),
]


def inject_from_now_on(running: RunningServer, fault: Fault) -> None:
    """Also into the transaction that is open."""
    running.ask(lambda server: inject(server, fault))
    with Client(running.port).open() as client:
        # It is answered when it is committed; what is open then has been begun under the fault.
        client.call(Exchange.Declare(exchange="spare", durable=True))


def recover(running: RunningServer, client: Client, tmp_path: Path) -> None:
    """The disk is well again: all is confirmed, and there after a restart."""
    retry(running)
    expect_confirms(client, len(BODIES) + 1)
    client.sync()
    running.until(lambda server: not server.broker.alarms)
    restart_and_check(running, tmp_path)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("name", ["put", "commit"])
def test_a_call_that_fails_loses_nothing(running: RunningServer, tmp_path: Path, name: str, error: Exception) -> None:
    fault = Fault((name,), 1 + (name == "put"), error)
    inject_from_now_on(running, fault)
    with open_publisher(running) as client:
        publish_bodies(client)
        expect_trouble(running, client)
        fault.is_healed = True
        recover(running, client, tmp_path)


@pytest.mark.parametrize("after", range(1, 15))
def test_failures_may_begin_at_any_call(running: RunningServer, tmp_path: Path, after: int) -> None:
    fault = Fault(("put", "delete", "commit"), after, lmdb.DiskError("No space left on device"))
    inject_from_now_on(running, fault)
    published = 0
    with open_publisher(running) as client:
        while not running.ask(is_failing):
            published += 1
            client.publish("new", b"%d" % published, delivery_mode=PERSISTENT)
        fault.is_healed = True
        retry(running)
        expect_confirms(client, published)
    running.stop()
    with RunningServer(ephemeral=False, data_dir=str(tmp_path)) as again:
        assert bodies(again.port, "new") == [b"%d" % number for number in range(1, published + 1)]


def test_a_transaction_that_cannot_be_begun_is_begun_in_files_that_are_opened_anew(
    running: RunningServer, tmp_path: Path
) -> None:
    fault = Fault(("begin",), 2, lmdb.LockError("no lock"))
    inject_from_now_on(running, fault)
    with open_publisher(running) as client:
        publish_bodies(client)
        client.publish("new", b"more", delivery_mode=PERSISTENT)
        expect_confirms(client, len(BODIES) + 1)
    assert bodies(running.port, "old") == [b"old"]
    assert fault.calls == 2
    restart_and_check(running, tmp_path)


@pytest.mark.parametrize("access", [os.O_RDWR, os.O_WRONLY], ids=["pages", "meta page"])
def test_a_full_disk_loses_nothing(running: RunningServer, tmp_path: Path, access: int) -> None:
    with open_publisher(running) as client:
        with full_disk(tmp_path, access):
            publish_bodies(client)
            expect_trouble(running, client)
        recover(running, client, tmp_path)


def test_after_a_panic_messages_that_are_only_on_disk_can_be_read(running: RunningServer, tmp_path: Path) -> None:
    with full_disk(tmp_path, os.O_WRONLY):
        with open_publisher(running) as client:
            publish_bodies(client)
            running.until(is_failing)
        # That one was there before, and a part of no buffer in memory after this.
        found = running.ask(lambda server: server.store and server.store.journal.read(1, 0, 1000))
        assert [stored.message.body for _, stored in found or []] == [b"old"]


def test_only_messages_published_while_the_disk_failed_may_be_lost(running: RunningServer, tmp_path: Path) -> None:
    """The files are copied as a kill would leave them."""
    copy = tmp_path.parent / "copy"
    with full_disk(tmp_path), open_publisher(running) as client:
        publish_bodies(client)
        running.until(is_failing)
        shutil.copytree(tmp_path, copy)
    with RunningServer(ephemeral=False, data_dir=str(copy)) as again:
        assert bodies(again.port, "old") == [b"old"]
        assert bodies(again.port, "new") == []


def test_a_durable_queue_is_not_declared_before_that_is_written(running: RunningServer, tmp_path: Path) -> None:
    client, other = Client(running.port).open(), Client(running.port).open()
    with full_disk(tmp_path), client, other:
        client.send(commands.Queue.Declare(queue="late", durable=True))
        running.until(is_failing)
        # Nor for who comes later, while others are answered.
        other.send(commands.Queue.Declare(queue="late", durable=True))
        with Client(running.port).open() as third:
            third.declare("old", durable=True)
        assert running.ask(lambda server: sum(bool(session.outbox.held_until) for session in server.transports)) == 2
    running.stop()


def test_the_broker_writes_what_it_can_when_it_stops_while_the_disk_fails(
    running: RunningServer, tmp_path: Path
) -> None:
    with full_disk(tmp_path), open_publisher(running) as client:
        publish_bodies(client)
        running.until(is_failing)
        running.stop()
    with RunningServer(ephemeral=False, data_dir=str(tmp_path)) as again:
        assert bodies(again.port, "old") == [b"old"]
