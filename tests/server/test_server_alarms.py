"""A running broker short of store, disk or memory: publishers wait until consumers drain it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from pamqp import commands

from amqp_broker.server.committing import WAITING_BYTES_MAX
from amqp_broker.settings.settings import FULL, OS
from amqp_broker.store import address_space
from amqp_broker.store.writer import Writer
from tests.client import Client
from tests.peer import publish_bytes, show
from tests.present import present
from tests.running import RunningServer
from tests.server.stalling import transport_of

MIB = 1024 * 1024
BODY = b"x" * 4000
BATCH = 20


def alarms(running: RunningServer) -> set[str]:
    return running.ask(lambda server: set(server.broker.alarms))


def open_publisher(running: RunningServer) -> Client:
    client = Client(running.port)
    client.capabilities["connection.blocked"] = True
    client.open().declare("q", durable=True)
    client.call(commands.Confirm.Select())
    return client


def publish_until_blocked(client: Client) -> int:
    """Publish persistent messages to `q` until an alarm is set; return the number of confirms before."""
    confirmed = sent = 0
    while True:
        client.send_bytes(publish_bytes("q", BODY, delivery_mode=2) * BATCH)
        sent += BATCH
        while confirmed < sent:
            method, _ = client.next()
            if isinstance(method, commands.Connection.Blocked):
                return confirmed
            assert isinstance(method, commands.Basic.Ack), show(method)
            confirmed = present(method.delivery_tag)


def drain(running: RunningServer, at_least: int) -> None:
    """Consume and ack what is in `q`, all of `at_least` messages and no more than a batch beyond them."""
    with Client(running.port).open() as consumer:
        count = consumer.ready_count("q")
        assert at_least <= count <= at_least + BATCH
        consumer.send(commands.Basic.Consume(queue="q"))
        consumer.expect(commands.Basic.ConsumeOk)
        for tag in range(1, count + 1):
            assert consumer.expect_delivery()[1] == BODY
            consumer.send(commands.Basic.Ack(tag))
        # Once there is space, the rest of the publisher's last batch may arrive meanwhile.
        rest = at_least + BATCH - count
        running.until(lambda server: server.broker.vhosts["/"].queues["q"].unacked_count <= rest)


def assert_goes_on(running: RunningServer, publisher: Client, confirmed: int) -> None:
    """Assert that the publisher is unblocked, and its messages of before and after that are confirmed."""
    running.until(lambda server: not server.broker.alarms)
    publisher.send_bytes(publish_bytes("q", BODY, delivery_mode=2))
    is_unblocked = False
    while confirmed % BATCH != 1:
        method, _ = publisher.next()
        if isinstance(method, commands.Connection.Unblocked):
            is_unblocked = True
        else:
            assert isinstance(method, commands.Basic.Ack), show(method)
            confirmed = present(method.delivery_tag)
    assert is_unblocked


@pytest.mark.parametrize("store_sync", [FULL, OS])
def test_a_full_map_is_drained_and_filled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_sync: str
) -> None:
    monkeypatch.setattr(address_space, "MAP_BYTES", 4 * MIB)
    with (
        RunningServer(ephemeral=False, data_dir=str(tmp_path), store_sync=store_sync) as running,
        open_publisher(running) as publisher,
    ):
        confirmed = publish_until_blocked(publisher)
        assert confirmed > 300
        drain(running, confirmed)
        assert_goes_on(running, publisher, confirmed)


def test_confirmed_messages_survive_a_full_map_and_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_space, "MAP_BYTES", 4 * MIB)
    with RunningServer(ephemeral=False, data_dir=str(tmp_path)) as running, open_publisher(running) as publisher:
        confirmed = publish_until_blocked(publisher)
    monkeypatch.undo()
    with RunningServer(ephemeral=False, data_dir=str(tmp_path)) as running:
        drain(running, confirmed)


def test_a_store_beyond_its_limit_is_drained_and_filled_again(tmp_path: Path) -> None:
    with (
        RunningServer(ephemeral=False, data_dir=str(tmp_path), store_bytes_max="1MB") as running,
        open_publisher(running) as publisher,
    ):
        confirmed = publish_until_blocked(publisher)
        drain(running, confirmed)
        assert_goes_on(running, publisher, confirmed)


def test_a_full_disk_blocks_publishers_until_space_is_free(tmp_path: Path) -> None:
    with (
        RunningServer(ephemeral=False, data_dir=str(tmp_path), disk_free_limit="1000000GB") as running,
        Client(running.port).open() as publisher,
    ):
        assert alarms(running) == {"disk"}
        publisher.declare("q")
        publisher.publish("q", b"1")
        running.until(lambda server: not transport_of(publisher)(server).is_reading)
        running.server.alarms.limits.disk_free_min = 0
        publisher.sync()
        assert alarms(running) == set()


def test_a_memory_watermark_of_0_blocks_publishers_alone() -> None:
    with RunningServer(vm_memory_high_watermark="0") as running, Client(running.port).open() as publisher:
        publisher.declare("q")
        publisher.publish("q", b"1")
        running.until(lambda server: not transport_of(publisher)(server).is_reading)
        with Client(running.port).open() as consumer:
            assert isinstance(consumer.call(commands.Basic.Get(queue="q", no_ack=True)), commands.Basic.GetEmpty)


def test_a_restart_removes_paged_messages_of_a_transient_queue(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"ephemeral": False, "data_dir": str(tmp_path)}
    with RunningServer(**settings) as running, Client(running.port).open() as client:
        client.declare("q")
        client.send_bytes(publish_bytes("q", BODY) * 1000)
        assert client.ready_count("q") == 1000
        running.ask(lambda server: server.broker.page(True))
        client.send_bytes(publish_bytes("q", BODY) * 3000)
        assert client.ready_count("q") == 4000
        client.call(commands.Basic.Get(queue="q", no_ack=True))
        assert client.expect_body() == BODY
        running.until(lambda server: present(server.store).environment.used_bytes() > 3000 * len(BODY))
    with RunningServer(**settings) as running:
        running.until(lambda server: present(server.store).environment.used_bytes() < 100_000)
        assert running.ask(lambda server: list(server.broker.vhosts["/"].queues)) == []


@pytest.mark.interpreted  # replaces a method
def test_a_publisher_faster_than_the_disk_is_not_read_until_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = threading.Event()
    disk.set()
    end = Writer._end

    def slow(*arguments: Any) -> None:
        disk.wait()
        end(*arguments)

    monkeypatch.setattr(Writer, "_end", slow)
    message = publish_bytes("q", b"x" * 100_000, delivery_mode=2)
    with (
        RunningServer(ephemeral=False, data_dir=str(tmp_path)) as running,
        Client(running.port).open() as publisher,
        Client(running.port).open() as other,
    ):
        publisher.declare("q", durable=True)
        other.declare("transient")
        disk.clear()
        sender = threading.Thread(target=publisher.send_bytes, args=(message * 400,))
        sender.start()
        running.until(lambda server: not transport_of(publisher)(server).is_reading)
        assert running.ask(lambda server: server.broker.journal.waiting_bytes) < WAITING_BYTES_MAX + MIB
        # Clients that do not use the disk continue.
        other.publish("transient", b"1")
        assert other.ready_count("transient") == 1
        assert sender.is_alive()
        disk.set()
        sender.join()
        publisher.sync()
        assert publisher.ready_count("q") == 400
