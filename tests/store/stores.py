"""Stores for tests: written by a broker, with something of everything in them, and then damaged."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import lmdb

from amqp_broker.broker.durability.journal import Journal
from amqp_broker.store.environment import Environment
from amqp_broker.store.journal import LmdbJournal
from amqp_broker.store.seal import seal, unseal
from tests.broker_parts import bind, new_broker, new_exchange, new_message, new_queue
from tests.present import present

PAGE_BYTES = 4096


def commit(environment: Environment, journal: Journal) -> None:
    """Commit the collected batch."""
    assert isinstance(journal, LmdbJournal)
    with environment.lmdb.begin(write=True) as txn:
        for _ in journal.write(txn):
            pass
    journal.on_committed()


def fill(folder: Path, messages: int = 30, body_bytes: int = 300) -> None:
    """Write a store with queues of several types and this number of messages each, some deleted again."""
    environment = Environment(folder)
    journal = LmdbJournal(environment)
    vhost = new_broker(journal).vhosts["/"]
    queues = [
        new_queue(vhost, "plain", is_durable=True),
        new_queue(vhost, "priority", is_durable=True, arguments={"x-max-priority": 3}),
        new_queue(vhost, "quorum", is_durable=True, arguments={"x-queue-type": "quorum"}),
        new_queue(vhost, "emptied", is_durable=True),
    ]
    exchange = new_exchange(vhost, "events", is_durable=True)
    for queue in queues:
        bind(exchange, queue, vhost, "key")
        for number in range(messages):
            body = b"x" * (number * body_bytes // 10)
            queue.push(new_message(body, delivery_mode=2 - number % 3 // 2, priority=number % 5))
        commit(environment, journal)
    queues[3].purge()
    commit(environment, journal)
    environment.close()


def record_at(txn: lmdb.Transaction, key: bytes, table: Any) -> bytes:
    """Return the record of a table at a key, which must exist, without its checksum."""
    return bytes(unseal(key, bytes(present(txn.get(key, db=table)))))


def put(txn: lmdb.Transaction, key: bytes, record: bytes, table: Any) -> None:
    """Put a record with its checksum."""
    txn.put(key, seal(key, record), db=table)


def digest(folder: Path) -> dict[str, str]:
    """Return kind, permissions and a hash of each file of a folder, by name."""
    found = {}
    for path in [folder, *sorted(folder.rglob("*"))] if folder.is_dir() else [folder]:
        if os.path.lexists(path):
            octets = path.read_bytes() if path.is_file() else b""
            found[str(path)] = f"{path.stat().st_mode:o} {hashlib.sha256(octets).hexdigest()}"
    return found


def outcomes_of(program: str, folder: Path, seed: int, count: int) -> str:
    """Return what a program prints. It damages stores ``count`` times; LMDB may end its process."""
    done = subprocess.run(
        [sys.executable, "-m", program, str(folder), str(seed), str(count)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, ((folder / "case").read_text("utf-8"), done.stderr)
    return done.stdout
