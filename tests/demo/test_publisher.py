from __future__ import annotations

import pytest

from amqp_broker.demo.ledger import ACKED, UNANSWERED
from amqp_broker.demo.publisher import Publisher
from amqp_broker.demo.strategies import STRATEGIES

RESENDING = ["sync", "window", "async"]


def publisher(name: str, messages: int = 10, window: int = 4) -> Publisher:
    return Publisher(STRATEGIES[name], messages, window, patience_ms=500)


def published(one: Publisher, now_ms: float = 0) -> list[tuple[int, int]]:
    """All that it publishes now."""
    found = []
    while (given := one.next(now_ms)) is not None:
        found.append(given)
    return found


@pytest.mark.parametrize(("name", "count"), [("sync", 1), ("window", 4), ("async", 4), ("naive", 10)])
def test_each_strategy_publishes_its_window(name: str, count: int) -> None:
    assert published(publisher(name)) == [(number, 1) for number in range(1, count + 1)]


def test_async_publishes_one_message_per_confirm() -> None:
    one = publisher("async")
    published(one)
    one.acked(2, multiple=False, now_ms=1)
    assert published(one) == [(5, 1)]


def test_window_waits_for_all_of_its_confirms() -> None:
    one = publisher("window")
    published(one)
    one.acked(3, multiple=True, now_ms=1)
    assert published(one) == []
    one.acked(4, multiple=False, now_ms=1)
    assert published(one) == [(5, 1), (6, 1), (7, 1), (8, 1)]


def test_a_multiple_ack_confirms_all_earlier_messages() -> None:
    one = publisher("async")
    published(one)
    one.acked(3, multiple=True, now_ms=1)
    assert one.ledger.confirmed == {1, 2, 3}
    assert one.waited_for_count == 1


@pytest.mark.parametrize("name", RESENDING)
def test_a_nacked_message_is_published_again(name: str) -> None:
    one = publisher(name, messages=1)
    published(one)
    one.nacked(1, multiple=False, now_ms=1)
    assert published(one) == [(1, 2)]
    assert one.retried == {"nacked": 1}
    one.acked(2, multiple=False, now_ms=2)
    assert one.is_done


@pytest.mark.parametrize("name", RESENDING)
def test_a_returned_message_is_published_again(name: str) -> None:
    one = publisher(name, messages=1)
    published(one)
    one.returned(1, 1, now_ms=1)
    assert published(one) == []
    one.acked(1, multiple=False, now_ms=1)
    assert published(one) == [(1, 2)]
    assert one.retried == {"returned": 1}


@pytest.mark.parametrize("name", RESENDING)
def test_an_unanswered_message_is_published_again(name: str) -> None:
    one = publisher(name, messages=1)
    published(one)
    one.give_up_late(499)
    assert published(one) == []
    one.give_up_late(500)
    assert published(one, 500) == [(1, 2)]
    one.give_up_late(999)
    assert one.retried == {"no answer in time": 1}


def test_a_late_answer_counts() -> None:
    one = publisher("async", messages=2)
    published(one)
    one.give_up_late(500)
    one.acked(2, multiple=True, now_ms=750)
    assert published(one) == []
    assert one.is_done
    assert not one.retried
    assert [attempts[0].outcome for attempts in one.ledger.attempts.values()] == [ACKED, ACKED]


@pytest.mark.parametrize("name", RESENDING)
def test_messages_in_flight_on_a_lost_connection_are_published_again(name: str) -> None:
    one = publisher(name)
    before = published(one)
    one.disconnected(1, "connection lost")
    assert published(one) == [(number, 2) for number, _ in before]
    assert one.retried == {"connection lost": len(before)}
    assert one.ledger.outcomes[UNANSWERED] == len(before)
    # Tags count from 1 again on the next channel.
    one.acked(len(before), multiple=True, now_ms=2)
    assert one.ledger.confirmed == {number for number, _ in before}


def test_a_blocked_publisher_neither_publishes_nor_times_out() -> None:
    one = publisher("async", messages=6)
    published(one)
    one.blocked()
    one.acked(1, multiple=False, now_ms=1)
    one.give_up_late(10_000)
    assert published(one) == []
    one.unblocked(10_000)
    one.give_up_late(10_400)
    assert published(one) == [(5, 1)]
    assert not one.retried


def test_naive_publishes_each_message_once() -> None:
    one = publisher("naive", messages=3)
    assert published(one) == [(1, 1), (2, 1), (3, 1)]
    one.blocked()
    one.nacked(1, multiple=False, now_ms=1)
    one.give_up_late(10_000)
    one.disconnected(1, "connection lost")
    assert published(one) == []
    assert one.is_done
    assert not one.retried


def test_an_answer_to_an_unknown_tag_is_ignored() -> None:
    one = publisher("async")
    published(one)
    one.acked(99, multiple=False, now_ms=1)
    assert one.waited_for_count == 4


@pytest.mark.parametrize("name", RESENDING)
def test_a_window_is_never_exceeded(name: str) -> None:
    one = publisher(name, messages=50)
    for step in range(2000):
        now_ms = step * 100.0
        one.next(now_ms)
        assert one.waited_for_count <= one.window
        assert one.waited_for_count == sum(not flight.is_given_up for flight in one.in_flight.values())
        one.give_up_late(now_ms)
        if step % 7 == 0 and one.in_flight:
            one.acked(max(one.in_flight), multiple=step % 2 == 0, now_ms=now_ms)
        if step % 31 == 0:
            one.disconnected(now_ms, "connection lost")
    assert one.is_done
