"""A broker in use: objects of all kinds, with clients that publish and consume, and an alarm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final
from urllib.parse import quote

import pika
import pika.exceptions
from pika.adapters.blocking_connection import BlockingChannel

from compat.brokers import AmqpBroker, BrokerProcess
from compat.waiting import wait_until

# Asks the HTTP API: method, path below `/api/`, and body.
Ask = Callable[[str, str, Any], Any]

VHOST: Final = "in use"
USER: Final = "in-use"
# Queues by name, with their arguments; each has messages.
QUEUES: Final[dict[str, dict[str, Any]]] = {
    "use.plain": {},
    "use.limited": {
        "x-max-length": 2,
        "x-max-length-bytes": 10_000,
        "x-message-ttl": 600_000,
        "x-expires": 3_600_000,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "use.plain",
        "x-overflow": "drop-head",
    },
    "use.priority": {"x-max-priority": 10},
    "use.single": {"x-single-active-consumer": True},
    "use sp ace/sl~%é": {"x-queue-mode": "lazy"},
    "use.quorum": {"x-queue-type": "quorum", "x-delivery-limit": 5, "x-max-length": 1000},
    "use.quorum.empty": {"x-queue-type": "quorum"},
    "use.stream": {"x-queue-type": "stream", "x-max-age": "1D", "x-stream-max-segment-size-bytes": 1_000_000},
    "use.stream.empty": {"x-queue-type": "stream"},
}
EXCHANGES: Final[dict[str, dict[str, Any]]] = {
    "use.topic": {"type": "topic", "durable": True, "arguments": {"alternate-exchange": "amq.fanout"}},
    "use.inner": {"type": "fanout", "durable": True, "internal": True},
    "use.fleeting": {"type": "headers", "durable": False, "auto_delete": True},
}
DEFINITIONS: Final[dict[str, Any]] = {
    f"vhosts/{quote(VHOST)}": {"description": "For the clients", "tags": "a,b", "default_queue_type": "quorum"},
    f"users/{USER}": {"password": "secret", "tags": "monitoring,impersonator"},
    "users/in-use.locked": {"password_hash": "", "tags": []},
    f"permissions/{quote(VHOST)}/{USER}": {"configure": "", "write": "^use", "read": ".*"},
    f"topic-permissions/%2F/{USER}": {"exchange": "use.topic", "write": "^a", "read": ".*"},
    f"user-limits/{USER}/max-channels": {"value": 200},
    f"user-limits/{USER}/max-connections": {"value": -1},
    f"vhost-limits/{quote(VHOST)}/max-queues": {"value": 1000},
    "vhost-limits/%2F/max-connections": {"value": -1},
    "policies/%2F/use.queues": {
        "pattern": "^use",
        "apply-to": "queues",
        "priority": -5,
        "definition": {"max-length": 100_000, "overflow": "reject-publish", "dead-letter-exchange": "use.inner"},
    },
    "policies/%2F/use.exchanges": {
        "pattern": "^use.fl",
        "apply-to": "exchanges",
        "definition": {"alternate-exchange": "amq.fanout"},
    },
    "operator-policies/%2F/use.limits": {
        "pattern": "^use",
        "apply-to": "queues",
        "priority": 7,
        "definition": {"max-length-bytes": 100_000_000, "expires": 86_400_000},
    },
    "global-parameters/use": {"value": {"a": [1, -2.5, None, "x"], "b": {"c": True}}},
    "global-parameters/cluster_tags": {"value": {"region": "eu"}},
    "parameters/federation-upstream/%2F/use.upstream": {
        "value": {"uri": "amqp://localhost:1", "prefetch-count": 10, "reconnect-delay": 3600, "expires": 3_600_000}
    },
}


@contextmanager
def in_use(broker: BrokerProcess, ask: Ask) -> Iterator[None]:
    """Provide objects of all kinds, messages in all states and the memory alarm."""
    with ExitStack() as stack:
        _declare(ask, stack)
        for path, body in DEFINITIONS.items():
            ask("PUT", path, body)
            stack.callback(ask, "DELETE", path, None)
        _start_shovels(broker, ask, stack)
        for connection in (_consume(broker), _publish(broker), _connect(broker, "idle", vhost=VHOST)):
            stack.callback(_close, connection)
        ask("POST", "queues/%2F/use.plain/get", {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"})
        _set_memory_limit(broker, "0.0000001")
        stack.callback(_set_memory_limit, broker, "0.5")
        wait_until(lambda: _has_caught_up(ask), 30)
        yield


def _declare(ask: Ask, stack: ExitStack) -> None:
    objects = {f"exchanges/%2F/{name}": body for name, body in EXCHANGES.items()}
    objects |= {f"queues/%2F/{quote(name, safe='')}": _queue(arguments) for name, arguments in QUEUES.items()}
    for path, body in objects.items():
        ask("PUT", path, body)
        stack.callback(ask, "DELETE", path, None)
    for kind, destination, routing_key, arguments in (
        ("q", "use.plain", "a.#", {}),
        ("q", "use.quorum", "", {"x-match": "all", "number": -1, "nested": {"list": [1, 2.5, "x"]}}),
        ("q", "use%20sp%20ace%2Fsl~%25%C3%A9", "k~/ %é", {}),
        ("e", "use.inner", "e.*", {}),
    ):
        body = {"routing_key": routing_key, "arguments": arguments}
        ask("POST", f"bindings/%2F/e/use.topic/{kind}/{destination}", body)


def _queue(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"durable": True, "arguments": arguments}


def _start_shovels(broker: BrokerProcess, ask: Ask, stack: ExitStack) -> None:
    """Start a shovel that moves messages, and one that does not find its source."""
    for name, port in (("use.running", broker.port), ("use.lost", 1)):
        uri = f"amqp://guest:guest@{broker.host}:{port}"
        ends = {"src-uri": uri, "src-queue": "use.moved", "dest-uri": uri, "dest-queue": "use.arrived"}
        path = f"parameters/shovel/%2F/{name}"
        ask("PUT", path, {"value": {**ends, "ack-mode": "on-confirm", "src-prefetch-count": 10, "reconnect-delay": 60}})
        stack.callback(ask, "DELETE", path, None)
    for queue in ("use.moved", "use.arrived"):
        stack.callback(ask, "DELETE", f"queues/%2F/{queue}", None)


def _connect(broker: BrokerProcess, name: str, vhost: str = "/") -> pika.BlockingConnection:
    properties = {"connection_name": name, "product": "use", "number": -1, "list": [1, "x"], "none": None}
    return pika.BlockingConnection(
        pika.ConnectionParameters(broker.host, broker.port, vhost, client_properties=properties, heartbeat=0)
    )


def _consume(broker: BrokerProcess) -> pika.BlockingConnection:
    """Return a connection whose consumers hold messages."""
    connection = _connect(broker, "consumers")
    for queue in QUEUES:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=3)
        arguments = {"x-stream-offset": "first"} if "stream" in queue else {"x-priority": -2}
        for tag in ("first", "second"):
            channel.basic_consume(queue, _hold, consumer_tag=f"{queue}.{tag}", arguments=arguments)
    own = connection.channel()
    own.queue_declare("use.own", exclusive=True)
    own.basic_consume("use.own", _hold, auto_ack=True, exclusive=True)
    return connection


def _publish(broker: BrokerProcess) -> pika.BlockingConnection:
    """Return a connection with channels of each mode, which has published to all queues."""
    connection = _connect(broker, "publishers")
    confirming, transactional = connection.channel(), connection.channel()
    confirming.confirm_delivery()
    for queue in (*QUEUES, "use.own", "use.moved"):
        for number in range(20):
            _send(confirming, queue, number)
    transactional.tx_select()
    _send(transactional, "use.plain", 1)
    connection.channel().basic_publish("use.topic", "unroutable", b"", mandatory=True)
    _settle(connection)
    return connection


def _send(channel: BlockingChannel, queue: str, number: int) -> None:
    properties = pika.BasicProperties(delivery_mode=1 + number % 2, priority=number % 3, headers={"n": -number})
    channel.basic_publish("", queue, b"x" * 100, properties)


def _settle(connection: pika.BlockingConnection) -> None:
    """Settle messages of a classic and of a quorum queue in each way."""
    channel = connection.channel()
    for queue in ("use.plain", "use.quorum"):
        tags = [channel.basic_get(queue)[0].delivery_tag for _ in range(4)]
        channel.basic_ack(tags[0])
        channel.basic_nack(tags[1], requeue=True)
        channel.basic_reject(tags[2], requeue=False)
        # The last one stays unacked.
    channel.basic_get("use.quorum.empty")
    connection.process_data_events(0.1)


def _hold(*_: object) -> None:
    """Receive a message without settling it."""


def _close(connection: pika.BlockingConnection) -> None:
    # pika returns what its consumers hold, which streams of RabbitMQ 3.10 refuse.
    with suppress(pika.exceptions.AMQPError):
        connection.close()


def _set_memory_limit(broker: BrokerProcess, fraction: str) -> None:
    tool = "ctl" if isinstance(broker, AmqpBroker) else "rabbitmqctl"
    done = broker.run(tool, "set_vm_memory_high_watermark", fraction)
    assert done.returncode == 0, done


def _has_caught_up(ask: Ask) -> bool:
    """Return whether the statistics include all clients and the alarm."""
    return bool(
        len(ask("GET", "connections", None)) >= 3
        and len(ask("GET", "consumers", None)) >= 2 * len(QUEUES)
        and any(shovel["state"] == "running" for shovel in ask("GET", "shovels", None))
        and ask("GET", "nodes", None)[0]["mem_alarm"]
        and all("message_stats" in queue for queue in ask("GET", "queues", None) if queue["name"] == "use.plain")
    )
