"""A snapshot of a vhost: refused with a sentence, or the same when it is restored and taken again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

from pamqp import commands

from amqp_broker.management.documents.definition import DefinitionsError
from amqp_broker.management.documents.parsing import parse
from amqp_broker.management.documents.snapshots import SavedMessage, Snapshot, SnapshotError, restore, take_snapshot
from amqp_broker.management.http import json as answers_json
from tests.fuzzing import documents
from tests.fuzzing.target import Failure, Target, expect
from tests.fuzzing.targets import definitions
from tests.peer import Lab

KEYS = (
    *Snapshot.__struct_fields__,
    *SavedMessage.__struct_fields__,
    *("name", "returned", "messages", "turn", "first_offset", "chunks", "age_ms", "delayed"),
    *definitions.KEYS,
)


def check(data: bytes) -> None:
    try:
        document = parse(data)
    except DefinitionsError:
        return
    lab = Lab()
    before = taken(lab, "/")
    try:
        restore(lab.broker, document, "new")
    except SnapshotError as error:
        expect(str(error), "a refusal without a sentence")
        expect("new" not in lab.broker.vhosts, f"a snapshot that is refused leaves its vhost: {error}")
        expect(taken(lab, "/") == before, "a snapshot that is refused has changed another vhost")
        return
    lab.drain()
    one = taken(lab, "new")
    try:
        restore(lab.broker, parse(answers_json.encode(one)), "again")
    except SnapshotError as error:
        raise Failure(f"a snapshot of what was restored is refused: {error}") from None
    lab.drain()
    again = taken(lab, "again")
    for section in one:
        mine, theirs = shown(one[section]), shown(again[section])
        expect(section == "definitions" or mine == theirs, f"{section}: {mine} becomes {theirs}")


def taken(lab: Lab, vhost: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answers_json.encode(take_snapshot(lab.broker, vhost)))
    return found


def shown(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def mutate(chance: Random, data: bytes) -> bytes:
    return documents.mutate(chance, data, KEYS)


@cache
def snapshot() -> bytes:
    """Return the snapshot of a vhost with a queue of each kind, a stream and a delayed message."""
    lab = Lab()
    peer = lab.connect()
    for kind in ("classic", "quorum", "stream"):
        peer.declare(kind, durable=True, arguments={"x-queue-type": kind})
        peer.publish(kind, b"body", delivery_mode=2, headers={"n": 1}, priority=1)
        peer.publish(kind, b"\xff", expiration="60000")
    peer.call(
        commands.Exchange.Declare(
            exchange="later", exchange_type="x-delayed-message", durable=True, arguments={"x-delayed-type": "topic"}
        )
    )
    peer.call(commands.Queue.Bind(queue="classic", exchange="later", routing_key="#"))
    peer.publish("k", b"later", exchange="later", headers={"x-delay": 60_000})
    peer.get("classic", no_ack=False)
    return answers_json.encode(take_snapshot(lab.broker, "/"))


def seeds() -> Iterator[bytes]:
    yield snapshot()
    document = json.loads(snapshot())
    for section in ("queues", "streams", "exchanges"):
        yield json.dumps({**document, section: []}).encode()


TARGET = Target(check, seeds, mutate, words=tuple(f'"{key}":' for key in KEYS), octets_max=5000)
