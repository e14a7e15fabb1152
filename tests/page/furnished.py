"""A broker with objects of all kinds, whose names are as long as the protocol lets them be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pika

from tests.page.attacked import ask, part, show_demo
from tests.page.client import channel
from tests.page.routes import LISTS, OBJECTS
from tests.running import RunningServer

# Without a place to break the line, and with some.
NAME = "long" + "0123456789" * 20
TEXT = "orders of customers from abroad, " * 6


@contextmanager
def furnished(running: RunningServer) -> Iterator[list[str]]:
    """Create objects of all kinds, keep a client connected, and provide the address of each page."""
    name = part(NAME)
    ask(running, "PUT", "/api/cluster-name", {"name": NAME})
    ask(running, "PUT", f"/api/vhosts/{name}", {"description": TEXT, "tags": [NAME, "test"]})
    ask(running, "PUT", f"/api/users/{name}", {"password": "secret", "tags": "administrator,monitoring"})
    rights = {"configure": NAME, "write": ".*", "read": ".*"}
    for vhost in (name, "%2F"):
        ask(running, "PUT", f"/api/permissions/{vhost}/{name}", rights)
        ask(running, "PUT", f"/api/topic-permissions/{vhost}/{name}", {"exchange": NAME, "write": NAME, "read": ".*"})
    ask(running, "PUT", f"/api/vhost-limits/{name}/max-queues", {"value": 5})
    ask(running, "PUT", f"/api/user-limits/{name}/max-channels", {"value": 5})
    definition = {"max-length": 10, "dead-letter-exchange": NAME}
    for kind, keys in (("policies", definition), ("operator-policies", {"max-length": 1000})):
        policy = {"pattern": NAME, "definition": keys, "apply-to": "queues"}
        ask(running, "PUT", f"/api/{kind}/%2F/{name}", policy)
    # Port 9 serves nothing here.
    uri = "amqp://127.0.0.1:9"
    shovel = {"src-uri": uri, "src-queue": NAME, "dest-uri": uri, "dest-queue": NAME, "reconnect-delay": 3600}
    ask(running, "PUT", f"/api/parameters/shovel/%2F/{name}", {"value": shovel})
    ask(running, "POST", "/_broker/faults", {"action": "return", "exchange": "not " + NAME, "routing_key": NAME})
    running.ask(show_demo)
    running.ask(lambda server: server.broker.event_logs.start_all())
    with channel(running.port, NAME) as client:
        client.exchange_declare(NAME, "topic", arguments={"alternate-exchange": NAME})
        client.exchange_declare("lost." + NAME)
        client.queue_declare(NAME, durable=True, arguments={"x-max-length": 5, "x-dead-letter-exchange": NAME})
        client.queue_bind(NAME, NAME, NAME, arguments={NAME: TEXT})
        for payload in (b'{"id": 7, "text": "' + TEXT.encode() + b'"}', NAME.encode(), b"\xff\x00"):
            client.basic_publish("", NAME, payload, pika.BasicProperties(message_id=NAME, headers={NAME: TEXT}))
        # No queue gets this: a habit.
        client.basic_publish("lost." + NAME, NAME, b"")
        client.basic_qos(prefetch_count=1)
        client.basic_consume(NAME, lambda *_: None, consumer_tag=NAME)
        client.queue_declare("excl." + NAME, exclusive=True)
        [connection] = [one["name"] for one in ask(running, "GET", "/api/connections")]
        names = {"connection": part(connection), "channel": part(connection + " (1)"), "name": name}
        yield [*LISTS, *(route.format(**names) for route in OBJECTS), "nothing"]
