from __future__ import annotations

from collections import Counter

import pytest

from amqp_broker.demo.ledger import ACKED, NACKED, RETURNED, UNANSWERED, Ledger
from amqp_broker.demo.proof import BREACHES_MAX, Proof, prove
from amqp_broker.demo.strategies import STRATEGIES


def proof_of(name: str, outcomes: dict[int, list[str]], queued: list[tuple[int, int]]) -> Proof:
    """Return the proof for attempts with these outcomes and these (number, attempt) in the queue."""
    ledger = Ledger()
    for number, ends in outcomes.items():
        for end in ends:
            ledger.answered(number, ledger.sent(number, 0), end, 1)
    return prove(STRATEGIES[name], len(outcomes), ledger, Counter(queued))


def test_a_confirmed_message_is_in_the_queue_once() -> None:
    proof = proof_of("async", {1: [ACKED], 2: [NACKED, RETURNED, ACKED]}, [(1, 1), (2, 3)])
    assert proof.is_held
    assert (proof.sent, proof.confirmed, proof.queued, proof.duplicates, proof.lost) == (4, 2, 2, 0, {})


@pytest.mark.parametrize("is_there", [True, False])
def test_an_unanswered_message_may_be_in_the_queue(is_there: bool) -> None:
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
def test_contradictions_break_the_promise_of_every_strategy(
    name: str, outcome: str, queued: list[tuple[int, int]]
) -> None:
    proof = proof_of(name, {1: [outcome]}, queued)
    assert not proof.is_held
    assert "message" in proof.breaches[0]


def test_at_least_once_requires_all_confirms() -> None:
    proof = proof_of("sync", {1: [ACKED], 2: [UNANSWERED]}, [(1, 1), (2, 1)])
    assert proof.breaches == ("1 of 2 messages were never confirmed",)


def test_unpublished_messages_are_missing() -> None:
    proof = prove(STRATEGIES["sync"], 3, Ledger(), {})
    assert proof.breaches == ("3 of 3 messages were never confirmed",)


def test_losses_of_naive_have_reasons_and_are_no_breach() -> None:
    outcomes = {1: [ACKED], 2: [NACKED], 3: [RETURNED], 4: [UNANSWERED], 5: [UNANSWERED]}
    proof = proof_of("naive", outcomes, [(1, 1), (5, 1)])
    assert proof.is_held
    assert proof.lost == {
        "nacked": 1,
        "returned as unroutable": 1,
        "unanswered when the channel or the connection ended": 1,
    }
    assert proof.as_dict()["is_held"] is True


def test_the_number_of_breaches_is_limited() -> None:
    proof = proof_of("async", {number: [ACKED] for number in range(1, 100)}, [])
    assert len(proof.breaches) == BREACHES_MAX
