from __future__ import annotations

from pathlib import Path

from amqp_broker.store.environment import DATA_FILE, FORMAT, Environment, ReadOnlyEnvironment
from amqp_broker.store.info import QueueSummary, Summary, summarize
from amqp_broker.store.journal import LmdbJournal
from tests.broker_parts import new_broker, new_message, new_queue
from tests.store.stores import commit, fill


def summary_of(folder: Path) -> Summary:
    environment = ReadOnlyEnvironment(folder, is_alone=False, is_quick=True)
    try:
        return summarize(environment)
    finally:
        environment.close()


def test_a_store_tells_what_is_in_it(tmp_path: Path) -> None:
    fill(tmp_path, messages=30, body_bytes=10)
    summary = summary_of(tmp_path)
    persistent = [number for number in range(30) if number % 3 != 2]
    assert summary.queues == [
        QueueSummary("/", "emptied", "classic", 0, 0),
        QueueSummary("/", "plain", "classic", len(persistent), sum(persistent)),
        QueueSummary("/", "priority", "classic", len(persistent), sum(persistent)),
        QueueSummary("/", "quorum", "quorum", 30, sum(range(30))),
    ]
    assert (summary.vhosts, summary.users, summary.format) == (["/"], ["guest"], FORMAT)
    assert summary.file_bytes == (tmp_path / DATA_FILE).stat().st_size
    assert summary.file_bytes >= summary.pages * summary.page_bytes > 0
    assert 0 < summary.free_pages < summary.pages
    assert (summary.garbage, summary.oldest_garbage, summary.problems) == (0, None, [])


def test_the_summary_has_the_garbage(tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    journal = LmdbJournal(environment)
    vhost = new_broker(journal).vhosts["/"]
    queue = new_queue(vhost, "large", is_durable=True)
    for _ in range(3000):
        queue.push(new_message(b"", delivery_mode=2))
    commit(environment, journal)
    vhost.remove_queue(queue)
    commit(environment, journal)
    environment.close()
    summary = summary_of(tmp_path)
    assert (summary.garbage, summary.oldest_garbage) == (1, "range 1, whose owner is deleted")
