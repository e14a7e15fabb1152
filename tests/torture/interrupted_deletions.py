"""Kill a broker that deletes a queue or an exchange with 100 000 bindings, and look for leftovers.

python -m tests.torture --rounds 0 --deletion-rounds 50 --seed 1
"""

from __future__ import annotations

import random
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import lmdb
from pamqp import base, commands

from amqp_broker.store.environment import TABLES, Environment
from amqp_broker.store.journal import LmdbJournal
from amqp_broker.store.verify import verify
from compat.brokers import AmqpBroker
from compat.waiting import wait_until
from tests.broker_parts import bind, new_broker, new_exchange, new_queue
from tests.client import Client
from tests.store.stores import commit
from tests.torture.interrupted_tools import Interrupted

BINDINGS: Final = 100_000
KINDS: Final = ("queue", "exchange")
# The time for a start, in seconds: other work may share the machine.
START_S: Final = 120.0
# The latest kill of a deletion, as a share of the bindings, and of a start, in seconds.
LATEST: Final = 0.9
STARTING_S: Final = 4.0
# Keys of bindings that are used after the restart.
SAMPLES: Final = 200
# By the kind of the deleted object: a queue that keeps a binding, with its exchange and key.
KEPT: Final = {"queue": ("other", "many", "other"), "exchange": ("q", "amq.direct", "direct")}
DELETE: Final[dict[str, base.Frame]] = {
    "queue": commands.Queue.Delete(queue="q"),
    "exchange": commands.Exchange.Delete(exchange="many"),
}


def interrupt_deletion(kind: str, folder: Path, rounds: int, seed: int, bindings: int = BINDINGS) -> Interrupted:
    """Kill a broker a number of times while it deletes a queue or an exchange; the folder must be new.

    The kills of the result are those that left a part of the bindings.
    """
    dice = random.Random(f"{seed} {kind}")
    folder.mkdir()
    original = folder / "original"
    _fill(original, bindings)
    entries = _entries(original)
    # That of the other queue goes with the exchange.
    whole = bindings + (kind == "exchange")
    result = Interrupted(0, [])
    for number in range(rounds):
        broker = _broker(original, folder / "used")
        broker.start(START_S)
        client = Client(broker.port).open()
        client.send(DELETE[kind])
        _kill_at(broker, entries - int(dice.random() * LATEST * whole))
        is_answered = _has_answer(client)
        left = _bindings_of(kind, broker.folder)
        result.kills += 0 < left < whole
        if dice.random() < 0.5:
            # Amid the start, which finishes the deletion.
            broker.spawn()
            time.sleep(dice.random() * STARTING_S)
            broker.kill()
        errors = _errors(kind, broker, whole, has_begun=left < whole)
        if is_answered and left:
            errors.append(f"the deletion was confirmed, but {left} bindings were left")
        result.errors += [f"{kind}, round {number}: {error}" for error in errors]
    return result


def _fill(folder: Path, bindings: int) -> None:
    """Write a store with a queue and an exchange that many bindings connect, and others beside."""
    environment = Environment(folder)
    journal = LmdbJournal(environment)
    vhost = new_broker(journal).vhosts["/"]
    exchange = new_exchange(vhost, "many", "topic", is_durable=True)
    queue, other = new_queue(vhost, "q", is_durable=True), new_queue(vhost, "other", is_durable=True)
    for number in range(bindings):
        bind(exchange, queue, vhost, f"key.{number}")
    bind(exchange, other, vhost, "other")
    bind(vhost.exchanges["amq.direct"], queue, vhost, "direct")
    commit(environment, journal)
    environment.close()


def _broker(original: Path, folder: Path) -> AmqpBroker:
    """Return a broker with a copy of a store, which is not started."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(original, folder / "data")
    return AmqpBroker(folder)


def _kill_at(broker: AmqpBroker, entries: int) -> None:
    """Kill a broker when its store has fewer definitions."""
    wait_until(lambda: _entries(broker.folder / "data") < entries, START_S)
    broker.kill()


def _entries(folder: Path) -> int:
    """Return the number of definitions in a store, which a broker may use."""
    with lmdb.open(str(folder), max_dbs=len(TABLES), readonly=True, lock=False) as store:
        table = store.open_db(b"definitions", create=False)
        with store.begin() as txn:
            return int(txn.stat(table)["entries"])


def _has_answer(client: Client) -> bool:
    """Return whether the broker has confirmed the deletion before it was killed."""
    with client, suppress(ConnectionError):
        answer, _ = client.next()
        return isinstance(answer, (commands.Queue.DeleteOk, commands.Exchange.DeleteOk))
    return False


def _bindings_of(kind: str, folder: Path) -> int:
    """Return the number of bindings of the deleted object in the store of a broker that does not run."""
    return sum(_is_of(kind, key) for key in _definitions(folder, "binding"))


def _definitions(folder: Path, kind: str) -> list[tuple[str, ...]]:
    environment = Environment(folder / "data")
    try:
        return [key for key, _ in LmdbJournal(environment).definitions_of(kind)]
    finally:
        environment.close()


def _is_of(kind: str, key: tuple[str, ...]) -> bool:
    _, _, source, destination_kind, destination, *_ = key
    return source == "many" and (kind == "exchange" or (destination_kind, destination) == ("queue", "q"))


def _errors(kind: str, broker: AmqpBroker, whole: int, *, has_begun: bool) -> list[str]:
    """Start the broker again; return sentences about leftovers and losses."""
    broker.start(START_S)
    try:
        with Client(broker.port).open() as client:
            errors = _errors_of_routes(kind, client, whole, has_begun=has_begun)
    finally:
        broker.stop()
    left = _bindings_of(kind, broker.folder)
    if left != (0 if has_begun else whole):
        errors.append(f"{left} bindings are left")
    if _definitions(broker.folder, "deletion"):
        errors.append("the deletion is not finished")
    return errors + [f"the store: {problem}" for problem in verify(broker.folder / "data").problems]


def _errors_of_routes(kind: str, client: Client, whole: int, *, has_begun: bool) -> list[str]:
    errors = []
    if has_begun:
        # The new objects must get nothing through old bindings.
        client.call(commands.Exchange.Declare(exchange="many", exchange_type="topic", durable=True))
        client.call(commands.Queue.Declare(queue="q", durable=True))
    for number in range(SAMPLES):
        client.publish(f"key.{number * (whole - 1) // SAMPLES}", b"x", exchange="many")
    got = client.ready_count("q")
    if got != (0 if has_begun else SAMPLES):
        errors.append(f"{got} of {SAMPLES} messages were routed by the {kind}'s bindings")
    kept, exchange, key = KEPT[kind]
    before = client.ready_count(kept)
    client.publish(key, b"x", exchange=exchange)
    if client.ready_count(kept) != before + 1:
        errors.append(f"the binding of {exchange} to {kept} is lost")
    return errors
