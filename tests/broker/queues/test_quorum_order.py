from __future__ import annotations

import pytest

from amqp_broker.broker.queues.memory_buffer import MemoryBuffer
from amqp_broker.broker.queues.quorum_order import LEVELS, Strict, TwoLevels, quorum_order
from tests.broker_parts import new_message


def lines_for(count: int = LEVELS) -> list[MemoryBuffer]:
    return [MemoryBuffer({}) for _ in range(count)]


def served(levels: int, *priorities: int | None) -> list[int]:
    """The positions of messages with these priorities, in the order in which they are served."""
    lines = lines_for()
    order = quorum_order(levels, lines)
    messages = [new_message() for _ in priorities]
    for position, priority in enumerate(priorities):
        lines[order.level(priority)].append(position, messages[position], None)
    listed = [messages.index(message) for _, message in order.items()]
    taken = []
    while any(lines):
        head = order.next().head_position()
        taken.append(order.next().pop_head()[0])
        order.count()
        assert head == taken[-1]
    assert listed == taken
    return taken


def test_with_one_level_priorities_have_no_effect() -> None:
    assert served(1, 0, 9, 5, None) == [0, 1, 2, 3]


def test_with_two_levels_two_high_messages_are_served_per_normal_one() -> None:
    """rabbit_fifo_q.erl (4.0 to 4.2)."""
    assert served(2, 0, 0, 0, 9, 9, 9, 9) == [3, 4, 0, 5, 6, 1, 2]


@pytest.mark.parametrize(("priority", "is_high"), [(None, False), (0, False), (4, False), (5, True), (255, True)])
def test_with_two_levels_high_priority_is_5_and_above(priority: int | None, is_high: bool) -> None:
    assert served(2, None, priority) == ([1, 0] if is_high else [0, 1])


def test_with_two_levels_a_high_message_is_not_overtaken_by_a_later_one() -> None:
    """rabbit_fifo_q.erl (next/1): high priority goes first where it came first."""
    assert served(2, 9, 9, 9, 0, 9) == [0, 1, 2, 4, 3]


def test_with_32_levels_higher_priorities_are_served_first() -> None:
    """rabbit_fifo_pq.erl (4.3)."""
    assert served(32, 0, 31, 5, 31, 6) == [1, 3, 4, 2, 0]


def test_with_32_levels_the_default_priority_is_4_and_the_maximum_31() -> None:
    """rabbit_fifo.erl (msg_priority/1, 4.3)."""
    assert served(32, 3, None, 4, 5) == [3, 1, 2, 0]
    assert served(32, 31, 255) == [0, 1]


def test_each_version_has_its_order() -> None:
    assert isinstance(quorum_order(1, lines_for()), TwoLevels)
    assert isinstance(quorum_order(2, lines_for()), TwoLevels)
    assert isinstance(quorum_order(32, lines_for()), Strict)


def test_messages_stored_by_another_version_on_other_levels_are_served() -> None:
    lines = lines_for()
    for position, level in enumerate((31, 0, 4, 5)):
        lines[level].append(position, new_message(), None)
    order = quorum_order(2, lines)
    taken = []
    while any(lines):
        taken.append(order.next().pop_head()[0])
        order.count()
    assert taken == [0, 3, 1, 2]
