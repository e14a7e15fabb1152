from __future__ import annotations

from collections.abc import Iterator

import pytest

from amqp_broker.testing import EmbeddedBroker
from amqp_broker.testing.shared_brokers import SharedBrokers, left_as_found


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


def is_frozen(broker: EmbeddedBroker) -> bool:
    return broker.ask(lambda server: server.clock.is_frozen)


def actions(broker: EmbeddedBroker) -> list[str]:
    return broker.ask(lambda server: [rule.action for rule in server.broker.faults])


def test_rules_of_a_block_end_and_the_clock_runs_again(broker: EmbeddedBroker) -> None:
    broker.faults.add("confirm_nack")
    with left_as_found(broker):
        broker.faults.add("confirm_drop", then=[{"action": "confirm_nack"}])
        broker.clock.freeze()
    assert actions(broker) == ["confirm_nack"]
    assert not is_frozen(broker)
    with left_as_found(broker):
        broker.faults.clear()
    assert actions(broker) == []


def test_a_broker_that_was_stopped_or_restarted_is_no_error(broker: EmbeddedBroker) -> None:
    with left_as_found(broker):
        broker.restart()
        broker.faults.add("confirm_nack")
    assert actions(broker) == []
    with left_as_found(broker):
        broker.stop()


def test_the_changes_of_a_fixture_that_outlives_the_test_are_kept(broker: EmbeddedBroker) -> None:
    shared = SharedBrokers()
    shared.add(broker)
    shared.begin_test()
    broker.faults.add("confirm_drop")
    before = shared.looks()
    broker.faults.add("confirm_nack")
    broker.clock.freeze()
    shared.keep(before)
    broker.clock.resume()
    broker.clock.freeze()
    shared.end_test()
    assert (actions(broker), is_frozen(broker)) == (["confirm_nack"], True)
