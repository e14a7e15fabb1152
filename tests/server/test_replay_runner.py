"""A replay over a socket, in real time, and with a clock that it advances."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.amqp.message import Address, Message, Properties
from amqp_broker.server.replay_runner import Item, Replay, ReplayLost, ReplayRunner, parse_uri
from tests.client import Client
from tests.running import RunningServer

MS = 1000


def item(at_us: int, body: bytes = b"", exchange: str = "", mandatory: bool = False) -> Item:
    return at_us, Message.build(Address(exchange, "q"), Properties(), body), mandatory


def replay(running: RunningServer, *items: Item, speed: float = math.inf, **given: Any) -> Replay:
    subject = Replay(iter(items), speed)

    async def run() -> None:
        await ReplayRunner(subject, parse_uri(running.url), **given).run()

    asyncio.run(asyncio.wait_for(run(), 20))
    return subject


def test_all_messages_are_published_and_confirmed() -> None:
    settled: list[int] = []
    with RunningServer() as running:
        with Client(running.port).open() as client:
            client.declare("q")
        subject = replay(running, *(item(0, b"%d" % number) for number in range(3000)), on_settled=settled.append)
        assert [message.body for message in running.messages("q")] == [b"%d" % number for number in range(3000)]
        running.until(lambda server: not server.broker.connections)
    assert (subject.published, subject.confirmed, sum(settled)) == (3000, 3000, 3000)


def test_the_time_between_messages_passes_in_real_time() -> None:
    with RunningServer() as running:
        with Client(running.port).open() as client:
            client.declare("q")
        subject = replay(running, item(0), item(100 * MS), speed=2)
    assert subject.confirmed == 2
    assert subject.late_us_max < 10_000 * MS


def test_the_clock_is_advanced_by_the_time_between_messages() -> None:
    moved: list[tuple[int, int]] = []
    with RunningServer() as running:
        with Client(running.port).open() as client:
            client.declare("q")
        depth = lambda ms: moved.append((ms, running.depth("q")))  # noqa: E731
        items = (item(7), item(7 + 600), item(7 + 1200), item(7 + 3_600_000 * MS))
        subject = replay(running, *items, speed=1, advance=depth)
    # Each message is in its queue before the clock advances; fractions of a millisecond add up.
    assert moved == [(0, 1), (1, 2), (3_599_999, 3)]
    assert (subject.confirmed, subject.late_us_max) == (4, 0)


def test_a_refused_message_ends_the_replay_with_the_reason() -> None:
    with RunningServer() as running, pytest.raises(ReplayLost, match="404 NOT_FOUND - no exchange 'gone'"):
        replay(running, item(0, exchange="gone"))


def test_an_unreachable_broker_ends_the_replay_with_the_reason() -> None:
    running = RunningServer()
    with running:
        url = running.url

    async def run() -> None:
        await ReplayRunner(Replay(iter(())), parse_uri(url)).run()

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
def test_the_vhost_of_a_url_can_be_replaced(url: str, vhost: str | None, expected: str) -> None:
    assert parse_uri(url, vhost).vhost == expected


@pytest.mark.parametrize("url", ["http://h", "amqp://", "amqp://h:99999"])
def test_a_url_without_a_host_is_refused(url: str) -> None:
    with pytest.raises(InvalidParameter):
        parse_uri(url)
