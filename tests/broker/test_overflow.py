"""Transient queues that go on in the journal while memory is short."""

from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.broker import window as window_module
from amqp_broker.broker.queue import Queue
from tests.memory_journal import MemoryJournal
from tests.taker import Taker, new_message, new_queue, new_vhost, pulled, push

COUNT = 1500


def bodies(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()


@pytest.fixture
def queue(journal: MemoryJournal) -> Queue:
    """With 1500 messages in memory and 100 behind them in the journal."""
    queue = new_queue(new_vhost(journal))
    push(queue, *bodies(0, COUNT))
    queue.vhost.broker.page(True)
    push(queue, *bodies(COUNT, COUNT + 100))
    return queue


def test_what_comes_when_memory_is_short_is_in_the_journal_only(journal: MemoryJournal, queue: Queue) -> None:
    journal.commit()
    assert len(queue.ready) == COUNT
    assert queue.window is not None
    assert (len(queue.window), len(queue.window.memory)) == (100, 0)
    assert [stored.message.body for stored in journal.disk.messages.values()] == bodies(COUNT, COUNT + 100)
    assert queue.ready_count == COUNT + 100


@pytest.mark.parametrize("is_committed", [True, False])
def test_everything_comes_back_in_order_at_dense_positions(
    journal: MemoryJournal, queue: Queue, is_committed: bool
) -> None:
    if is_committed:
        journal.commit()
    assert [message.body for message in queue.messages()] == bodies(0, COUNT + 100)
    assert pulled(queue) == [(b"%d" % number, number, False) for number in range(COUNT + 100)]
    assert journal.positions == []


def test_a_consumer_gets_what_comes_after_at_once(journal: MemoryJournal, queue: Queue) -> None:
    taker = Taker(queue).start()
    while queue.vhost.broker.drain_on():
        pass
    queue.push(new_message(b"last"))
    assert taker.bodies == [*bodies(0, COUNT + 100), b"last"]
    assert [delivery.position for delivery in taker.taken] == list(range(COUNT + 101))


def test_what_comes_back_goes_to_its_place(queue: Queue) -> None:
    taker = Taker(queue, prefetch=COUNT + 10).start()
    while queue.vhost.broker.drain_on():
        pass
    taker.stop()
    taker.give_back(0, COUNT + 5)
    assert [body for body, *_ in pulled(queue)] == [b"0", b"%d" % (COUNT + 5), *bodies(COUNT + 10, COUNT + 100)]


@pytest.mark.parametrize("mode", [1, 2])
def test_nobody_finds_it_after_a_restart(journal: MemoryJournal, queue: Queue, mode: int) -> None:
    queue.push(new_message(b"x", delivery_mode=mode))
    journal.commit()
    (window,) = queue.windows
    assert window.state[2:] == (0, 0)
    assert not list(journal.definitions_of("queue"))


def test_a_queue_that_has_run_empty_is_in_memory_again_when_there_is_enough(
    journal: MemoryJournal, queue: Queue
) -> None:
    broker = queue.vhost.broker
    broker.page(False)
    assert queue.window is not None
    pulled(queue)
    broker.page(True)
    assert queue.window is not None
    broker.page(False)
    assert queue.window is None
    assert not queue.has_extras
    queue.push(new_message(b"x"))
    assert pulled(queue) == [(b"x", COUNT + 100, False)]
    journal.commit()
    assert journal.disk.messages == journal.disk.states == {}


def test_a_queue_to_which_nothing_came_meanwhile_is_in_memory_again(journal: MemoryJournal) -> None:
    queue = new_queue(new_vhost(journal))
    push(queue, *bodies(0, COUNT))
    queue.vhost.broker.page(True)
    queue.vhost.broker.page(False)
    assert queue.window is None
    push(queue, b"x")
    assert pulled(queue)[-1] == (b"x", COUNT, False)


@pytest.mark.parametrize("verb", ["purge", "delete"])
def test_what_is_purged_or_deleted_leaves_nothing(journal: MemoryJournal, queue: Queue, verb: str) -> None:
    journal.commit()
    if verb == "purge":
        assert queue.purge() == COUNT + 100
        assert queue.ready_count == 0
        queue.vhost.broker.page(False)
    else:
        queue.vhost.remove_queue(queue)
        queue.vhost.broker.page(False)
    journal.commit()
    assert journal.disk.messages == journal.disk.states == {}


def test_what_expires_in_the_journal_is_not_delivered(journal: MemoryJournal) -> None:
    queue = new_queue(new_vhost(journal), arguments_={"x-message-ttl": 1000})
    push(queue, *bodies(0, COUNT))
    broker = queue.vhost.broker
    broker.page(True)
    push(queue, *bodies(COUNT, COUNT + 100))
    journal.commit()
    broker.tick(broker.now + 500)
    push(queue, b"young")
    broker.tick(broker.now + 500)
    assert [body for body, *_ in pulled(queue)] == [b"young"]


def test_limits_to_the_length_count_both(journal: MemoryJournal, queue: Queue) -> None:
    limited = new_queue(queue.vhost, "limited", arguments_={"x-max-length": 1600})
    push(limited, *bodies(0, COUNT))
    queue.vhost.broker.page(True)
    push(limited, *bodies(COUNT, COUNT + 300))
    assert [body for body, *_ in pulled(limited)] == bodies(200, COUNT + 300)


@pytest.mark.parametrize(
    ("attributes", "count"),
    [({}, 10), ({"is_durable": True}, COUNT), ({"arguments_": {"x-max-priority": 3}}, COUNT)],
    ids=["short", "durable", "priority"],
)
def test_other_queues_stay_as_they_are(journal: MemoryJournal, attributes: dict[str, Any], count: int) -> None:
    queue = new_queue(new_vhost(journal), **attributes)
    window = queue.window
    push(queue, *bodies(0, count))
    queue.vhost.broker.page(True)
    assert queue.window is window
    assert [body for body, *_ in pulled(queue)] == bodies(0, count)


def test_without_a_journal_there_is_nothing_to_page_to() -> None:
    queue = new_queue()
    push(queue, *bodies(0, COUNT))
    queue.vhost.broker.page(True)
    assert queue.window is None


@pytest.mark.parametrize("first", [0, 60])
def test_what_expired_in_the_journal_is_not_delivered(
    journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """Be it the first of what is there, or the first of a portion that is read later: here each is one."""
    monkeypatch.setattr(window_module, "PORTION_BYTES", 1)
    queue = new_queue(new_vhost(journal))
    push(queue, *bodies(0, COUNT))
    queue.vhost.broker.page(True)
    for number in range(100):
        queue.push_with_extras(new_message(b"x"), None if number < first else 100)
    journal.commit()
    taker = Taker(queue, prefetch=COUNT - 10).start()
    queue.vhost.broker.tick(200)
    while taker.held:
        taker.ack()
    assert len(taker.taken) == COUNT + first
    assert queue.ready_count == 0
