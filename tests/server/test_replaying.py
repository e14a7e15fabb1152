"""A replay over a socket, in real time and in time that it moves itself."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from amqp_broker.errors import InvalidParameter
from amqp_broker.message import Address, Message, Properties
from amqp_broker.server.replaying import Item, Replay, Replaying, ReplayLost, parse_uri
from tests.client import Client
from tests.running import RunningServer

MS = 1000


def item(at_us: int, body: bytes = b"", exchange: str = "", mandatory: bool = False) -> Item:
    return at_us, Message.build(Address(exchange, "q"), Properties(), body), mandatory


def replay(running: RunningServer, *items: Item, speed: float = math.inf, **given: Any) -> Replay:
    subject = Replay(iter(items), speed)

    async def run() -> None:
        await Replaying(subject, parse_uri(running.url), **given).run()

    asyncio.run(asyncio.wait_for(run(), 20))
    return subject


def test_all_is_published_confirmed_and_told() -> None:
    settled: list[int] = []
    with RunningServer() as running:
        with Client(running.port).open() as client:
            client.declare("q")
        subject = replay(running, *(item(0, b"%d" % number) for number in range(3000)), on_settled=settled.append)
        assert [message.body for message in running.messages("q")] == [b"%d" % number for number in range(3000)]
        running.until(lambda server: not server.broker.connections)
    assert (subject.published, subject.confirmed, sum(settled)) == (3000, 3000, 3000)


def test_in_real_time_the_time_between_messages_passes() -> None:
    with RunningServer() as running:
        with Client(running.port).open() as client:
            client.declare("q")
        subject = replay(running, item(0), item(100 * MS), speed=2)
    assert subject.confirmed == 2
    assert subject.late_us_max < 10_000 * MS


def test_moved_time_is_moved_between_messages_by_what_was_between_them() -> None:
    moved: list[tuple[int, int]] = []
    with RunningServer() as running:
        with Client(running.port).open() as client:
            client.declare("q")
        depth = lambda ms: moved.append((ms, running.depth("q")))  # noqa: E731
        items = (item(7), item(7 + 600), item(7 + 1200), item(7 + 3_600_000 * MS))
        subject = replay(running, *items, speed=1, advance=depth)
    # Each message is in its queue before time moves; what is less than a millisecond adds up.
    assert moved == [(0, 1), (1, 2), (3_599_999, 3)]
    assert (subject.confirmed, subject.late_us_max) == (4, 0)


def test_what_the_broker_refuses_ends_the_replay_with_its_words() -> None:
    with RunningServer() as running, pytest.raises(ReplayLost, match="404 NOT_FOUND - no exchange 'gone'"):
        replay(running, item(0, exchange="gone"))


def test_a_broker_that_is_not_there_is_told() -> None:
    running = RunningServer()
    with running:
        url = running.url

    async def run() -> None:
        await Replaying(Replay(iter(())), parse_uri(url)).run()

    with pytest.raises(ReplayLost, match=r"cannot connect to amqp://127\.0\.0\.1"):
        asyncio.run(run())


@pytest.mark.parametrize(
    ("url", "vhost", "expected"),
    [
        ("amqp://h", None, "/"),
        ("amqp://h/", None, "/"),
        ("amqp://h/%2F", None, "/"),
        ("amqp://h/a", None, "a"),
        ("amqp://h/a", "b", "b"),
    ],
)
def test_a_url_names_a_vhost(url: str, vhost: str | None, expected: str) -> None:
    assert parse_uri(url, vhost).vhost == expected


@pytest.mark.parametrize("url", ["http://h", "amqp://", "amqp://h:99999"])
def test_a_url_that_is_no_brokers_is_refused(url: str) -> None:
    with pytest.raises(InvalidParameter):
        parse_uri(url)
