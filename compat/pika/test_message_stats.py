"""The same is done with both brokers, and both have counted the same."""

from __future__ import annotations

import base64
import contextlib
import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from amqp_broker.server.server import Server
from compat.brokers import RabbitMQ
from tests.running import RunningServer

Stats = dict[str, Any]

TIMEOUT_S = 40
# How many messages `work` publishes through the default exchange to a queue that does not exist.
UNROUTABLE = 3


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    if not RabbitMQ.is_installed():
        pytest.skip("RabbitMQ is not installed")
    settings = ("collect_statistics_interval = 500",)
    broker = RabbitMQ(tmp_path_factory.mktemp("rabbitmq"), plugins=("rabbitmq_management",), settings=settings)
    broker.start()
    yield broker
    broker.kill()


def work(port: int, name: str) -> pika.BlockingConnection:
    """All that is counted, with objects named after `name`; returns the connection, which is left open."""
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
    plain, confirming = connection.channel(), connection.channel()
    for queue in ("a", "b", "c", "tx", "a", "gone"):
        plain.queue_declare(f"{name}.{queue}", exclusive=True)
    plain.queue_declare(f"{name}.a", passive=True)
    plain.exchange_declare(f"{name}.fanout", "fanout")
    plain.exchange_declare(f"{name}.source", "topic")
    plain.exchange_declare(f"{name}.alternate", "fanout", arguments={"alternate-exchange": f"{name}.fanout"})
    plain.queue_bind(f"{name}.a", f"{name}.fanout")
    plain.queue_bind(f"{name}.b", f"{name}.fanout")
    plain.exchange_bind(f"{name}.fanout", f"{name}.source", "news.#")
    # Published: to one queue, to two, through another exchange, through the alternate one, with CC, and to nowhere.
    for _ in range(7):
        plain.basic_publish("", f"{name}.a", b"")
    for _ in range(3):
        plain.basic_publish(f"{name}.fanout", "", b"x")
        plain.basic_publish(f"{name}.source", "news.today", b"x")
        plain.basic_publish(f"{name}.alternate", "", b"x")
    copies = pika.BasicProperties(headers={"CC": [f"{name}.c"]})
    plain.basic_publish("", f"{name}.b", b"x", copies)
    for _ in range(2):
        plain.basic_publish("", f"{name}.nowhere", b"x")
        plain.basic_publish(f"{name}.source", "weather", b"x", mandatory=True)
    plain.basic_publish("", f"{name}.c", b"x", pika.BasicProperties(reply_to="somebody"), mandatory=True)
    # With confirms.
    confirming.confirm_delivery()
    for _ in range(4):
        confirming.basic_publish("", f"{name}.c", b"x")
    confirming.basic_publish(f"{name}.fanout", "", b"x")
    confirming.basic_publish(f"{name}.source", "weather", b"x")
    with contextlib.suppress(pika.exceptions.UnroutableError):
        confirming.basic_publish("", f"{name}.nowhere", b"x", mandatory=True)
    receive(connection, plain, confirming, name)
    in_the_end(connection, plain, name)
    return connection


def receive(
    connection: pika.BlockingConnection, plain: BlockingChannel, confirming: BlockingChannel, name: str
) -> None:
    # Got: to be settled, or not, again, and nothing.
    plain.basic_get(f"{name}.c", auto_ack=True)
    method, _, _ = plain.basic_get(f"{name}.c")
    plain.basic_nack(method.delivery_tag, requeue=True)
    method, _, _ = plain.basic_get(f"{name}.c")
    plain.basic_ack(method.delivery_tag)
    plain.basic_get(f"{name}.c")
    plain.basic_get(f"{name}.tx")
    # Consumed: acked one by one and many at once, rejected for good and not, and without acks.
    tags: list[int] = []
    consumer = confirming.basic_consume(f"{name}.a", lambda _, method, *__: tags.append(method.delivery_tag))
    while len(tags) < 17:
        connection.process_data_events(0.1)
    confirming.basic_ack(tags[0])
    confirming.basic_ack(tags[4], multiple=True)
    confirming.basic_reject(tags[5], requeue=False)
    confirming.basic_cancel(consumer)
    confirming.basic_nack(tags[6], requeue=True)
    confirming.basic_ack(tags[7])
    seen: list[bool] = []
    plain.basic_consume(f"{name}.b", lambda _, method, *__: seen.append(method.redelivered), auto_ack=True)
    while len(seen) < 11:
        connection.process_data_events(0.1)


