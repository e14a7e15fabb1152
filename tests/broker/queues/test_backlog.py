"""Behaviour that all backlogs share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqp_broker.broker.durability.paged_buffer import PagedBuffer
from amqp_broker.broker.queues.arrival_backlog import ArrivalBacklog
from amqp_broker.broker.queues.backlog import Backlog
from amqp_broker.broker.queues.priority_backlog import PriorityBacklog
from amqp_broker.broker.queues.quorum_backlog import QuorumBacklog
from amqp_broker.broker.queues.return_counts import ReturnCounts
from amqp_broker.settings.profiles import PROFILES
from tests.broker_parts import new_message
from tests.memory_journal import MemoryJournal


def quorum(deadlines: dict[int, int]) -> QuorumBacklog:
    return QuorumBacklog(deadlines, ReturnCounts(counts_failures=False), PROFILES["4.2"], lambda *_: False)


KINDS = [ArrivalBacklog, lambda deadlines: PriorityBacklog(deadlines, 3), quorum]


@pytest.fixture
def deadlines() -> dict[int, int]:
    return {}


@pytest.fixture(params=KINDS, ids=["arrival", "priority", "quorum"])
def new_backlog(request: pytest.FixtureRequest) -> Callable[[dict[int, int]], Backlog]:
    kind: Callable[[dict[int, int]], Backlog] = request.param
    return kind


@pytest.fixture(params=[False, True], ids=["memory", "journal"])
def backlog(
    request: pytest.FixtureRequest, new_backlog: Callable[[dict[int, int]], Backlog], deadlines: dict[int, int]
) -> Backlog:
    made = new_backlog(deadlines)
    if request.param:
        journal = MemoryJournal()
        made.keep(journal, journal.new_ranges(made.range_count))
    return made


def add(backlog: Backlog, *bodies: bytes) -> list[int]:
    return [backlog.append(new_message(body, delivery_mode=2), None) for body in bodies]


def bodies(backlog: Backlog) -> list[bytes]:
    return [message.body for _, message, _ in backlog.items()]


def test_messages_of_equal_priority_leave_in_order_of_arrival(backlog: Backlog) -> None:
    positions = add(backlog, b"a", b"bb", b"ccc")
    assert (len(backlog), backlog.count_bytes(), backlog.head_position()) == (3, 6, positions[0])
    assert bodies(backlog) == [b"a", b"bb", b"ccc"]
    assert [backlog.pop_head()[1] for _ in range(3)] == positions
    assert not backlog


def test_a_returned_message_is_served_next_as_redelivered(backlog: Backlog) -> None:
    add(backlog, b"a", b"b")
    message, position, redelivered = backlog.pop_head()
    assert not redelivered
    assert backlog.put_back(position, message) == position
    assert backlog.head_position() == position
    assert backlog.count_bytes() == 2
    assert next((at, one.body, old) for at, one, old in backlog.items()) == (position, b"a", True)
    assert bodies(backlog) == [b"a", b"b"]
    assert backlog.pop_head()[:2] == (message, position)


def test_a_message_can_go_back_to_the_head(backlog: Backlog) -> None:
    add(backlog, b"a", b"b")
    message, position, _ = backlog.pop_head()
    backlog.return_to_head(position, message)
    assert bodies(backlog) == [b"a", b"b"]


def test_positions_continue_after_a_message_that_was_delivered_at_once(backlog: Backlog) -> None:
    first = backlog.deliver_through(new_message(b"a", delivery_mode=2), None)
    (second,) = add(backlog, b"b")
    assert second > first
    assert bodies(backlog) == [b"b"]


def test_clearing_forgets_deadlines_but_not_those_of_taken_messages(
    backlog: Backlog, deadlines: dict[int, int]
) -> None:
    positions = [backlog.append(new_message(delivery_mode=2), 1000 + number) for number in range(4)]
    _, taken, _ = backlog.pop_head()
    message, position, _ = backlog.pop_head()
    backlog.put_back(position, message)
    assert set(deadlines) == set(positions)
    backlog.clear()
    assert (len(backlog), set(deadlines)) == (0, {taken})


def test_all_messages_but_forgotten_ones_survive_a_restart(
    new_backlog: Callable[[dict[int, int]], Backlog], deadlines: dict[int, int]
) -> None:
    journal = MemoryJournal()
    backlog = new_backlog(deadlines)
    range_id = journal.new_ranges(backlog.range_count)
    backlog.keep(journal, range_id)
    assert len(backlog.buffers) == backlog.range_count
    positions = add(backlog, b"a", b"b", b"c")
    message, position, _ = backlog.pop_head()
    backlog.forget(position, message)
    backlog.pop_head()
    journal.commit()
    again = new_backlog({})
    again.keep(MemoryJournal(journal.disk), range_id)
    found = list(again.items())
    assert [at for at, _, _ in found] == positions[1:]
    assert add(again, b"d")[0] > positions[-1]


def test_a_transient_backlog_has_no_buffers_in_the_journal(
    new_backlog: Callable[[dict[int, int]], Backlog], deadlines: dict[int, int]
) -> None:
    backlog = new_backlog(deadlines)
    assert backlog.buffers == []
    (position,) = add(backlog, b"a")
    message, _, _ = backlog.pop_head()
    backlog.forget(position, message)
    assert not any(isinstance(buffer, PagedBuffer) for buffer in backlog.buffers)
