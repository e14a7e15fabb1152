"""Rows: each endpoint of the HTTP API beside many objects. The commands of RabbitMQ's tools use the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from amqp_broker.broker.admin.policies import Policy
from amqp_broker.management.http.endpoint import Endpoint
from tests.growth.messages import chained
from tests.growth.table import UNEVENNESS, Play, Row, row
from tests.growth.verbs import TYPES, Basic, Exchange, Queue, declared, filled, unacked
from tests.growth.world import ENDPOINTS, Client, World

ROWS: Final[list[Row]] = []

# Values of the names in paths.
NAMES: Final = {
    "vhost": "%2F",
    "user": "guest",
    "name": "q",
    "queue": "full",
    "node": "rabbit@localhost",
    "source": "topic",
    "kind": "q",
    "destination": "held",
    "properties": "a.1",
    "exchange": "amq.topic",
    "component": "shovel",
    "filter": "x",
    "password": "secret",
    "pattern": "q",
    "port": "5672",
    "protocol": "amqp",
    "within": "1",
    "unit": "weeks",
    "number": "1",
    "id": "1",
    "resource": "memory",
}
# Names of other objects than queues.
OTHERS: Final = {
    "/api/exchanges/": "topic",
    "/_broker/unroutable/": "topic",
    "/api/connections/": "127.0.0.1:40000%20-%3E%20127.0.0.1:5672",
    "/api/channels/": "127.0.0.1:40000%20-%3E%20127.0.0.1:5672%20(1)",
    "/api/policies/": "p1",
    "/api/operator-policies/": "p1",
    "/api/global-parameters/": "g1",
    "/api/parameters/": "p1",
}
# They are written piece by piece, most until their client leaves.
STREAMED: Final = ("/_broker/events", "/_broker/capture/{vhost}", "/_broker/queues/{vhost}/{queue}/download")
# They are refused here, for want of what they are about.
REFUSED: Final = (
    "/api/connections/{name}/sessions",
    "/api/queues/quorum/{vhost}/{queue}/status",
    "/api/topic-permissions/{vhost}/{user}",
    "/api/topic-permissions/{vhost}/{user}/{exchange}",
    "/api/shovels/vhost/{vhost}/{name}",
    "/api/health/checks/node-is-mirror-sync-critical",
    "/_broker/faults/{id}",
    "/_broker/idle",
    "/_broker/nemesis/{vhost}",
)
# They stop or restart the node, move its clock, or set limits of its process: nothing of that is in this world.
OF_THE_PROCESS: Final = re.compile(
    r"/_broker/(stop|start|suspend|resume|clock|memory-limit|disk|log-level|environment|reset-node|demo|trace|firehose)"
    r"|/api/(rebalance|reset)|/api/queues/quorum|/api/vhosts/.*/start"
)


SHOVEL: Final = {"value": {"src-uri": "amqp://", "src-queue": "none", "dest-uri": "amqp://", "dest-queue": "none"}}


def grown(world: World, n: int) -> None:
    """Make n of everything that an answer may list."""
    broker = world.broker

    def ask(method: str, path: str, body: Any) -> None:
        status = world.ask(method, path, body)
        assert status < 300, (path, status, world.refusal)

    client = world.client()
    declared(client, "q", "full", "held")
    for kind in ("topic", "direct", "headers"):
        client.call(Exchange.Declare(exchange=kind, exchange_type=kind))
    ask("PUT", "/_broker/event-log", {})
    for number in range(n):
        declared(client, f"q{number}", **(TYPES["quorum"] if number % 2 else {}))
        client.call(Queue.Bind(queue="held", exchange="topic", routing_key=f"a.{number}"))
        client.call(Queue.Bind(queue=f"q{number}", exchange="topic", routing_key="a.1"))
        client.call(Queue.Bind(queue=f"q{number}", exchange="direct", routing_key="k"))
        client.call(Exchange.Declare(exchange=f"x{number}", exchange_type="fanout"))
        client.call(Exchange.Bind(destination=f"x{number}", source="topic" if number == 0 else f"x{number - 1}"))
        other = world.client()
        other.ignore(Basic.Consume(queue="q", consumer_tag="c"))
        other.ignore(Basic.Consume(queue=f"q{number}", consumer_tag="d"))
        client.open_channel(number + 2)
        broker.add_vhost(f"v{number}")
        user = broker.users.add(f"user{number}", "")
        user.limits.set("max-channels", 9)
        ask("PUT", f"/api/permissions/%2F/user{number}", {"configure": "", "write": "", "read": ""})
        ask("PUT", f"/api/topic-permissions/%2F/user{number}", {"exchange": "topic", "write": "", "read": ""})
        ask("PUT", f"/api/vhost-limits/v{number}/max-queues", {"value": 99})
        ask("PUT", f"/api/global-parameters/g{number}", {"value": number})
        ask("PUT", f"/api/parameters/shovel/%2F/p{number}", SHOVEL)
        ask("POST", "/_broker/faults", {"action": "drop_ack", "queue": f"none{number}"})
        world.vhost.policies.put(Policy(f"p{number}", f"^none{number}$", {"max-length": 9}))
        world.vhost.operator_policies.put(Policy(f"p{number}", f"^none{number}$", {"max-length": 9}))
    filled(client, "full", n, headers={"a": 1})
    unacked(client, "held", n)
    client.send_bytes(b"")


@cache
def grown_world(n: int) -> World:
    """A world for all requests that change nothing."""
    world = World()
    grown(world, n)
    return world


def path_of(endpoint: Endpoint) -> str:
    path = endpoint.path
    for prefix, name in OTHERS.items():
        if path.startswith(prefix):
            path = path.replace("{name}", name)
    return path.format(**NAMES)


def reading(endpoint: Endpoint) -> None:
    def play(world: World, n: int) -> Play:
        yield
        status = world.ask("GET", path_of(endpoint))
        assert status in (200, 204) or endpoint.path in REFUSED, (status, world.refusal)

    ROWS.append(Row(f"GET {endpoint.path}", play, 30, grown_world, unevenness=UNEVENNESS))


for endpoint in ENDPOINTS:
    if endpoint.method == "GET" and endpoint.path not in STREAMED:
        reading(endpoint)


# Changes. Each is undone, because they share a world; its event log remembers none that "Copy as pytest" refuses.

Asked: TypeAlias = tuple[str, str] | tuple[str, str, Any]


def changing(request: Asked, *, before: Sequence[Asked] = (), after: Sequence[Asked] = ()) -> None:
    """Add a row for a request that changes something; `before` and `after` are not counted."""

    def play(world: World, n: int) -> Play:
        for one in before:
            assert world.ask(*one) < 400, one
        yield
        status = world.ask(*request)
        assert status < 400, status
        yield
        for one in after:
            assert world.ask(*one) < 400, one

    ROWS.append(Row(f"{request[0]} {request[1]}", play, 30, grown_world, unevenness=UNEVENNESS))


def made_and_deleted(path: str, body: Any) -> None:
    """Add rows for PUT and DELETE of an object."""
    changing(("PUT", path, body), after=[("DELETE", path)])
    changing(("DELETE", path), before=[("PUT", path, body)])


PERMISSION: Final = {"configure": ".*", "write": ".*", "read": ".*"}
ALL: Final = {"pattern": ".*", "definition": {"max-length": 99999}}
POLICY: Final = {"pattern": "^none$", "definition": {"max-length": 9}}
USER: Final = {"password": "", "tags": ""}

made_and_deleted("/api/queues/%2F/new", {})
made_and_deleted("/api/queues/%2F/new-quorum", {"durable": True, "arguments": {"x-queue-type": "quorum"}})
made_and_deleted("/api/exchanges/%2F/new", {"type": "topic"})
made_and_deleted("/api/vhosts/new", {})
made_and_deleted("/api/users/new", USER)
made_and_deleted("/api/policies/%2F/new", POLICY)
made_and_deleted("/api/operator-policies/%2F/new", POLICY)
made_and_deleted("/api/global-parameters/new", {"value": 1})
made_and_deleted("/api/vhost-limits/v1/max-connections", {"value": 99})
made_and_deleted("/api/user-limits/user1/max-connections", {"value": 99})
made_and_deleted("/api/permissions/v1/user1", PERMISSION)
made_and_deleted("/api/topic-permissions/v1/user1", {"exchange": "topic", "write": "", "read": ""})
made_and_deleted("/api/parameters/shovel/%2F/new", SHOVEL)
changing(("PUT", "/api/users/guest", {"password": "guest", "tags": "administrator"}))
changing(("PUT", "/api/permissions/%2F/guest", PERMISSION))
changing(("PUT", "/api/cluster-name", {"name": "c"}))
changing(
    ("PUT", "/api/policies/%2F/of-all", {"pattern": ".*", "definition": {"max-length": 99999}}),
    after=[("DELETE", "/api/policies/%2F/of-all")],
)
changing(
    ("DELETE", "/api/policies/%2F/of-all"),
    before=[("PUT", "/api/policies/%2F/of-all", ALL)],
)
BINDING: Final = "/api/bindings/%2F/e/topic/q/q"
changing(("POST", BINDING, {"routing_key": "new"}), after=[("DELETE", f"{BINDING}/new")])
changing(("DELETE", f"{BINDING}/new"), before=[("POST", BINDING, {"routing_key": "new"})])
PUBLISH: Final = {"routing_key": "q0", "payload": "m", "payload_encoding": "string", "properties": {}}
changing(("POST", "/api/exchanges/%2F/amq.default/publish", PUBLISH))
GET: Final = {"count": 10_000, "ackmode": "ack_requeue_true", "encoding": "auto"}
changing(("POST", "/api/queues/%2F/full/get", GET))
changing(("DELETE", "/api/queues/%2F/q/contents"))
changing(
    ("POST", "/api/users/bulk-delete", {"users": ["a", "b"]}),
    before=[("PUT", "/api/users/a", USER), ("PUT", "/api/users/b", USER)],
)
changing(("POST", "/api/auth/hash_password", {"password": "x"}))
changing(("POST", "/api/login", b"username=guest&password=guest"))
changing(("DELETE", "/api/login"))
changing(("DELETE", "/api/auth/attempts/rabbit@localhost"))
changing(("POST", "/_broker/authenticate", {"user": "guest", "password": "guest"}))
changing(("POST", "/api/vhosts/v1/deletion/protection"), after=[("DELETE", "/api/vhosts/v1/deletion/protection")])
changing(("DELETE", "/_broker/advice"))
changing(("PUT", "/_broker/event-log/%2F", {}))


def alone(request: Asked, n: int = 15) -> None:
    """Add a row for a request that leaves a world of its own without what was in it."""

    def play(world: World, count: int) -> Play:
        grown(world, count)
        yield
        status = world.ask(*request)
        assert status < 400, status

    ROWS.append(Row(f"{request[0]} {request[1]} alone", play, n, unevenness=UNEVENNESS))


alone(("DELETE", "/api/vhosts/%2F"))
alone(("DELETE", "/api/users/guest"))
alone(("DELETE", "/api/connections/username/guest"))
alone(("DELETE", f"/api/connections/{OTHERS['/api/connections/']}"))
alone(("POST", "/_broker/queues/%2F/full/move", {"destination": {"queue": "q0"}}))
alone(("DELETE", "/_broker/faults"))
alone(("DELETE", "/_broker/messages"))
alone(("DELETE", "/_broker/event-log"))
alone(("DELETE", "/api/queues/%2F/full/contents"))
alone(("DELETE", "/api/exchanges/%2F/topic"))
alone(("DELETE", "/api/queues/%2F/held"))
alone(("POST", "/_broker/reset"))


@row(ROWS, 12, unevenness=UNEVENNESS)
def definitions_are_imported(world: World, n: int) -> Play:
    definitions = {
        "vhosts": [{"name": f"v{number}"} for number in range(n)],
        "users": [{"name": f"u{number}", "password_hash": "", "tags": ""} for number in range(n)],
        "permissions": [{"user": f"u{number}", "vhost": f"v{number}", **PERMISSION} for number in range(n)],
        "queues": [{"name": f"q{number}", "vhost": "/", "durable": True, "arguments": {}} for number in range(n)],
        "exchanges": [{"name": f"x{number}", "vhost": "/", "type": "topic", "durable": True} for number in range(n)],
        "bindings": [
            {"source": f"x{number}", "vhost": "/", "destination": f"q{number}", "destination_type": "queue"}
            for number in range(n)
        ],
        "policies": [{"name": f"p{number}", "vhost": "/", **POLICY, "pattern": "none"} for number in range(n)],
        "parameters": [{"component": "shovel", "vhost": "/", "name": f"s{number}", **SHOVEL} for number in range(n)],
    }
    yield
    assert world.ask("POST", "/api/definitions", definitions) < 400
    assert len(world.vhost.queues) == n


@row(ROWS, 30, unevenness=UNEVENNESS)
def a_policy_shortens_a_queue(world: World, n: int) -> Play:
    client = world.client()
    declared(client, "q")
    filled(client, "q", n * 5)
    yield
    assert world.ask("PUT", "/api/policies/%2F/p", {"pattern": "q", "definition": {"max-length": 1}}) == 201
    assert world.vhost.queues["q"].ready_count == 1


@row(ROWS, 30, unevenness=UNEVENNESS)
def a_policy_shortens_a_queue_with_dead_letters(world: World, n: int) -> Play:
    client = world.client()
    declared(client, "dead")
    declared(client, "q", **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    filled(client, "q", n * 5)
    yield
    assert world.ask("PUT", "/api/policies/%2F/p", {"pattern": "q", "definition": {"max-length": 1}}) == 201
    assert world.vhost.queues["dead"].ready_count == n * 5 - 1


def under_policies(client: Client, n: int) -> None:
    """Set n policies that apply to nothing."""
    policies = client.world.vhost.policies
    for number in range(n):
        policies.put(Policy(f"p{number}", f"^none{number}$", {"max-length": 9}))


@row(ROWS, unevenness=UNEVENNESS)
def a_queue_is_declared_beside_many_policies(world: World, n: int) -> Play:
    client = world.client()
    under_policies(client, n)
    yield
    client.send(Queue.Declare(queue="q"))


@row(ROWS, 30, unevenness=UNEVENNESS)
def a_policy_is_set_beside_many_policies(world: World, n: int) -> Play:
    client = world.client()
    under_policies(client, n)
    declared(client, "q")
    yield
    assert world.ask("PUT", "/api/policies/%2F/p", POLICY) == 201


@row(ROWS, 30, unevenness=UNEVENNESS)
def consumers_of_one_channel_are_listed(world: World, n: int) -> Play:
    client = world.client()
    declared(client, "q")
    for number in range(n):
        client.ignore(Basic.Consume(queue="q", consumer_tag=f"c{number}"))
    yield
    assert world.ask("GET", "/api/consumers") == 200


@row(ROWS, 30, unevenness=UNEVENNESS)
def the_topology_of_a_chain_is_drawn(world: World, n: int) -> Play:
    chained(world.client(), n)
    yield
    assert world.ask("GET", "/_broker/topology/%2F") == 200
