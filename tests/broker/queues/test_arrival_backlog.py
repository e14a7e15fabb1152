from __future__ import annotations

import pytest

from amqp_broker.broker.durability.paged_buffer import PAGE_BYTES
from amqp_broker.broker.queues.arrival_backlog import ArrivalBacklog
from tests.broker_parts import new_message
from tests.memory_journal import MemoryJournal


def bodies(backlog: ArrivalBacklog) -> list[bytes]:
    return [message.body for _, message, _ in backlog.items()]


def filled(*names: bytes) -> ArrivalBacklog:
    backlog = ArrivalBacklog({})
    for name in names:
        backlog.append(new_message(name), None)
    return backlog


def test_returned_messages_take_their_former_places() -> None:
    backlog = filled(b"a", b"b", b"c", b"d")
    taken = [backlog.pop_head() for _ in range(3)]
    for message, position, _ in (taken[2], taken[0]):
        backlog.put_back(position, message)
    assert bodies(backlog) == [b"a", b"c", b"d"]
    assert [backlog.pop_head()[1:] for _ in range(3)] == [(0, True), (2, True), (3, False)]


def test_a_short_backlog_is_not_paged() -> None:
    backlog = filled(b"a")
    assert not backlog.page(MemoryJournal())
    assert backlog.end_paging()


def test_messages_that_arrive_while_paging_follow_those_in_memory() -> None:
    backlog, journal = filled(bytes(PAGE_BYTES)), MemoryJournal()
    assert backlog.page(journal)
    assert not backlog.page(journal), "it has begun already"
    backlog.append(new_message(b"paged"), None)
    assert not backlog.end_paging()
    assert [backlog.pop_head()[1] for _ in range(2)] == [0, 1]
    assert backlog.end_paging()
    assert backlog.append(new_message(), None) == 2


@pytest.mark.parametrize("there", [0, 100], ids=["many", "few beside those that are there"])
def test_messages_that_are_returned_together_take_their_former_places(there: int) -> None:
    backlog = filled(*(b"%d" % number for number in range(103)))
    taken = [(position, message) for message, position, _ in (backlog.pop_head() for _ in range(102))]
    backlog.put_back_all(list(reversed(taken[:there])))
    backlog.put_back_all(taken[there:])
    assert bodies(backlog) == [b"%d" % number for number in range(103)]
    assert [backlog.pop_head()[1] for _ in range(103)] == list(range(103))
