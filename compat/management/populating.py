"""Fills a broker with objects and messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pika

from compat.brokers import BrokerProcess
from compat.management.http_asking import Api, delete


@contextmanager
def filled(api: Api) -> Iterator[None]:
    """Provide a broker with the same objects and messages each time."""
    for kind in ("queues", "exchanges"):
        for thing in api.get(f"{kind}?disable_stats=true"):
            if thing["name"] and not thing["name"].startswith("amq."):
                api.ask(delete(f"{kind}/%2F/{quote(thing['name'], safe='')}"))
    connection = populate(api.broker)
    try:
        yield
    finally:
        if connection.is_open:
            connection.close()


def connect(broker: BrokerProcess, name: str = "me") -> pika.BlockingConnection:
    """Open a connection whose properties do not depend on this machine."""
    properties = {"connection_name": name, "x": 1, "platform": "Python", "version": "1"}
    return pika.BlockingConnection(pika.ConnectionParameters(broker.host, broker.port, client_properties=properties))


def populate(broker: BrokerProcess) -> pika.BlockingConnection:
    """Create objects of all kinds and messages in all states; the connection has to stay open."""
    connection = connect(broker)
    channel = connection.channel()
    channel.exchange_declare("x1", "topic", durable=True, arguments={"alternate-exchange": "amq.fanout"})
    channel.exchange_declare("x2", "fanout", auto_delete=True)
    channel.exchange_declare("x3", "direct", internal=True)
    channel.queue_declare("q1", durable=True, arguments={"x-max-length": 10, "x-dead-letter-exchange": "x1"})
    channel.queue_declare("q2", auto_delete=True, durable=broker.declares_durable)
    channel.queue_declare("q3", exclusive=True)
    channel.queue_declare("qq", durable=True, arguments={"x-queue-type": "quorum"})
    channel.queue_declare("qs", durable=True, arguments={"x-queue-type": "stream"})
    channel.queue_declare("qp", durable=True, arguments={"x-single-active-consumer": True})
    channel.queue_declare("sp ace/sl~%", durable=broker.declares_durable)
    channel.queue_bind("q1", "x1", "a.#")
    channel.queue_bind("q1", "x1", "a.#", {"k": 1})
    channel.queue_bind("q1", "amq.fanout", "")
    channel.queue_bind("q1", "amq.headers", "", {"x-match": "any", "h": "v", "n": 5})
    channel.queue_bind("sp ace/sl~%", "x1", "k~/ %é")
    channel.exchange_bind("x3", "x1", "e.*")
    channel.basic_qos(prefetch_count=7)
    channel.basic_consume("q2", _ignore, consumer_tag="ct2", arguments={"x-priority": 3})
    channel.basic_consume("qp", _ignore, consumer_tag="sac1")
    channel.basic_consume("qp", _ignore, consumer_tag="sac2")
    channel.basic_consume("q3", _ignore, auto_ack=True, exclusive=True, consumer_tag="ex")
    persistent = pika.BasicProperties(delivery_mode=2, timestamp=1_700_000_000)
    for _ in range(3):
        channel.basic_publish("", "q1", b"hello", persistent)
    channel.basic_publish("x1", "a.b", b"hello")
    channel.basic_publish("", "q2", b"hello")
    channel.basic_publish("", "qq", b"hello")
    confirming = connection.channel()
    confirming.confirm_delivery()
    confirming.basic_publish("", "q1", b"x")
    connection.channel().tx_select()
    connection.process_data_events(0.1)
    return connection


def _ignore(*_: object) -> None:
    """Receive a message without settling it."""
