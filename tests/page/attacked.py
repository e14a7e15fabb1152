"""A broker where every text that a client or a user can choose is an attack."""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import quote

import pika
from pika.adapters.blocking_connection import BlockingChannel

from amqp_broker.management.node.node import Demo
from amqp_broker.server.server import Server
from tests.page.hostile import ANY_CONTEXT, ATTACKS
from tests.running import RunningServer

PASSWORD = "secret"
# A user whose name can be that of a login: it has no colon.
USER = ATTACKS[0]


def part(text: str) -> str:
    """Return a text as a part of a path."""
    return quote(text, safe="")


def ask(running: RunningServer, method: str, path: str, body: Any = None) -> Any:
    """Return the answer of the HTTP API. Raise HTTPError with its reason for a refusal."""
    url = f"http://127.0.0.1:{running.server.ports['management']}{path}"
    headers = {"Authorization": "Basic " + base64.b64encode(b"guest:guest").decode()}
    headers["Content-Type"] = "application/json"
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method)) as answer:
        content = answer.read()
        return json.loads(content) if content else None


@contextmanager
def client(running: RunningServer, text: str) -> Iterator[BlockingChannel]:
    """Connect a client whose user, name and properties are this text."""
    properties = {"connection_name": text, "product": text, "version": text, text: {text: text}}
    # It sends nothing for minutes.
    parameters = pika.ConnectionParameters(
        "127.0.0.1",
        running.port,
        credentials=pika.PlainCredentials(text, PASSWORD),
        client_properties=properties,
        heartbeat=0,
    )
    connection = pika.BlockingConnection(parameters)
    try:
        yield connection.channel()
    finally:
        if connection.is_open:
            connection.close()


@contextmanager
def attacked(running: RunningServer) -> Iterator[None]:
    """Create objects of all kinds with each attack, and keep their clients connected."""
    ask(running, "PUT", "/api/cluster-name", {"name": ANY_CONTEXT})
    running.ask(show_demo)
    with ExitStack() as stack:
        for text in ATTACKS:
            administer(running, text)
            channel = stack.enter_context(client(running, text))
            declare(channel, text)
            publish(channel, text)
            channel.basic_qos(prefetch_count=1)
            channel.basic_consume(text, lambda *_: None, consumer_tag=text, arguments={text: text})
            channel.queue_declare("excl." + text[:200], exclusive=True)
        yield


def administer(running: RunningServer, text: str) -> None:
    name = part(text)
    ask(running, "PUT", f"/api/vhosts/{name}", {"description": text, "tags": [text, text + "2"]})
    ask(running, "PUT", f"/api/users/{name}", {"password": PASSWORD, "tags": f"administrator,{text}"})
    own = {"write": text, "read": text}
    ask(running, "PUT", f"/api/permissions/{name}/{name}", {**own, "configure": text})
    ask(running, "PUT", f"/api/permissions/%2F/{name}", {"configure": ".*", "write": ".*", "read": ".*"})
    for vhost in (name, "%2F"):
        ask(running, "PUT", f"/api/topic-permissions/{vhost}/{name}", {**own, "exchange": "not " + text})
    ask(running, "PUT", f"/api/vhost-limits/{name}/max-queues", {"value": 5})
    ask(running, "PUT", f"/api/user-limits/{name}/max-channels", {"value": 5})
    letters = {"dead-letter-exchange": text, "dead-letter-routing-key": text}
    for kind, definition in (("policies", letters), ("operator-policies", {"max-length": 1000})):
        policy = {"pattern": text, "definition": definition, "apply-to": "queues"}
        ask(running, "PUT", f"/api/{kind}/%2F/{name}", policy)
    ask(running, "PUT", f"/api/global-parameters/{name}", {"value": {text: text}})
    # Port 9 serves nothing here.
    uri = f"amqp://{name}:{name}@127.0.0.1:9/{name}"
    shovel = {"src-uri": uri, "src-queue": text, "dest-uri": uri, "dest-queue": text, "reconnect-delay": 3600}
    ask(running, "PUT", f"/api/parameters/shovel/%2F/{name}", {"value": shovel})
    rule = {"action": "return", "exchange": "not " + text[:200], "routing_key": text, "queue": text, "text": text}
    ask(running, "POST", "/_broker/faults", {**rule, "user": text, "connection": text})


def declare(channel: BlockingChannel, text: str) -> None:
    channel.exchange_declare(text, "topic", arguments={"alternate-exchange": text})
    # An exchange without bindings: its messages are dropped, which is a habit.
    channel.exchange_declare("lost." + text[:200])
    channel.queue_declare(text, arguments={"x-" + text[:200]: text, "x-dead-letter-exchange": text})
    channel.queue_bind(text, text, text, arguments={text: text})
    channel.exchange_bind(text, text, text)


def publish(channel: BlockingChannel, text: str) -> None:
    """Publish to the queue of this name a text, a JSON and octets; and to an exchange without bindings."""
    nested = json.dumps({text: [text, {text: text}]}, ensure_ascii=False)
    properties = pika.BasicProperties(
        content_type=text, message_id=text, reply_to=text, correlation_id=text, type=text, app_id=text,
        headers={text: text, "nested": {text: [text, text]}},
    )  # fmt: skip
    for payload in (text.encode(), nested.encode(), b"\xff" + text.encode()):
        channel.basic_publish("", text, payload, properties)
    channel.basic_publish("lost." + text[:200], text, b"", properties)


def show_demo(server: Server) -> None:
    text = ANY_CONTEXT
    event = {"at": 1, "sentence": text, "state": "now", "hits": 1, "times": 2}
    result = {"strategy": text, "promise": text, "lost": {text: 1}, "is_held": False}
    counts = dict.fromkeys(("messages", "confirmed", "in_flight", "median_ms", "p99_ms", "connects", "window"), 1)
    texts = {"strategy": text, "sentence": text, "promise": text, "connection": text, "retries": {text: 1}}
    server.node.demo = HostileDemo({**counts, **texts, "plan": [event], "results": [result]})


class HostileDemo(Demo):
    """A demo whose texts are attacks."""

    def __init__(self, figures: dict[str, Any]) -> None:
        self._figures = figures

    def status(self) -> dict[str, Any]:
        text = ANY_CONTEXT
        choices = {
            "strategies": [{"name": text, "sentence": text, "promise": text}],
            "faults": [{"name": text, "sentence": text}],
            "numbers": {key: {"usual": 1} for key in ("messages", "rate", "window", "seed")},
        }
        return {"state": "failed", "reason": text, "choices": choices, "figures": self._figures}

    def start(self, given: Mapping[str, Any]) -> None:
        raise ValueError(given["strategy"])

    def stop(self) -> None:
        """Do nothing."""
