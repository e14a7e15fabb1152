"""RabbitMQ with its management plugin, and our broker, one of each for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import quote

import pytest

from compat.brokers import OurBroker, RabbitMQ
from compat.management.asking import Api, populate
from compat.waiting import wait_until

PLUGINS = (
    "rabbitmq_management",
    "rabbitmq_event_exchange",
    "rabbitmq_consistent_hash_exchange",
    "rabbitmq_random_exchange",
    "rabbitmq_recent_history_exchange",
)
SETTINGS = ("collect_statistics_interval = 500", "management.rates_mode = detailed")


class Pair(NamedTuple):
    theirs: Api
    ours: Api


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Both with nothing in them."""
    if not RabbitMQ.is_installed():
        pytest.skip("RabbitMQ is not installed")
    theirs = RabbitMQ(tmp_path_factory.mktemp("rabbitmq"), plugins=PLUGINS, settings=SETTINGS)
    ours = OurBroker(tmp_path_factory.mktemp("ours"), options=("--no-prometheus",))
    theirs.start()
    ours.start()
    wait_until(lambda: "management" in ours.ports_file.read_text())
    yield Pair(Api(theirs), Api(ours))
    ours.kill()
    theirs.kill()


@contextmanager
def filled(pair: Pair) -> Iterator[Pair]:
    """Both with the same objects and messages in them, and nothing else."""
    for api in pair:
        for kind in ("queues", "exchanges"):
            for thing in api.get(f"{kind}?disable_stats=true"):
                if thing["name"] and not thing["name"].startswith("amq."):
                    api.ask("DELETE", f"{kind}/%2F/{quote(thing['name'], safe='')}")
    connections = [populate(api.broker) for api in pair]
    yield pair
    for connection in connections:
        if connection.is_open:
            connection.close()


def has_caught_up(api: Api) -> bool:
    """Whether RabbitMQ's statistics know of what `filled` did."""
    queues = {queue["name"]: queue for queue in api.get("queues")}
    channels = api.get("channels")
    return (
        queues["qq"].get("messages") == 1
        and "message_bytes" in queues["qq"]
        and queues["q1"].get("messages") == 5
        and "idle_since" in queues["q1"]
        and queues["q2"].get("message_stats", {}).get("deliver_get") == 1
        and queues["qs"].get("readers") is not None
        and len(channels) == 3
        and channels[1].get("message_stats", {}).get("confirm") == 1
        and api.get("overview")["message_stats"].get("confirm") == 1
    )


@pytest.fixture(scope="module")
def populated(pair: Pair) -> Iterator[Pair]:
    with filled(pair):
        wait_until(lambda: has_caught_up(pair.theirs), 60)
        yield pair