def in_the_end(connection: pika.BlockingConnection, plain: BlockingChannel, name: str) -> None:
    # In transactions, one of them rolled back.
    transactional = connection.channel()
    transactional.tx_select()
    transactional.basic_publish("", f"{name}.tx", b"x")
    transactional.tx_commit()
    transactional.basic_publish("", f"{name}.tx", b"x")
    method, _, _ = transactional.basic_get(f"{name}.tx")
    transactional.basic_ack(method.delivery_tag)
    transactional.tx_rollback()
    transactional.basic_ack(method.delivery_tag)
    transactional.tx_commit()
    # What channels and queues have counted stays when they are gone.
    transactional.close()
    passing = connection.channel()
    passing.basic_publish("", f"{name}.gone", b"x")
    passing.basic_get(f"{name}.gone", auto_ack=True)
    passing.close()
    plain.queue_delete(f"{name}.gone")


def told_by_rabbitmq(broker: RabbitMQ, name: str) -> Stats:
    def ask(path: str) -> Any:
        request = urllib.request.Request(f"http://127.0.0.1:{broker.management_port}/api/{path}")
        request.add_header("Authorization", "Basic " + base64.b64encode(b"guest:guest").decode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def stats(item: Any) -> Stats:
        return {key: count for key, count in item.get("message_stats", {}).items() if isinstance(count, int)}

    overview = stats(ask("overview"))
    found = {
        "overview": {key: count for key, count in overview.items() if not key.startswith("disk_")},
        "channels": {str(item["number"]): stats(item) for item in ask("channels")},
        "vhost": stats(ask("vhosts/%2F")),
    }
    for kind in ("queues", "exchanges"):
        found[kind] = {item["name"]: stats(item) for item in ask(kind) if item["name"].startswith(name)}
    found["default"] = stats(ask("exchanges/%2F/amq.default"))
    # As 3.10 sees it, the default exchange leads to queues that do not exist, too; 4.x counts those that do.
    if "publish_out" in found["default"]:
        found["default"]["publish_out"] -= UNROUTABLE
    churn = ask("overview")["churn_rates"]
    return {**found, "churn": {key: count for key, count in churn.items() if isinstance(count, int)}}


def told_by_ours(server: Server, name: str) -> Stats:
    broker = server.broker
    broker.counters.collect()
    vhost = broker.vhosts["/"]
    return {
        "overview": broker.counters.message_stats(),
        "channels": {str(channel.number): channel.counts.message_stats() for channel in broker.channels()},
        "vhost": vhost.message_stats(),
        "queues": {queue.name: queue.message_stats() for queue in vhost.queues.values()},
        "exchanges": {
            exchange.name: exchange.publishes.exchange_stats()
            for exchange in vhost.exchanges.values()
            if exchange.name.startswith(name)
        },
        "default": vhost.default_exchange.publishes.exchange_stats(),
        "churn": broker.counters.churn(),
    }


def nonzero(stats: Any) -> Any:
    """Without what is 0: RabbitMQ tells of one zero and not of another, as they happen to have come up."""
    if not isinstance(stats, dict):
        return stats
    return {key: nonzero(value) for key, value in stats.items() if value != 0}


def settled(ask: Callable[[], Stats], expected: Stats) -> Stats:
    """What is told when it is as expected, or else in the end."""
    deadline = time.monotonic() + TIMEOUT_S
    while (told := nonzero(ask())) != expected and time.monotonic() < deadline:
        time.sleep(0.5)
    return told


def test_both_have_counted_the_same(rabbitmq: RabbitMQ) -> None:
    with RunningServer() as running, contextlib.ExitStack() as open_ones:
        for port in (running.port, rabbitmq.port):
            connection = work(port, "count")
            open_ones.callback(connection.close)
        ours = nonzero(running.ask(lambda server: told_by_ours(server, "count")))
        theirs = settled(lambda: told_by_rabbitmq(rabbitmq, "count"), ours)
    assert ours == theirs
