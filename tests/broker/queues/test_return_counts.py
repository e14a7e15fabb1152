from __future__ import annotations

import pytest

from amqp_broker.broker.queues.return_counts import ReturnCounts
from tests.broker_parts import new_message


@pytest.mark.parametrize(("counts_failures", "limited"), [(False, [1, 2]), (True, [0, 1])])
def test_the_limit_applies_to_returns_or_to_failures(counts_failures: bool, limited: list[int]) -> None:
    counts = ReturnCounts(counts_failures=counts_failures)
    first = counts.note_return(7)
    counts.note_failure(7)
    assert [first, counts.note_return(7)] == limited
    assert counts.returns == {7: 2}
    assert counts.failures == ({7: 1} if counts_failures else {})


@pytest.mark.parametrize(
    ("counts_failures", "failed", "headers"),
    [
        (False, False, {"x-delivery-count": 1}),
        (True, False, {"x-acquired-count": 1}),
        (True, True, {"x-acquired-count": 1, "x-delivery-count": 1}),
    ],
)
def test_a_returned_message_has_its_counts_in_the_headers(
    counts_failures: bool, failed: bool, headers: dict[str, int]
) -> None:
    counts, message = ReturnCounts(counts_failures=counts_failures), new_message(b"x", headers={"a": 1})
    assert counts.with_headers(message, 7) is message
    if failed:
        counts.note_failure(7)
    counts.note_return(7)
    delivered = counts.with_headers(message, 7)
    assert delivered.properties().headers == {"a": 1, **headers}
    assert counts.original(7, delivered) is message
    assert counts.take_original(7, delivered) is message
    assert counts.take_original(7, delivered) is delivered


@pytest.mark.parametrize(
    ("returns", "failures", "found"),
    [(0, None, ({7: 1}, {})), (3, None, ({7: 3}, {7: 3})), (3, 1, ({7: 3}, {7: 1})), (3, 0, ({7: 3}, {}))],
)
def test_a_message_that_was_with_a_consumer_at_a_crash_counts_as_returned(
    returns: int, failures: int | None, found: tuple[dict[int, int], dict[int, int]]
) -> None:
    counts = ReturnCounts(counts_failures=True)
    counts.on_recovered(7, returns, failures)
    assert (counts.returns, counts.failures) == found


@pytest.mark.parametrize(("failed", "failures"), [(0, 0), (1, 1), (2, None)])
def test_the_journal_has_both_counts(failed: int, failures: int | None) -> None:
    counts, message = ReturnCounts(counts_failures=True), new_message(b"x")
    for number in range(2):
        if number < failed:
            counts.note_failure(7)
        counts.note_return(7)
    stored = counts.stored(7, message, 5, 9)
    assert (stored.message, stored.deadline_ms, stored.ready_at_ms, stored.death) == (message, 5, 9, None)
    assert (stored.returns, stored.failures) == (2, failures)


def test_counts_move_with_their_message_and_can_be_forgotten() -> None:
    counts = ReturnCounts(counts_failures=True)
    counts.note_failure(7)
    counts.note_return(7)
    counts.move(7, 9)
    assert (counts.returns, counts.failures) == ({9: 1}, {9: 1})
    counts.forget(9)
    assert (counts.returns, counts.failures) == ({}, {})
