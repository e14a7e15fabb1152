"""The writes of the HTTP API to objects and definitions, with their readings."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import pika
import pika.exceptions

from compat.waiting import wait_until
from tests.readback.case import Case, Step, delete, post, put, row, seen
from tests.readback.node import Node

# Writes that change nothing, here or at RabbitMQ, with the reason.
WITHOUT_EFFECT: Final = {
    "POST /api/rebalance/queues": "the leaders of all queues are on the one node",
    "DELETE /api/reset": "samples of rates begin anew, and counters go on",
    "DELETE /api/reset/{node}": "samples of rates begin anew, and counters go on",
    "POST /api/queues/{vhost}/{queue}/actions": "queues have no mirrors",
    "POST /api/queues/quorum/{vhost}/{queue}/replicas/add": "the one node has a replica",
    "DELETE /api/queues/quorum/{vhost}/{queue}/replicas/delete": "the last replica stays (400)",
    "POST /api/queues/quorum/replicas/on/{node}/grow": "the one node has a replica",
    "DELETE /api/queues/quorum/replicas/on/{node}/shrink": "the last replica stays",
    "POST /api/login": "it checks a password",
    "DELETE /api/login": "there is no session",
    "POST /api/auth/hash_password": "it returns a hash",
    "DELETE /api/auth/attempts/{node}/source": "attempts are not counted by address",
    "POST /_broker/authenticate": "it checks a password",
    "POST /api/vhosts/{vhost}/start/{node}": "vhosts are running",
    # The clients of the trace and of the demo are tested where these are.
    "POST /_broker/demo": "tests/demo",
    "DELETE /_broker/demo": "tests/demo",
}

Q: Final = "queues/%2F/"
TO_DEAD: Final = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
SECRET: Final = {"password": "secret", "tags": "management"}


def vhost(name: str, **metadata: Any) -> Step:
    return put(f"vhosts/{name}", metadata)


def user(name: str, tags: str = "administrator") -> Step:
    """Create a user whose password is the name, with all permissions."""

    def write(node: Node) -> None:
        node.write("PUT", f"users/{name}", {"password": name, "tags": tags})
        node.write("PUT", f"permissions/%2F/{name}", ALL)

    return write


def queue(name: str, messages: int = 0, kind: str = "classic", ttl_ms: int | None = None) -> Step:
    arguments = {"x-queue-type": kind} | ({} if ttl_ms is None else {"x-message-ttl": ttl_ms})

    def write(node: Node) -> None:
        node.write("PUT", Q + name, {"durable": True, "arguments": arguments})
        for number in range(messages):
            node.write("POST", "exchanges/%2F/amq.default/publish", message(name, f"m{number}"))

    return write


def message(routing_key: str, payload: str) -> dict[str, Any]:
    properties = {"delivery_mode": 2}
    return {"routing_key": routing_key, "payload": payload, "payload_encoding": "string", "properties": properties}


def connection(name: str, user_name: str = "guest") -> Step:
    return lambda node: node.connect(name, user_name)


def close(name: str, by_user: bool = False) -> Step:
    """Close a connection by the name that the broker gave it, or all of a user who has the same name."""

    def write(node: Node) -> None:
        if by_user:
            node.write("DELETE", f"connections/username/{name}")
            return
        rows = node.get("connections")
        shown = next(each["name"] for each in rows if each["client_properties"].get("name") == name)
        node.write("DELETE", "connections/" + shown.replace(" ", "%20").replace(">", "%3E"))

    return write


def declares(exchange: str) -> Any:
    """Read by AMQP whether an exchange is there."""

    def read(node: Node) -> bool:
        with node.channel() as channel:
            try:
                channel.exchange_declare(exchange, passive=True)
            except pika.exceptions.ChannelClosedByBroker:
                return False
        return True

    return read


ALL: Final = {"configure": ".*", "write": ".*", "read": ".*"}
POLICY: Final = {"pattern": "^pol", "apply-to": "queues", "priority": 3, "definition": {"max-length": 7}}
SHOVEL: Final = {"src-uri": "amqp://", "src-queue": "moved", "dest-uri": "amqp://", "dest-queue": "arrived"}

AGAIN: Final = {"src-queue": "again", "src-predeclared": True, "dest-queue": "again.arrived", "reconnect-delay": 600}


def soon(read: Callable[[], Any], expected: Any) -> Any:
    """Return a value as soon as it is the expected one, or what it is after two seconds."""
    with suppress(AssertionError):
        wait_until(lambda: read() == expected, 2.0)
    return read()


OBJECTS: Final = (
    Case(
        "PUT /api/exchanges/{vhost}/{name}",
        put("exchanges/%2F/x.made", {"type": "topic", "durable": True}),
        declares("x.made"),
        True,
        is_kept=True,
    ),
    Case(
        "DELETE /api/exchanges/{vhost}/{name}",
        delete("exchanges/%2F/x.gone"),
        declares("x.gone"),
        False,
        [put("exchanges/%2F/x.gone", {"type": "fanout"})],
        is_kept=True,
    ),
    Case(
        "PUT /api/queues/{vhost}/{name}",
        put(Q + "q.made", {"durable": True, "arguments": {"x-max-length": 5}}),
        row("list_queues name durable arguments", "durable", "arguments", name="q.made"),
        [True, [["x-max-length", "signedint", 5], ["x-queue-type", "longstr", "classic"]]],
        is_kept=True,
    ),
    Case(
        "DELETE /api/queues/{vhost}/{name}",
        delete(Q + "q.gone"),
        row("list_queues name", name="q.gone"),
        False,
        [queue("q.gone", 2)],
        is_kept=True,
    ),
    Case(
        "POST /api/bindings/{vhost}/e/{source}/{kind}/{destination}",
        post("bindings/%2F/e/amq.topic/q/bound", {"routing_key": "a.#", "arguments": {"k": 1}}),
        row(
            "list_bindings source_name destination_name routing_key",
            destination_name="bound",
            source_name="amq.topic",
            routing_key="a.#",
        ),
        True,
        [queue("bound")],
        is_kept=True,
    ),
    Case(
        "DELETE /api/bindings/{vhost}/e/{source}/{kind}/{destination}/{properties}",
        delete("bindings/%2F/e/amq.direct/q/unbound/k"),
        row("list_bindings source_name destination_name", destination_name="unbound", source_name="amq.direct"),
        False,
        [queue("unbound"), post("bindings/%2F/e/amq.direct/q/unbound", {"routing_key": "k"})],
        is_kept=True,
    ),
    Case(
        "POST /api/exchanges/{vhost}/{name}/publish",
        post("exchanges/%2F/amq.default/publish", message("published", "hello")),
        lambda node: node.bodies("published"),
        [b"hello"],
        [queue("published")],
        is_kept=True,
    ),
    Case(
        "POST /api/queues/{vhost}/{queue}/get",
        post(Q + "got/get", {"count": 2, "ackmode": "ack_requeue_false", "encoding": "auto"}),
        lambda node: node.bodies("got"),
        [b"m2"],
        [queue("got", 3)],
        is_kept=True,
    ),
    Case(
        "DELETE /api/queues/{vhost}/{queue}/contents",
        delete(Q + "purged/contents"),
        lambda node: node.bodies("purged"),
        [],
        [queue("purged", 2)],
        is_kept=True,
    ),
    Case(
        "POST /_broker/queues/{vhost}/{queue}/move",
        post("/_broker/queues/%2F/left/move", {"destination": {"queue": "moved.to"}}),
        lambda node: (node.bodies("left"), node.bodies("moved.to")),
        ([], [b"m0", b"m1"]),
        [queue("left", 2), queue("moved.to")],
        is_kept=True,
    ),
    Case(
        "POST /_broker/queues/{vhost}/{queue}/return",
        post("/_broker/queues/%2F/dead/return", {}),
        lambda node: (node.bodies("dead"), node.bodies("gave.up")),
        ([], [b"m0"]),
        [
            queue("dead"),
            put(Q + "gave.up", {"durable": True, "arguments": TO_DEAD}),
            post("exchanges/%2F/amq.default/publish", message("gave.up", "m0")),
            post(Q + "gave.up/get", {"count": 1, "ackmode": "reject_requeue_false", "encoding": "auto"}),
        ],
        is_kept=True,
    ),
)

CLIENTS: Final = (
    Case(
        "DELETE /api/connections/{name}",
        close("closed"),
        lambda node: node.is_open("closed"),
        False,
        [connection("closed")],
    ),
    Case(
        "DELETE /api/connections/username/{user}",
        close("closing", by_user=True),
        lambda node: node.is_open("closing"),
        False,
        [user("closing"), connection("closing", "closing")],
    ),
)

POLICIES: Final = (
    Case(
        "PUT /api/policies/{vhost}/{name}",
        put("policies/%2F/p.made", POLICY),
        row("list_policies", "apply-to", "priority", "definition", name="p.made"),
        ["queues", 3, '{"max-length":7}'],
        is_kept=True,
    ),
    Case(
        "PUT /api/operator-policies/{vhost}/{name}",
        put("operator-policies/%2F/o.made", POLICY),
        row("list_operator_policies", "pattern", "definition", name="o.made"),
        ["^pol", '{"max-length":7}'],
        is_kept=True,
    ),
    Case(
        "DELETE /api/policies/{vhost}/{name}",
        delete("policies/%2F/p.gone"),
        row("list_policies", name="p.gone"),
        False,
        [put("policies/%2F/p.gone", POLICY)],
        is_kept=True,
    ),
    Case(
        "DELETE /api/operator-policies/{vhost}/{name}",
        delete("operator-policies/%2F/o.gone"),
        row("list_operator_policies", name="o.gone"),
        False,
        [put("operator-policies/%2F/o.gone", POLICY)],
        is_kept=True,
    ),
    Case(
        "PUT /api/parameters/{component}/{vhost}/{name}",
        put("parameters/shovel/%2F/made", {"value": SHOVEL}),
        row("list_parameters", component="shovel", name="made"),
        True,
        is_kept=True,
    ),
    Case(
        "DELETE /api/parameters/{component}/{vhost}/{name}",
        delete("parameters/federation-upstream/%2F/gone"),
        row("list_parameters", name="gone"),
        False,
        [put("parameters/federation-upstream/%2F/gone", {"value": {"uri": "amqp://"}})],
        is_kept=True,
    ),
    Case(
        "DELETE /api/shovels/vhost/{vhost}/{name}",
        delete("shovels/vhost/%2F/sh.gone"),
        row("list_parameters", name="sh.gone"),
        False,
        [put("parameters/shovel/%2F/sh.gone", {"value": SHOVEL})],
        is_kept=True,
    ),
    Case(
        "DELETE /api/shovels/vhost/{vhost}/{name}/restart",
        delete("shovels/vhost/%2F/sh.again/restart"),
        # The shovel has lost its source, and waits long before it tries again.
        lambda node: soon(lambda: node.bodies("again.arrived"), [b"m0", b"m1"]),
        [b"m0", b"m1"],
        [
            queue("again.arrived"),
            put("parameters/shovel/%2F/sh.again", {"value": SHOVEL | AGAIN}),
            lambda node: soon(lambda: node.found("shovels", name="sh.again", state="running") is None, True),
            queue("again", 2),
        ],
    ),
    Case(
        "PUT /api/global-parameters/{name}",
        put("global-parameters/g.made", {"value": [1]}),
        row("list_global_parameters", "value", name="g.made"),
        ["[1]"],
        is_kept=True,
    ),
    Case(
        "DELETE /api/global-parameters/{name}",
        delete("global-parameters/g.gone"),
        row("list_global_parameters", name="g.gone"),
        False,
        [put("global-parameters/g.gone", {"value": 1})],
        is_kept=True,
    ),
    # As in RabbitMQ, a node has its own ones again after a restart.
    Case(
        "DELETE /api/global-parameters/{name} of the node",
        delete("global-parameters/cluster_tags"),
        row("list_global_parameters", name="cluster_tags"),
        False,
    ),
    Case(
        "PUT /api/cluster-name",
        put("cluster-name", {"name": "other"}),
        lambda node: node.ctl("eval", "rabbit_nodes:cluster_name()."),
        '<<"other">>\n',
        is_kept=True,
    ),
    Case(
        "PUT /api/feature-flags/{name}/enable",
        put("feature-flags/khepri_db/enable", {}),
        row("list_feature_flags", "state", name="khepri_db"),
        ["enabled"],
        is_kept=True,
    ),
)

DEFINITIONS: Final = (
    *(
        Case(
            f"POST /api/{path}",
            post(path, {"vhosts": [{"name": f"v.{path}"}]}),
            row("list_vhosts name", name=f"v.{path}"),
            True,
            is_kept=True,
        )
        for path in ("definitions", "all-configuration")
    ),
    Case(
        "POST /api/definitions/{vhost}",
        post("definitions/%2F", {"queues": [{"name": "imported", "durable": True, "arguments": {}}]}),
        row("list_queues name", name="imported"),
        True,
        is_kept=True,
    ),
    Case(
        "PUT /_broker/snapshot/{vhost}",
        lambda node: node.write("PUT", "/_broker/snapshot/v.restored", node.get("/_broker/snapshot/v.source")),
        row("list_queues --vhost v.restored name messages", "messages", name="saved"),
        [1],
        [
            vhost("v.source"),
            vhost("v.restored"),
            put("queues/v.source/saved", {"durable": True}),
            post("exchanges/v.source/amq.default/publish", message("saved", "x")),
        ],
        is_kept=True,
    ),
    Case(
        "POST /_broker/reset",
        post("/_broker/reset"),
        row("list_queues name", name="lost"),
        False,
        [queue("lost", 1)],
        is_kept=True,
        is_alone=True,
    ),
    Case(
        "POST /_broker/reset-node",
        lambda node: [node.ctl(command) for command in ("stop_app", "reset", "start_app")],
        seen(Q + "lost"),
        False,
        [queue("lost", 1)],
        is_kept=True,
        is_alone=True,
    ),
)
