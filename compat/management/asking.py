"""Asks a broker over HTTP, and gives both brokers the same things to tell."""

from __future__ import annotations

import base64
import http.client
import json
import re
from typing import Any, NamedTuple

import pika

from compat.brokers import BrokerProcess, OurBroker, RabbitMQ


class Reply(NamedTuple):
    status: int
    value: Any
    headers: dict[str, str]


class Api:
    """The HTTP API of a broker."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        if isinstance(broker, RabbitMQ):
            self.port = broker.management_port
        else:
            assert isinstance(broker, OurBroker)
            self.port = json.loads(broker.ports_file.read_text())["management"]

    def ask(
        self, method: str, path: str, body: Any = None, user: str = "guest:guest", headers: dict[str, str] | None = None
    ) -> Reply:
        """`path` is what follows /api/; the body is sent as JSON unless it is octets. Without a user, no login."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {"Content-Type": "application/json", **(headers or {})}
        if user:
            sent["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
        octets = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        connection.request(method, "/api/" + path, octets, sent)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        answered = {name.lower(): value for name, value in response.headers.items()}
        return Reply(response.status, json.loads(text) if text else None, answered)

    def get(self, path: str) -> Any:
        reply = self.ask("GET", path)
        assert reply.status == 200, reply
        return reply.value


def connect(broker: BrokerProcess, **properties: Any) -> pika.BlockingConnection:
    return pika.BlockingConnection(
        pika.ConnectionParameters(
            "127.0.0.1", broker.port, client_properties={"connection_name": "me", "x": 1, **properties}
        )
    )


def populate(broker: BrokerProcess) -> pika.BlockingConnection:
    """Objects of all kinds, messages in all states; the connection has to stay open."""
    connection = connect(broker)
    channel = connection.channel()
    channel.exchange_declare("x1", "topic", durable=True, arguments={"alternate-exchange": "amq.fanout"})
    channel.exchange_declare("x2", "fanout", auto_delete=True)
    channel.exchange_declare("x3", "direct", internal=True)
    channel.queue_declare("q1", durable=True, arguments={"x-max-length": 10, "x-dead-letter-exchange": "x1"})
    channel.queue_declare("q2", auto_delete=True)
    channel.queue_declare("q3", exclusive=True)
    channel.queue_declare("qq", durable=True, arguments={"x-queue-type": "quorum"})
    channel.queue_declare("qs", durable=True, arguments={"x-queue-type": "stream"})
    channel.queue_declare("qp", durable=True, arguments={"x-single-active-consumer": True})
    channel.queue_declare("sp ace/sl~%")
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


def _ignore(*_: Any) -> None:
    """Takes a message and does not settle it."""


CONNECTION = re.compile(r"127\.0\.0\.1:\d+ -> 127\.0\.0\.1:\d+")
# What is of its moment or its machine: that it is there, and of its type, is all that can be the same.
OF_ITS_MOMENT = {
    "cluster_name",
    "connected_at",
    "erlang_full_version",
    "erlang_version",
    "idle_since",
    "management_version",
    "memory",
    "os_pid",
    "peer_port",
    "port",
    "product_version",
    "rabbitmq_version",
    "recv_cnt",
    "recv_oct",
    "rate",
    "reductions",
    "run_queue",
    "send_cnt",
    "send_oct",
    "uptime",
}


def neutral(value: Any, node: str) -> Any:
    """A value without what no two brokers can have the same."""
    if isinstance(value, dict):
        return {
            key.replace(node, "NODE"): _kind(item) if key in OF_ITS_MOMENT else neutral(item, node)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [neutral(item, node) for item in value]
    if isinstance(value, str):
        return CONNECTION.sub("CONNECTION", value).replace(node, "NODE")
    return value


def _kind(value: Any) -> str:
    return "null" if value is None else "number" if isinstance(value, (int, float)) else type(value).__name__


# By which of their names the items of a list are told apart, so that their order does not matter.
IDENTITIES = (
    {"source", "destination", "destination_type", "routing_key", "arguments"},
    {"consumer_tag"},
    {"name"},
    {"protocol"},
    {"queue"},
    {"exchange"},
    {"channel_details"},
)


def _by(items: list[dict[str, Any]], names: set[str]) -> dict[str, Any]:
    return {json.dumps([item[name] for name in sorted(names)], sort_keys=True): item for item in items}


def _compare_items(theirs: dict[str, Any], ours: dict[str, Any], path: str) -> list[str]:
    found = [f"{path}[{name}]: not here" for name in theirs.keys() - ours.keys()]
    found += [f"{path}[{name}]: only here" for name in ours.keys() - theirs.keys()]
    for name in theirs.keys() & ours.keys():
        found += compare(theirs[name], ours[name], path + "[]")
    return found


def compare(theirs: Any, ours: Any, path: str) -> list[str]:
    """Where two neutral values differ: the path, with [] for any item of a list, and how."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        found = [f"{path}.{key}: not here" for key in theirs.keys() - ours.keys()]
        found += [f"{path}.{key}: only here" for key in ours.keys() - theirs.keys()]
        for key in theirs.keys() & ours.keys():
            found += compare(theirs[key], ours[key], f"{path}.{key}")
        return found
    if isinstance(theirs, list) and isinstance(ours, list):
        for names in IDENTITIES:
            if all(isinstance(item, dict) and names <= item.keys() for item in (*theirs, *ours)):
                return _compare_items(_by(theirs, names), _by(ours, names), path)
        found = [f"{path}: {len(theirs)} there, {len(ours)} here"] if len(theirs) != len(ours) else []
        for one, other in zip(theirs, ours, strict=False):
            found += compare(one, other, path + "[]")
        return found
    return [] if theirs == ours else [f"{path}: {json.dumps(theirs)}, here {json.dumps(ours)}"]
