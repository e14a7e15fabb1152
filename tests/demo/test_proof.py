from __future__ import annotations

from collections import Counter

import pytest

from amqp_broker.demo.ledger import ACKED, NACKED, RETURNED, UNANSWERED, Ledger
from amqp_broker.demo.proof import BREACHES_MAX, Proof, prove
from amqp_broker.demo.strategies import STRATEGIES


def proof_of(name: str, outcomes: dict[int, list[str]], queued: list[tuple[int, int]]) -> Proof:
    """What comes out for attempts that ended so, with these (number, attempt) in the queue."""
    ledger = Ledger()
    for number, ends in outcomes.items():
        for end in ends:
            ledger.answered(number, ledger.sent(number, 0), end, 1)
    return prove(STRATEGIES[name], len(outcomes), ledger, Counter(queued))


def test_a_message_that_is_there_once_for_its_confirm_is_as_promised() -> None:
    proof = proof_of("async", {1: [ACKED], 2: [NACKED, RETURNED, ACKED]}, [(1, 1), (2, 3)])
    assert proof.is_held
    assert (proof.sent, proof.confirmed, proof.queued, proof.duplicates, proof.lost) == (4, 2, 2, 0, {})


@pytest.mark.parametrize("is_there", [True, False])
def test_nobody_knows_of_what_was_not_answered(is_there: bool) -> None:
    proof = proof_of("async", {1: [UNANSWERED, ACKED]}, [(1, 2), *[(1, 1)] * is_there])
    assert proof.is_held
    assert (proof.distinct, proof.duplicates) == (1, int(is_there))


@pytest.mark.parametrize("name", list(STRATEGIES))
@pytest.mark.parametrize(
    ("outcome", "queued"),
    [
        (ACKED, []),
        (ACKED, [(1, 1), (1, 1)]),
        (NACKED, [(1, 1)]),
        (RETURNED, [(1, 1)]),
        (UNANSWERED, [(1, 1), (1, 1)]),
        (ACKED, [(1, 1), (2, 1)]),
        (ACKED, [(1, 1), (1, 2)]),
    ],
)
def test_what_cannot_be_breaks_the_promise_of_every_strategy(
    name: str, outcome: str, queued: list[tuple[int, int]]
) -> None:
    proof = proof_of(name, {1: [outcome]}, queued)
    assert not proof.is_held
    assert "message" in proof.breaches[0]


def test_who_promises_at_least_once_must_have_all_confirmed() -> None:
    proof = proof_of("sync", {1: [ACKED], 2: [UNANSWERED]}, [(1, 1), (2, 1)])
    assert proof.breaches == ("1 of 2 messages were never confirmed",)


def test_messages_that_were_never_published_are_missing() -> None:
    proof = prove(STRATEGIES["sync"], 3, Ledger(), {})
    assert proof.breaches == ("3 of 3 messages were never confirmed",)


def test_what_naive_loses_is_told_with_its_reason_and_no_breach() -> None:
    outcomes = {1: [ACKED], 2: [NACKED], 3: [RETURNED], 4: [UNANSWERED], 5: [UNANSWERED]}
    proof = proof_of("naive", outcomes, [(1, 1), (5, 1)])
    assert proof.is_held
    assert proof.lost == {"nacked": 1, "returned as unroutable": 1, "on its way when the connection broke": 1}
    assert proof.as_dict()["is_held"] is True


def test_no_more_breaches_are_told_than_anybody_reads() -> None:
    proof = proof_of("async", {number: [ACKED] for number in range(1, 100)}, [])
    assert len(proof.breaches) == BREACHES_MAX
