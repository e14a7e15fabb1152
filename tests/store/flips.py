"""Flip single bits of a store, and check that no changed message is ever delivered.

    python -m tests.store.flips FOLDER SEED COUNT

FOLDER is new. Prints the numbers of flips that changed nothing, that damaged records, and that damaged the pages of
LMDB. A crash of the interpreter is the exit code; `case` names the flip that caused it.
"""

from __future__ import annotations

import contextlib
import logging
import random
import shutil
import sys
from collections import Counter
from pathlib import Path

from amqp_broker.broker.broker import Broker
from amqp_broker.broker.queues.stream import StreamQueue
from amqp_broker.settings.settings import Settings
from amqp_broker.store.environment import DATA_FILE, Environment, StoreError
from amqp_broker.store.journal import LmdbJournal
from amqp_broker.store.repair import repair
from amqp_broker.store.store import Store
from amqp_broker.store.verify import verify
from tests.broker_parts import new_broker, new_message, new_queue
from tests.store.stores import commit

KINDS = ("classic", "quorum", "stream")


def fill(folder: Path) -> None:
    """Write a store with queues of all types, each message with a body of its own."""
    environment = Environment(folder)
    journal = LmdbJournal(environment)
    broker = new_broker(journal)
    for kind in KINDS:
        queue = new_queue(broker.vhosts["/"], kind, is_durable=True, arguments={"x-queue-type": kind})
        for number in range(40):
            queue.push(new_message(f"{kind} {number} ".encode() * (number * 3 + 1), kind, delivery_mode=2))
            if number % 10 == 9:
                commit(environment, journal)
    environment.close()


def delivered(folder: Path) -> set[tuple[str, str, bytes]]:
    """Return queue, routing key and content of each message that a broker delivers from a store. Raise StoreError."""
    store = Store(folder)
    broker = Broker(Settings(), bytes, store.journal)
    store.recover(broker)
    found = set()
    try:
        for queue in broker.vhosts["/"].queues.values():
            if isinstance(queue, StreamQueue):
                found |= {(queue.name, one.routing_key, one.content) for _, one, _ in queue.peek()}
                continue
            while (pulled := queue.pull()) is not None:
                found.add((queue.name, pulled[0].routing_key, pulled[0].content))
    finally:
        store.environment.close()
    return found


def outcome(folder: Path, whole: set[tuple[str, str, bytes]]) -> str:
    """Return the kind of damage of a store. Raise AssertionError if it is not handled as it should be."""
    try:
        problems = verify(folder).problems
    except StoreError:
        return "pages"
    if not problems:
        assert delivered(folder) == whole, "verify has overlooked a loss"
        return "nothing"
    with contextlib.suppress(StoreError):
        assert delivered(folder) < whole, "a changed message was delivered"
    result = repair(folder)
    assert result.changes, problems
    assert result.copy is not None, problems
    assert verify(folder).problems == []
    kept = delivered(folder)
    # A damaged chunk takes the messages of one commit with it, any other record at most one message.
    assert kept <= whole, "a changed message was delivered after the repair"
    assert len(kept) >= len(whole) - 10, result.changes
    return "records"


def run(folder: Path, seed: int, count: int) -> Counter[str]:
    logging.disable()
    fill(folder / "whole")
    octets = (folder / "whole" / DATA_FILE).read_bytes()
    shutil.copytree(folder / "whole", folder / "first")
    whole = delivered(folder / "first")
    assert len(whole) == 40 * len(KINDS)
    chance, outcomes = random.Random(seed), Counter[str]()
    for _ in range(count):
        at, bit = chance.randrange(len(octets)), chance.randrange(8)
        (folder / "case").write_text(f"bit {bit} of octet {at}", "utf-8")
        copy = folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        (copy / DATA_FILE).write_bytes(octets[:at] + bytes([octets[at] ^ 1 << bit]) + octets[at + 1 :])
        outcomes[outcome(copy, whole)] += 1
    return outcomes


if __name__ == "__main__":
    print(dict(run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
