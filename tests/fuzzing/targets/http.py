"""A request to the HTTP API, as `METHOD /path?query`, a line's end and the body.

The answer has a status that the endpoint declares, and JSON; what it did can be exported, and imported elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from random import Random
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from pamqp import commands

from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.management.api_sections import all_endpoints
from amqp_broker.management.http import json as answers_json
from amqp_broker.management.http.answers import Answer, Deferred, Streamed, refusal_of
from amqp_broker.management.http.columns import selected
from amqp_broker.management.http.paths import BrokenPath
from amqp_broker.management.http.request import Request
from compat.management_admin import message_requests, requests
from tests.fuzzing import documents
from tests.fuzzing.target import Failure, Target, expect
from tests.management.asking import PATHS, Desk, StillNode
from tests.mutations import MUTATIONS

ENDPOINTS = list(all_endpoints())
METHODS = ("GET", "PUT", "POST", "DELETE")
NAMES = (
    "%2F",
    "/",
    "q",
    "x",
    "amq.topic",
    "amq.default",
    "guest",
    "rabbit@machine",
    "",
    "%FF",
    "~",
    "%00",
    "*",
    "a%2Fb",
)
KEYS = sorted(
    {field for one in ENDPOINTS if one.body is not None for field in one.body.__struct_fields__}
    | {field for one in ENDPOINTS if one.query is not None for field in one.query.__struct_fields__}
    | {"max-length", "message-ttl", "dead-letter-exchange", "x-queue-type", "x-max-priority", "expiration", "headers"}
)
EXPORT = "/api/definitions"


class ObedientNode(StillNode):
    """A node that takes all commands, and does nothing."""

    def freeze(self) -> None: ...
    def resume(self) -> None: ...
    def stop(self) -> None: ...
    def stop_app(self) -> None: ...
    def start_app(self) -> None: ...
    def suspend_listeners(self) -> None: ...
    def resume_listeners(self) -> None: ...
    def advance(self, duration_ms: int) -> None: ...
    def set_memory_limit(self, text: str) -> None: ...
    def set_disk_free_limit(self, text: str) -> None: ...
    def set_alarm(self, resource: str, is_on: bool) -> None: ...
    def watch_disk(self, is_on: bool) -> None: ...
    def set_log_level(self, level: str) -> None: ...


def new_desk() -> Desk:
    """Return a broker that has a queue with a message, an exchange, a binding, and a client."""
    desk = Desk()
    rates = desk.node.rates
    desk.node = ObedientNode()
    desk.node.rates = rates
    peer = desk.lab.connect()
    peer.declare("q", durable=True)
    peer.call(commands.Exchange.Declare(exchange="x", exchange_type="topic", durable=True))
    peer.call(commands.Queue.Bind(queue="q", exchange="x", routing_key="a.#"))
    peer.publish("a.b", b"body", exchange="x", headers={"n": 1}, delivery_mode=2)
    peer.consume("q", "c")
    return desk


def check(data: bytes) -> None:
    head, _, body = data.partition(b"\n")
    method, _, target = head.decode("latin-1").partition(" ")
    try:
        found = PATHS.find(target.partition("?")[0])
    except BrokenPath:
        return
    if found is None or method not in found[0]:
        return
    desk = new_desk()
    status, _ = answered_by(desk, method, target, body)
    expect(100 <= status < 500 or status == 503, f"the status is {status}")
    desk.lab.drain()
    if method != "GET":
        check_others(desk, is_done=status < 300)


def answered_by(desk: Desk, method: str, target: str, body: bytes) -> tuple[int, Any]:
    """Return status and value of the answer to a request. Raise what no client may see."""
    path, _, query = target.partition("?")
    found = PATHS.find(path)
    if found is None or method not in found[0]:
        return 404, None
    endpoint, parts = found[0][method], found[1]
    pairs = dict(parse_qsl(query, keep_blank_values=True))
    request = Request(desk.broker, desk.node, desk.user, method, parts, pairs, {}, body, query)
    desk.broker.collect_counts()
    try:
        value = endpoint.handler(request)
        if isinstance(value, Generator):
            value = finished(value)
        if isinstance(value, Deferred):
            value = value.answer()
        if isinstance(value, Streamed):
            return 200, None
        if method == "GET":
            value = finished(selected(request.query, value))
    except Exception as error:
        refusal = refusal_of(error)
        if refusal is None:
            raise
        return refusal.status, json.loads(answers_json.encode({"reason": refusal.reason}))
    answer = value if isinstance(value, Answer) else Answer(200, value)
    expect(answer.status in endpoint.statuses or answer.status == 503, f"{endpoint} does not declare {answer.status}")
    return answer.status, json.loads(answers_json.encode(answer.value))


def check_others(desk: Desk, *, is_done: bool) -> None:
    """Check that others are served, and that another broker takes what this one exports."""
    status, document = desk.get(EXPORT)
    expect(status == 200, f"definitions cannot be exported: {document}")
    expect(desk.get("/api/queues")[0] == 200, "queues cannot be listed")
    if not is_done:
        return
    other = Desk()
    status, reason = other.ask("POST", EXPORT, msgspec.json.encode(document))
    # compat/DIFFERENCES.md: definitions with impossible hashes are refused.
    if status != 204 and "password hash has" not in str(reason):
        raise Failure(f"definitions cannot be imported: {reason}")
    if status != 204:
        return
    exported = other.get(EXPORT)[1]
    for section, listed in document.items():
        if isinstance(listed, list):
            mine, theirs = in_order(listed), in_order(exported[section])
            # The other broker still has the defaults, and a cluster's own parameters are not exchanged.
            expect(section == "global_parameters" or set(mine) <= set(theirs), f"{section}: {mine} become {theirs}")


def in_order(listed: list[Any]) -> list[str]:
    return sorted(json.dumps(one, sort_keys=True) for one in listed)


def mutate(chance: Random, data: bytes) -> bytes:
    head, _, body = data.partition(b"\n")
    match chance.randrange(6):
        case 0:
            head = head_of(chance)
        case 1 if b"?" in head:
            head += f"&{chance.choice(KEYS)}={chance.choice(('', '1', 'true', '-1', 'name', 'x', '%FF'))}".encode()
        case 1:
            head += f"?{chance.choice(KEYS)}={chance.choice(('', '1', 'true', '-1', 'name', 'x', '%FF'))}".encode()
        case 2 if head:
            head = chance.choice(MUTATIONS)(chance, head).replace(b"\n", b"")
        case _:
            body = documents.mutate(chance, body, KEYS)
    return head + b"\n" + body


def head_of(chance: Random) -> bytes:
    """Return the first line of a request to any endpoint."""
    endpoint = chance.choice(ENDPOINTS)
    words = [chance.choice(NAMES) if "{" in word else word for word in endpoint.path.split("/")]
    return f"{endpoint.method} {'/'.join(words)}".encode()


def seeds() -> Iterator[bytes]:
    chance = Random(1)
    for endpoint in ENDPOINTS:
        words = [chance.choice(NAMES[:3]) if "{" in word else word for word in endpoint.path.split("/")]
        yield f"{endpoint.method} {'/'.join(words)}\n{{}}".encode()
    for listed in (
        *(requests.USERS, requests.VHOSTS, requests.PERMISSIONS, requests.LIMITS, requests.POLICIES),
        *(requests.PARAMETERS, requests.HEALTH, message_requests.MESSAGES),
    ):
        for one in listed:
            yield f"{one.method} /api/{one.path}\n".encode() + one.octets


TARGET = Target(check, seeds, mutate, words=tuple(f'"{key}":' for key in KEYS), octets_max=2000)
