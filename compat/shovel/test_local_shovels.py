"""Shovels between ends of the protocols `local` and `amqp091`, played at a live RabbitMQ 4.3 and at this broker.

Each play has a vhost of its own, and returns what it saw. The reasons of failures, which RabbitMQ reports as terms of
Erlang, are not compared, nor are the keys that this broker shows of a terminated shovel in addition.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any, Final
from urllib.parse import quote

import pika
import pytest

from compat.brokers import AmqpBroker
from compat.management.http_asking import Api, delete, get, put
from compat.oracles.oracle import ORACLES
from compat.oracles.rabbitmq import RabbitMQ

pytestmark = pytest.mark.verify

PLUGINS: Final = ("rabbitmq_management", "rabbitmq_shovel", "rabbitmq_shovel_management")
ENDS: Final = ("local", "amqp091")
EVERYTHING: Final = {"configure": ".*", "write": ".*", "read": ".*"}
PROPERTIES: Final[dict[str, Any]] = {
    "content_type": "text/plain",
    "headers": {"kind": "probe", "CC": ["copied"]},
    "delivery_mode": 2,
    "priority": 3,
    "reply_to": "r",
    "message_id": "m",
    "expiration": "600000",
}
HEADERS: Final = {"dest_add_forward_headers": True, "dest_add_timestamp_header": True}
WAIT_S: Final = 15.0
Seen = list[Any]


class Lab:
    """A vhost of a broker in which one shovel is played."""

    def __init__(self, api: Api, vhost: str, source: str, destination: str) -> None:
        self.api, self.vhost = api, vhost
        self.protocols = {"src-protocol": source, "dest-protocol": destination}
        self.uri = f"amqp://{api.broker.host}:{api.broker.port}/{vhost}"
        self.seen: Seen = []
        api.ask(put(f"vhosts/{vhost}", {}))
        api.ask(put(f"permissions/{vhost}/guest", EVERYTHING))
        self.connection = pika.BlockingConnection(pika.URLParameters(f"{self.uri}?heartbeat=0"))
        self.channel = self.connection.channel()
        self.channel.confirm_delivery()

    def close(self) -> None:
        self.connection.close()
        self.api.ask(delete(f"vhosts/{self.vhost}"))

    def declare(self, *names: str, **arguments: Any) -> None:
        for name in names:
            self.channel.queue_declare(name, durable=True, arguments=dashed(arguments))

    def publish(self, key: str, count: int = 3, exchange: str = "", **properties: Any) -> None:
        for number in range(count):
            self.channel.basic_publish(exchange, key, b"%d" % number, pika.BasicProperties(**properties))

    def shovel(self, **given: Any) -> None:
        """Define the shovel, and note how that ends; None removes a key."""
        value: dict[str, Any] = {"src-uri": self.uri, "dest-uri": self.uri, "src-queue": "a", "dest-queue": "b"}
        value |= {**self.protocols, **dashed(given)}
        reply = self.api.ask(put(self._path, {"value": {key: item for key, item in value.items() if item is not None}}))
        self.seen.append(reply.status if reply.status < 400 else reply.value["reason"])

    @property
    def _path(self) -> str:
        return f"parameters/shovel/{self.vhost}/s"

    def end(self) -> None:
        self.api.ask(delete(self._path))
        self.until(lambda row: row is None)

    def until(self, condition: Callable[[Any], object]) -> None:
        """Wait for a state of the shovel, given as its row or None, and note it."""
        deadline = time.monotonic() + WAIT_S
        while True:
            rows = self.api.ask(get(f"shovels/{self.vhost}")).value
            row = rows[0] if rows else None
            if condition(row):
                break
            assert time.monotonic() < deadline, row
            time.sleep(0.05)
        if row is not None and row["state"] == "terminated":
            row = {"state": "terminated"}
        # How many messages wait for their confirms depends on timing.
        self.seen.append(row and {key: item for key, item in row.items() if key != "pending"})

    def drain(self, *queues: str) -> None:
        """Note what the queues have, until nothing comes."""
        for queue in queues:
            while True:
                method, properties, body = self.channel.basic_get(queue, auto_ack=True)
                if method is None:
                    break
                given = {name: item for name, item in vars(properties).items() if item is not None}
                self.seen.append((queue, body, method.redelivered, method.exchange, method.routing_key, given))

    def queues(self) -> None:
        """Note the queues and their bindings."""
        rows = self.api.ask(get(f"queues/{self.vhost}?disable_stats=true")).value
        keys = ("name", "durable", "auto_delete", "arguments")
        self.seen.append(sorted(({key: row[key] for key in keys} for row in rows), key=lambda row: str(row["name"])))
        bindings = self.api.ask(get(f"bindings/{self.vhost}")).value
        self.seen.append(sorted((row["source"], row["destination"], row["routing_key"]) for row in bindings))


def dashed(given: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "-"): item for name, item in given.items()}


def is_running(row: Any) -> bool:
    return row is not None and row["state"] == "running"


def has_moved(count: int) -> Callable[[Any], bool]:
    return lambda row: is_running(row) and row["forwarded"] == count


def is_terminated(row: Any) -> bool:
    return row is not None and row["state"] == "terminated"


# Plays


def messages(lab: Lab) -> None:
    lab.declare("a", "b", "copied")
    lab.publish("a", **PROPERTIES)
    lab.channel.queue_purge("copied")
    lab.shovel()
    lab.until(has_moved(3))
    lab.drain("b", "copied")


def added_headers(lab: Lab) -> None:
    lab.declare("a", "b")
    lab.publish("a", headers={"k": 1, "x-shovelled": "text", "x-opt-shovelled-by": "me"})
    lab.shovel(**HEADERS)
    lab.until(has_moved(3))
    lab.drain("b")


def declared_queues(lab: Lab) -> None:
    lab.shovel(src_queue_args={"x-max-length": 5}, dest_queue_args={"x-queue-type": "quorum"})
    lab.until(is_running)
    lab.queues()


def wrong_arguments(lab: Lab) -> None:
    wrong = {"x-max-length": "x", "x-expires": 0, "x-queue-type": 5, "x-unknown": 1}
    lab.shovel(src_queue_args=wrong)
    lab.shovel(dest_queue_args=wrong)
    lab.shovel(src_consumer_args={"x-priority": "high", "x-stream-offset": 5})


def a_missing_source(lab: Lab) -> None:
    lab.declare("b")
    lab.shovel(src_predeclared=True)
    lab.until(is_terminated)
    lab.declare("a")
    lab.publish("a")
    lab.until(has_moved(3))


def a_missing_destination(lab: Lab) -> None:
    lab.declare("a")
    lab.publish("a")
    lab.shovel(dest_predeclared=True)
    lab.until(is_terminated)
    lab.declare("b")
    lab.until(has_moved(3))
    lab.drain("b")


def a_missing_destination_exchange(lab: Lab) -> None:
    lab.declare("a")
    lab.shovel(dest_queue=None, dest_exchange="missing", dest_exchange_key="k")
    lab.until(is_running)
    lab.publish("a")
    lab.until(is_terminated)
    lab.end()
    # How many of them were delivered depends on timing.
    lab.seen.append(lab.channel.queue_purge("a").method.message_count)


def a_missing_source_exchange(lab: Lab) -> None:
    lab.shovel(src_queue=None, src_exchange="missing", src_exchange_key="k")
    lab.until(is_terminated)


def other_vhosts_and_users(lab: Lab) -> None:
    address = lab.uri.removeprefix("amqp://").rpartition("/")[0]
    for uri in (f"amqp://{address}/{lab.vhost}-none", f"amqp://nobody:x@{address}/{lab.vhost}"):
        for side in ("src_uri", "dest_uri"):
            lab.shovel(**{side: uri})
            lab.until(is_terminated)


def a_source_exchange(lab: Lab) -> None:
    lab.declare("b")
    lab.shovel(src_queue=None, src_exchange="amq.direct", src_exchange_key="k", src_queue_args={"x-max-length": 9})
    lab.until(is_running)
    lab.publish("k", exchange="amq.direct")
    lab.until(has_moved(3))
    lab.queues()
    lab.drain("b")
    lab.end()
    lab.queues()


def a_source_exchange_without_a_key(lab: Lab) -> None:
    lab.declare("b")
    lab.shovel(src_queue=None, src_exchange="amq.topic")
    lab.until(is_running)
    lab.queues()


def a_destination_exchange(lab: Lab) -> None:
    lab.declare("a", "b")
    lab.channel.queue_bind("b", "amq.direct", "k")
    lab.publish("a", **PROPERTIES)
    lab.shovel(dest_queue=None, dest_exchange="amq.direct", dest_exchange_key="k")
    lab.until(has_moved(3))
    lab.drain("b")


def a_destination_exchange_without_a_key(lab: Lab) -> None:
    lab.declare("a", "b")
    lab.channel.queue_bind("b", "amq.direct", "a")
    lab.publish("a")
    lab.shovel(dest_queue=None, dest_exchange="amq.direct")
    lab.until(has_moved(3))
    lab.drain("b")


def no_route(lab: Lab) -> None:
    lab.declare("a")
    lab.publish("a")
    lab.shovel(dest_queue=None, dest_exchange="amq.direct", dest_exchange_key="nowhere")
    lab.until(has_moved(3))


def the_users_of_messages(lab: Lab) -> None:
    lab.declare("a", "b")
    lab.publish("a", user_id="guest")
    lab.shovel()
    lab.until(has_moved(3))
    lab.drain("b")


def an_end_after_a_number(lab: Lab) -> None:
    lab.declare("a", "b")
    lab.publish("a", 5)
    lab.shovel(src_delete_after=3)
    lab.until(lambda row: row is None)
    lab.drain("b")


def an_end_after_the_length(lab: Lab) -> None:
    lab.declare("a", "b")
    lab.publish("a", 5)
    lab.shovel(src_delete_after="queue-length")
    lab.until(lambda row: row is None)
    lab.drain("a", "b")


def other_acks(lab: Lab) -> None:
    lab.declare("a", "b")
    for mode in ("on-publish", "no-ack"):
        lab.publish("a")
        lab.shovel(ack_mode=mode)
        lab.until(has_moved(3))
        lab.drain("b")
        lab.end()


def a_full_destination_that_drops(lab: Lab) -> None:
    lab.declare("a")
    lab.declare("b", x_max_length=2)
    lab.publish("a", 5)
    lab.shovel()
    lab.until(has_moved(5))
    lab.drain("b")


def a_restart(lab: Lab) -> None:
    lab.declare("a", "b")
    lab.publish("a")
    lab.shovel()
    lab.until(has_moved(3))
    lab.api.ask(delete(f"shovels/vhost/{lab.vhost}/s/restart"))
    lab.until(has_moved(0))


def an_exclusive_consumer_of_the_source(lab: Lab) -> None:
    lab.declare("a", "b")
    lab.channel.basic_consume("a", lambda *_: None, exclusive=True)
    lab.shovel()
    lab.until(is_terminated)


PLAYS: Final = (
    messages,
    added_headers,
    declared_queues,
    wrong_arguments,
    a_missing_source,
    a_missing_destination,
    a_missing_destination_exchange,
    a_missing_source_exchange,
    other_vhosts_and_users,
    a_source_exchange,
    a_source_exchange_without_a_key,
    a_destination_exchange,
    a_destination_exchange_without_a_key,
    no_route,
    the_users_of_messages,
    an_end_after_a_number,
    an_end_after_the_length,
    other_acks,
    a_full_destination_that_drops,
    a_restart,
    an_exclusive_consumer_of_the_source,
)


@pytest.fixture(scope="module")
def apis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Api]]:
    if ORACLES["4.3"].installed() is None:
        pytest.skip("RabbitMQ 4.3 is not installed")
    oracle = RabbitMQ(tmp_path_factory.mktemp("oracle"), plugins=PLUGINS, oracle=ORACLES["4.3"])
    ours = AmqpBroker(tmp_path_factory.mktemp("here"), profile="4.3")
    with oracle.running(), ours.running():
        found = Api(oracle), Api(ours)
        for api in found:
            api.ask(put("cluster-name", {"name": "cluster"}))
        yield found


def seen(api: Api, play: Callable[[Lab], None], source: str, destination: str) -> Seen:
    """Return what a play sees at a broker, in the words of both."""
    lab = Lab(api, f"{play.__name__}-{source}-{destination}", source, destination)
    try:
        play(lab)
    finally:
        lab.close()
    words = {api.node: "NODE", str(api.broker.port): "PORT", quote(lab.vhost): "VHOST"}
    return [settled(item, words) for item in lab.seen]


def settled(value: Any, words: dict[str, str]) -> Any:
    """Return what was seen without names, times and redeliveries, which differ from play to play."""
    if isinstance(value, dict):
        return {key: settled(item, words) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [settled(item, words) for item in value]
    if isinstance(value, int) and value > 1_700_000_000:
        return f"a time of {len(str(value))} digits"
    if not isinstance(value, str):
        return value
    for word, name in words.items():
        value = value.replace(word, name)
    return re.sub(r"20\d\d-\d\d-\d\d \d\d?:\d\d:\d\d", "TIME", re.sub(r"amq\.gen-.{22}", "GENERATED", value))


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.__name__)
def test_shovels_do_what_those_of_rabbitmq_do(apis: tuple[Api, Api], play: Callable[[Lab], None]) -> None:
    ends = list(product(ENDS, ENDS))
    with ThreadPoolExecutor(len(apis) * len(ends)) as threads:
        theirs, ours = ([threads.submit(seen, api, play, *pair) for pair in ends] for api in apis)
    for pair, their, mine in zip(ends, theirs, ours, strict=True):
        assert mine.result() == their.result(), pair
