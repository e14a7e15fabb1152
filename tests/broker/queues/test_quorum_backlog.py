from __future__ import annotations

from amqp_broker.amqp.message import Message
from amqp_broker.broker.queues.quorum_backlog import QuorumBacklog
from amqp_broker.broker.queues.quorum_order import LEVELS, PRIORITY_DEFAULT
from amqp_broker.broker.queues.return_counts import ReturnCounts
from amqp_broker.settings.profiles import PROFILES
from tests.broker_parts import new_message
from tests.memory_journal import MemoryJournal


def filled(counts: ReturnCounts, *names: bytes) -> QuorumBacklog:
    backlog = QuorumBacklog({}, counts, PROFILES["4.2"], lambda *_: False)
    for name in names:
        backlog.append(new_message(name, priority=9), None)
    return backlog


def pop(backlog: QuorumBacklog) -> tuple[int, Message]:
    message, position, _ = backlog.pop_head()
    return position, message


def test_returned_messages_leave_first_in_the_order_in_which_they_were_returned() -> None:
    counts = ReturnCounts(counts_failures=False)
    backlog = filled(counts, b"a", b"b", b"c")
    first, second = pop(backlog), pop(backlog)
    for position, message in (second, first):
        counts.note_return(position)
        backlog.put_back(position, message)
    assert [(message.body, old) for message, _, old in [backlog.pop_head() for _ in range(3)]] == [
        (b"b", True),
        (b"a", True),
        (b"c", False),
    ]


def test_a_message_returned_to_the_tail_goes_behind_all_others_and_loses_its_priority() -> None:
    counts, journal = ReturnCounts(counts_failures=True), MemoryJournal()
    backlog = filled(counts)
    backlog.keep(journal, journal.new_ranges(LEVELS))
    for name in (b"a", b"b"):
        backlog.append(new_message(name, priority=9), 1000)
    position, message = pop(backlog)
    counts.note_failure(position)
    counts.note_return(position)
    moved = backlog.put_at_tail(position, message)
    assert moved % LEVELS == PRIORITY_DEFAULT
    assert (counts.returns, counts.failures) == ({moved: 1}, {moved: 1})
    assert [message.body for _, message, _ in backlog.items()] == [b"b", b"a"]
    journal.commit()
    stored = {at: one for (_, at), one in journal.disk.messages.items()}
    assert (stored[moved].returns, stored[moved].deadline_ms) == (1, 1000)
    assert position not in stored


def test_messages_of_a_snapshot_are_returned_in_order_of_arrival() -> None:
    counts = ReturnCounts(counts_failures=False)
    backlog = filled(counts)
    positions = [backlog.append_at(level, new_message(b"%d" % level), None) for level in (9, 0, 9)]
    taken = dict(pop(backlog) for _ in positions)
    backlog.put_back_all(taken)
    assert [position for position, _, _ in backlog.items()] == positions


def test_clearing_forgets_the_counts_of_ready_messages_only() -> None:
    counts = ReturnCounts(counts_failures=False)
    backlog = filled(counts, b"a", b"b", b"c")
    (taken, _), (position, message) = pop(backlog), pop(backlog)
    for one in (taken, position):
        counts.note_return(one)
    backlog.put_back(position, message)
    backlog.clear()
    assert counts.returns == {taken: 1}
