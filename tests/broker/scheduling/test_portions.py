from __future__ import annotations

import weakref
from collections import deque
from itertools import count

import pytest

from amqp_broker.broker.scheduling.portions import Steps, Work, finished, popping


def counted(seen: list[int], number: int) -> Steps[str]:
    try:
        for step in range(number):
            seen.append(step)
            yield
    finally:
        seen.append(-1)
    return "done"


def test_steps_can_run_at_once() -> None:
    seen: list[int] = []
    assert finished(counted(seen, 3)) == "done"
    assert seen == [0, 1, 2, -1]


def test_a_portion_ends_when_its_budget_is_used_up() -> None:
    seen: list[int] = []
    clock = count()
    work = Work(counted(seen, 12), lambda: next(clock), 5)
    assert not work.run_portion()
    assert seen == [0, 1, 2, 3, 4]
    assert not work.run_portion()
    assert seen == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert work.run_portion()
    assert work.result == "done"


def test_a_portion_has_one_step_at_least() -> None:
    seen: list[int] = []
    clock = count(step=100)
    work = Work(counted(seen, 12), lambda: next(clock), 5)
    assert not work.run_portion()
    assert seen == [0]


def test_closed_work_cleans_up() -> None:
    seen: list[int] = []
    work = Work(counted(seen, 3), lambda: 0, 0)
    work.run_portion()
    work.close()
    assert seen == [0, -1]


@pytest.mark.interpreted  # Compiled objects do not clear weak references.
def test_an_item_that_was_taken_out_is_freed_in_its_turn() -> None:
    class Item:
        pass

    items = deque(Item() for _ in range(3))
    seen = [weakref.ref(item) for item in items]
    freed = []
    for item in popping(items):
        del item
        freed.append([reference() is None for reference in seen])
    assert freed == [[True, False, False], [True, True, False], [True, True, True]]
