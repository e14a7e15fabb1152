"""A broker's process that may not let its file grow (RLIMIT_FSIZE: writes are cut short, then refused with EFBIG)."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pamqp.commands import Basic, Confirm, Connection

from compat.brokers import OurBroker
from tests.client import Client
from tests.peer import publish_bytes, show

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="prlimit(2) is Linux's")

BODY_BYTES = 2000
ROOM_BYTES = 100_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OurBroker]:
    broker = OurBroker(tmp_path)
    broker.start()
    yield broker
    broker.kill()


def limit_files(broker: OurBroker, room_bytes: int) -> None:
    """The store may grow by so much; a negative number is without end."""
    size = (broker.folder / "data" / "data.mdb").stat().st_size
    limit = size + room_bytes if room_bytes >= 0 else resource.RLIM_INFINITY
    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))


def publish_until_blocked(client: Client) -> tuple[int, int]:
    """Numbers of published and of confirmed messages; the publisher waits for each confirm."""
    for number in range(1, 10_000):
        client.send_bytes(publish_bytes("q", str(number).encode().ljust(BODY_BYTES), delivery_mode=2))
        method, _ = client.next()
        if isinstance(method, Connection.Blocked):
            return number, number - 1
        assert isinstance(method, Basic.Ack), show(method)
        assert method.delivery_tag == number
    raise AssertionError("the disk was never full")


def open_publisher(broker: OurBroker) -> Client:
    client = Client(broker.port)
    client.capabilities["connection.blocked"] = True
    client.open().declare("q", durable=True)
    client.call(Confirm.Select())
    return client


def numbers(broker: OurBroker) -> list[int]:
    with Client(broker.port).open() as client:
        count = client.ready_count("q")
        client.consume("q", no_ack=True)
        return [int(client.expect_delivery()[1]) for _ in range(count)]


def test_what_did_not_fit_is_confirmed_when_there_is_room_again(broker: OurBroker) -> None:
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


def test_consumers_drain_while_the_disk_is_full(broker: OurBroker) -> None:
    client = open_publisher(broker)
    limit_files(broker, ROOM_BYTES)
    published, _ = publish_until_blocked(client)
    assert numbers(broker) == list(range(1, published + 1))
    with Client(broker.port).open() as consumer:
        assert consumer.ready_count("q") == 0


def test_a_kill_while_the_disk_is_full_loses_only_what_was_not_confirmed(broker: OurBroker) -> None:
    client = open_publisher(broker)
    limit_files(broker, ROOM_BYTES)
    published, confirmed = publish_until_blocked(client)
    broker.restart()
    assert numbers(broker) in (list(range(1, confirmed + 1)), list(range(1, published + 1)))
