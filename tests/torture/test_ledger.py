"""The ledger finds broken promises, and nothing else."""

from __future__ import annotations

import pytest

from tests.torture.ledger import Ledger, Number

ONE, TWO = Number("p", 1), Number("p", 2)


@pytest.fixture
def ledger() -> Ledger:
    """Return a ledger with two messages confirmed for the queue q in run 1."""
    ledger = Ledger()
    ledger.confirm(1, ledger.mark(1), [ONE, TWO], ("q",))
    return ledger


def publish_more(ledger: Ledger, run: int) -> None:
    """Commit all earlier deliveries."""
    ledger.confirm(run, ledger.mark(run), [], ())


def test_confirmed_messages_may_remain(ledger: Ledger) -> None:
    ledger.check_end({"q": [(ONE, False), (TWO, False)]}, {})
    assert ledger.errors == []


def test_a_lost_message_is_found(ledger: Ledger) -> None:
    ledger.check_end({"q": [(TWO, False)]}, {})
    assert ledger.errors == ["q: p:1 was confirmed and is lost"]


def test_an_acked_or_dead_message_is_not_lost(ledger: Ledger) -> None:
    ledger.deliver(1, "q", ONE, False)
    ledger.ack("q", ONE)
    ledger.check_end({"q": []}, {TWO: ["q"]})
    assert ledger.errors == []


def test_an_ack_may_be_lost_until_a_later_publish_is_confirmed(ledger: Ledger) -> None:
    ledger.deliver(1, "q", ONE, False)
    ledger.ack("q", ONE)
    ledger.deliver(2, "q", ONE, True)
    assert ledger.errors == []
    ledger.surely_settled("q", [ONE])
    ledger.deliver(3, "q", ONE, True)
    assert ledger.errors == ["q: p:1 came back though it was settled"]


def test_a_redelivery_in_the_same_run_must_be_marked(ledger: Ledger) -> None:
    ledger.deliver(1, "q", ONE, False)
    ledger.deliver(1, "q", ONE, False)
    assert ledger.errors == ["q: p:1 came again and does not say so"]


def test_a_redelivery_in_another_run_must_be_marked_once_committed(ledger: Ledger) -> None:
    ledger.deliver(1, "q", ONE, False)
    ledger.deliver(2, "q", ONE, False)
    assert ledger.errors == []
    publish_more(ledger, 2)
    ledger.deliver(3, "q", ONE, False)
    assert ledger.errors == ["q: p:1 came again and does not say so"]


def test_a_confirm_says_nothing_about_another_run(ledger: Ledger) -> None:
    ledger.deliver(1, "q", ONE, False)
    publish_more(ledger, 2)
    ledger.deliver(3, "q", ONE, False)
    assert ledger.errors == []


def test_a_wrong_order_is_found(ledger: Ledger) -> None:
    ledger.deliver(1, "q", TWO, False)
    ledger.deliver(1, "q", ONE, False)
    assert ledger.errors == ["q: p:1 came after 2"]


def test_redeliveries_and_other_priorities_are_exempt_from_the_order(ledger: Ledger) -> None:
    ledger.deliver(1, "q", TWO, False, priority=2)
    ledger.deliver(1, "q", ONE, False, priority=1)
    ledger.deliver(2, "q", TWO, True)
    ledger.deliver(2, "q", ONE, True)
    assert ledger.errors == []


def test_a_message_twice_in_a_queue_is_found(ledger: Ledger) -> None:
    ledger.check_end({"q": [(ONE, False), (ONE, False), (TWO, False)]}, {})
    assert ledger.errors == ["q: 1 messages are there twice"]


def test_a_dead_message_that_is_still_in_its_queue_is_found(ledger: Ledger) -> None:
    ledger.check_end({"q": [(ONE, False), (TWO, False)]}, {ONE: ["q"]})
    assert ledger.errors == ["q: p:1 died there, and is there twice"]
