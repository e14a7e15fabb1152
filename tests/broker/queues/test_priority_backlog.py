from __future__ import annotations

from amqp_broker.broker.queues.priority_backlog import PriorityBacklog
from tests.broker_parts import new_message
from tests.memory_journal import MemoryJournal


def filled(*priorities: int | None) -> PriorityBacklog:
    backlog = PriorityBacklog({}, 3)
    for priority in priorities:
        backlog.append(new_message(b"%d" % (priority or 0), priority=priority), None)
    return backlog


def test_higher_priorities_leave_first_and_those_beyond_the_maximum_count_as_the_maximum() -> None:
    backlog = filled(0, 2, 9, 1, None, 3)
    assert [message.body for _, message, _ in backlog.items()] == [b"9", b"3", b"2", b"1", b"0", b"0"]
    assert [backlog.pop_head()[0].body for _ in range(6)] == [b"9", b"3", b"2", b"1", b"0", b"0"]


def test_a_returned_message_waits_for_those_of_higher_priority() -> None:
    backlog = filled(1)
    message, position, _ = backlog.pop_head()
    backlog.append(new_message(b"2", priority=2), None)
    backlog.append(new_message(b"1", priority=1), None)
    backlog.put_back(position, message)
    assert [redelivered for _, _, redelivered in backlog.items()] == [False, True, False]
    assert [backlog.pop_head()[2] for _ in range(3)] == [False, True, False]


def test_after_a_restart_messages_that_were_delivered_before_are_shown_so() -> None:
    journal = MemoryJournal()
    backlog = PriorityBacklog({}, 3)
    backlog.keep(journal, journal.new_ranges(4))
    for body in (b"1", b"2"):
        backlog.append(new_message(body, delivery_mode=2), None)
    backlog.pop_head()
    journal.commit()
    after_crash = PriorityBacklog({}, 3)
    after_crash.keep(MemoryJournal(journal.disk), 1)
    assert [redelivered for _, _, redelivered in after_crash.items()] == [True, False]
    assert [after_crash.pop_head()[2] for _ in range(2)] == [True, False]


def test_the_remainder_of_a_position_encodes_the_priority() -> None:
    backlog = filled(3, 0, 2)
    assert [backlog.pop_head()[1] % backlog.range_count for _ in range(3)] == [3, 2, 0]
