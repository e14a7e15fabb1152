"""A summary of a store, without reading its messages."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass
from typing import Any

from amqp_broker.store.contents import Contents
from amqp_broker.store.environment import DATA_FILE, FORMAT, POSITION, ReadOnlyEnvironment
from amqp_broker.store.journal import STATE
from amqp_broker.store.seal import DamagedRecord, unseal


@dataclass
class QueueSummary:
    """A queue and the messages that a restart finds in it; `bytes` are octets of their bodies."""

    vhost: str
    name: str
    type: str
    messages: int
    bytes: int


@dataclass
class Summary:
    """The contents of a store; sizes are in octets.

    `garbage` is the number of discarded parts of queues that are not deleted yet, `oldest_garbage` the owner of the
    part that is deleted next.
    """

    folder: str
    format: int
    file_bytes: int
    page_bytes: int
    pages: int
    free_pages: int
    vhosts: list[str]
    users: list[str]
    exchanges: int
    delayed_messages: int
    queues: list[QueueSummary]
    garbage: int
    oldest_garbage: str | None
    problems: list[str]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def summarize(environment: ReadOnlyEnvironment) -> Summary:
    """Return a summary of a store."""
    contents, states = Contents(environment), _states(environment)
    broker, survey = contents.broker, environment.survey
    queues, delayed, exchanges = [], 0, 0
    for vhost in broker.vhosts.values():
        for queue in vhost.queues.values():
            found = [states.get(range_id, (0, 0, 0, 0)) for range_id in queue.ranges]
            queues.append(
                QueueSummary(
                    vhost.name,
                    queue.name,
                    queue.type,
                    sum(state[2] for state in found),
                    sum(state[3] for state in found),
                )
            )
        exchanges += len(vhost.exchanges)
        delayed += sum(states.get(exchange.range_id or 0, (0, 0, 0, 0))[2] for exchange in vhost.exchanges.values())
    garbage, oldest = _garbage(environment)
    owner, _ = contents.ranges.get(oldest or 0, (f"range {oldest}, whose owner is deleted", None))
    return Summary(
        folder=str(environment.folder),
        format=FORMAT,
        file_bytes=(environment.folder / DATA_FILE).stat().st_size,
        page_bytes=survey.page_bytes,
        pages=survey.page_count,
        free_pages=survey.free_pages,
        vhosts=sorted(broker.vhosts),
        users=sorted(broker.users),
        exchanges=exchanges,
        delayed_messages=delayed,
        queues=sorted(queues, key=lambda queue: (queue.vhost, queue.name)),
        garbage=garbage,
        oldest_garbage=owner if garbage else None,
        problems=contents.problems,
    )


def _states(environment: ReadOnlyEnvironment) -> dict[int, tuple[int, int, int, int]]:
    """Return head, next, message count and body octets of each range."""
    with environment.lmdb.begin() as txn, txn.cursor(environment.tables["windows"]) as cursor:
        found = {}
        for key, sealed in cursor:
            # `store verify` reports what is damaged.
            with contextlib.suppress(DamagedRecord):
                found[int.from_bytes(key)] = STATE.unpack(unseal(key, sealed))
        return found


def _garbage(environment: ReadOnlyEnvironment) -> tuple[int, int | None]:
    """Return the number of parts to delete, and the range of the first."""
    with environment.lmdb.begin() as txn, txn.cursor(environment.tables["garbage"]) as cursor:
        count = txn.stat(environment.tables["garbage"])["entries"]
        return count, POSITION.unpack(cursor.key())[0] if cursor.first() else None
