"""A broker whose files must not grow (RLIMIT_FSIZE: writes are cut short, then refused with EFBIG)."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pamqp.commands import Basic, Confirm, Connection

from compat.brokers import AmqpBroker
from tests.client import Client
from tests.peer import publish_bytes, show

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="prlimit(2) is Linux's")

BODY_BYTES = 2000
ROOM_BYTES = 100_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[AmqpBroker]:
    broker = AmqpBroker(tmp_path)
    broker.start()
    yield broker
    broker.kill()


def limit_files(broker: AmqpBroker, room_bytes: int) -> None:
    """Limit the growth of the store in octets; a negative number removes the limit."""
    size = (broker.folder / "data" / "data.mdb").stat().st_size
    limit = size + room_bytes if room_bytes >= 0 else resource.RLIM_INFINITY
    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))


def publish_until_blocked(client: Client) -> tuple[int, int]:
    """Return the numbers of published and confirmed messages; the publisher waits for each confirm."""
    for number in range(1, 10_000):
        client.send_bytes(publish_bytes("q", str(number).encode().ljust(BODY_BYTES), delivery_mode=2))
        method, _ = client.next()
        if isinstance(method, Connection.Blocked):
            return number, number - 1
        assert isinstance(method, Basic.Ack), show(method)
        assert method.delivery_tag == number
    raise AssertionError("the disk was never full")


def open_publisher(broker: AmqpBroker) -> Client:
    client = Client(broker.port)
    client.capabilities["connection.blocked"] = True
    client.open().declare("q", durable=True)
    client.call(Confirm.Select())
    return client


def numbers(broker: AmqpBroker) -> list[int]:
    with Client(broker.port).open() as client:
        count = client.ready_count("q")
        client.consume("q", no_ack=True)
        return [int(client.expect_delivery()[1]) for _ in range(count)]


def test_messages_that_did_not_fit_are_confirmed_when_there_is_space(broker: AmqpBroker) -> None:
    client = open_publisher(broker)
    limit_files(broker, ROOM_BYTES)
    published, confirmed = publish_until_blocked(client)
    assert confirmed > 0
    limit_files(broker, -1)
    ends = {type(method): method for method, _ in (client.next(), client.next())}
    assert set(ends) == {Connection.Unblocked, Basic.Ack}
    assert ends[Basic.Ack].delivery_tag == published
    broker.restart()
    assert numbers(broker) == list(range(1, published + 1))


def test_consumers_drain_while_the_disk_is_full(broker: AmqpBroker) -> None:
    client = open_publisher(broker)
    limit_files(broker, ROOM_BYTES)
    published, _ = publish_until_blocked(client)
    assert numbers(broker) == list(range(1, published + 1))
    with Client(broker.port).open() as consumer:
        assert consumer.ready_count("q") == 0


def test_a_kill_while_the_disk_is_full_loses_only_unconfirmed_messages(broker: AmqpBroker) -> None:
    client = open_publisher(broker)
    limit_files(broker, ROOM_BYTES)
    published, confirmed = publish_until_blocked(client)
    broker.restart()
    assert numbers(broker) in (list(range(1, confirmed + 1)), list(range(1, published + 1)))
