from __future__ import annotations

import pytest

from amqp_broker.broker.clients.awaiting_login import CLOSED_MAX, SILENCE_MS_MAX, AwaitingLogin


class Clients:
    """Clients of whom at most two may wait; `closed` has the numbers of those that were closed."""

    def __init__(self) -> None:
        self.waiting = AwaitingLogin(2)
        self.closed: list[int] = []

    def arrive(self, number: int, now: int) -> None:
        self.waiting.add(number, now, lambda: self.closed.append(number))


@pytest.fixture
def clients() -> Clients:
    return Clients()


def test_those_that_have_been_silent_for_longest_are_closed_for_a_new_one(clients: Clients) -> None:
    for number in range(3):
        clients.arrive(number, number)
    assert clients.closed == [], "they arrived at the same moment"
    clients.waiting.note_sign(0, 5)
    clients.arrive(3, 2 + SILENCE_MS_MAX)
    assert clients.closed == [1, 2]
    assert len(clients.waiting) == 2


def test_few_are_closed_at_once(clients: Clients) -> None:
    for number in range(100):
        clients.arrive(number, 0)
    clients.arrive(100, SILENCE_MS_MAX)
    assert len(clients.closed) == CLOSED_MAX


def test_one_that_has_logged_in_or_left_does_not_count(clients: Clients) -> None:
    for number in range(4):
        clients.arrive(number, number * SILENCE_MS_MAX)
        clients.waiting.remove(number)
    clients.waiting.remove(0)
    clients.waiting.note_sign(0, 0)
    assert clients.closed == []
    assert len(clients.waiting) == 0
