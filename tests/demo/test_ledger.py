from __future__ import annotations

import pytest

from amqp_broker.demo.ledger import (
    ACKED,
    CONFIRMED,
    IN_FLIGHT,
    LOST,
    NACKED,
    NOT_SENT,
    RETRIED,
    RETURNED,
    UNANSWERED,
    WAITING,
    Ledger,
)


def ledger_of(*latencies_ms: float) -> Ledger:
    ledger = Ledger()
    for number, latency_ms in enumerate(latencies_ms, 1):
        ledger.sent(number, 100)
        ledger.answered(number, 1, ACKED, 100 + latency_ms)
    return ledger


def test_attempts_of_a_message_are_counted_from_one() -> None:
    ledger = Ledger()
    assert [ledger.sent(number, 0) for number in (1, 2, 1, 1)] == [1, 1, 2, 3]
    assert ledger.sent_count == 4


def test_an_ack_confirms_the_message_and_has_a_latency() -> None:
    ledger = ledger_of(7)
    assert ledger.confirmed == {1}
    assert ledger.latency_ms(0.5) == 7


def test_a_nack_confirms_nothing() -> None:
    ledger = Ledger()
    ledger.sent(1, 0)
    ledger.answered(1, 1, NACKED, 5)
    assert (ledger.confirmed, ledger.latency_ms(0.5)) == (set(), None)


def test_the_ack_of_a_returned_message_does_not_confirm_it() -> None:
    ledger = Ledger()
    ledger.sent(1, 0)
    ledger.answered(1, 1, RETURNED, 5)
    ledger.answered(1, 1, ACKED, 6)
    assert ledger.confirmed == set()
    assert ledger.attempts[1][0].outcome == RETURNED


def test_outcomes_are_counted_as_they_change() -> None:
    ledger = Ledger()
    for number in (1, 2, 3):
        ledger.sent(number, 0)
    ledger.answered(1, 1, ACKED, 1)
    ledger.answered(2, 1, NACKED, 1)
    assert (ledger.outcomes[ACKED], ledger.outcomes[NACKED], ledger.outcomes[WAITING]) == (1, 1, 1)


@pytest.mark.parametrize(
    ("share", "latency_ms"), [(0.0, 1), (0.5, 50), (0.501, 51), (0.99, 99), (0.991, 100), (1.0, 100)]
)
def test_latencies_are_nearest_ranks(share: float, latency_ms: float) -> None:
    ledger = ledger_of(*(float(latency) for latency in reversed(range(1, 101))))
    assert ledger.latency_ms(share) == latency_ms


def test_one_ack_has_every_percentile() -> None:
    assert [ledger_of(3).latency_ms(share) for share in (0.0, 0.5, 0.99, 1.0)] == [3, 3, 3, 3]


def test_each_message_has_a_state() -> None:
    ledger = Ledger()
    for number in (1, 2, 3, 4):
        ledger.sent(number, 0)
    ledger.answered(1, 1, ACKED, 1)
    ledger.answered(2, 1, NACKED, 1)
    ledger.answered(3, 1, UNANSWERED, 1)
    ledger.sent(3, 2)
    ledger.answered(3, 2, ACKED, 3)
    assert ledger.states(6, 10) == "".join([CONFIRMED, LOST, RETRIED, IN_FLIGHT, NOT_SENT, NOT_SENT])
    ledger.sent(2, 4)
    assert ledger.states(6, 3) == "".join([IN_FLIGHT, IN_FLIGHT, NOT_SENT])
