from __future__ import annotations

import pytest

from amqp_broker.broker.scheduling.timers import Timers
from amqp_broker.session.channel.delivery_deadlines import SWEEP_MIN, DeliveryDeadlines


class Deliveries:
    """Unacked deliveries with their deadlines, and those that were found late."""

    def __init__(self) -> None:
        self.timers = Timers()
        self.unacked: set[int] = set()
        self.uncommitted: set[int] = set()
        self.late: list[list[int]] = []
        self.deadlines = DeliveryDeadlines(self.timers, self.unacked, self.late.append, lambda: self.uncommitted)

    def deliver(self, tag: int, deadline_ms: int) -> None:
        self.unacked.add(tag)
        self.deadlines.add(tag, deadline_ms)


@pytest.fixture
def deliveries() -> Deliveries:
    return Deliveries()


def test_deliveries_are_late_at_their_deadlines(deliveries: Deliveries) -> None:
    for tag, deadline_ms in ((1, 30), (2, 10), (3, 10)):
        deliveries.deliver(tag, deadline_ms)
    deliveries.timers.run_due(9)
    assert deliveries.late == []
    deliveries.timers.run_due(10)
    assert deliveries.late == [[2, 3]]
    deliveries.timers.run_due(30)
    assert deliveries.late == [[2, 3], [1]]
    assert deliveries.timers.next_deadline() is None


def test_a_settled_delivery_is_not_late(deliveries: Deliveries) -> None:
    deliveries.deliver(1, 10)
    deliveries.deliver(2, 20)
    deliveries.unacked.discard(1)
    deliveries.timers.run_due(10)
    assert deliveries.late == []
    assert deliveries.timers.next_deadline() == 20


def test_settled_deliveries_are_swept(deliveries: Deliveries) -> None:
    deliveries.deliver(0, 5)
    for tag in range(1, 10 * SWEEP_MIN):
        deliveries.deliver(tag, 10)
        deliveries.unacked.discard(tag)
    assert len(deliveries.deadlines) <= SWEEP_MIN


def test_the_deadlines_of_uncommitted_settlements_are_not_swept(deliveries: Deliveries) -> None:
    for tag in range(SWEEP_MIN):
        deliveries.deliver(tag, 10 + tag)
    deliveries.uncommitted.update(deliveries.unacked)
    deliveries.unacked.clear()
    deliveries.timers.run_due(10)
    deliveries.deliver(SWEEP_MIN, 1000)
    deliveries.unacked |= deliveries.uncommitted
    deliveries.deadlines.resume()
    deliveries.timers.run_due(999)
    assert deliveries.late == [list(range(SWEEP_MIN))]


def test_a_stopped_channel_has_no_timer(deliveries: Deliveries) -> None:
    deliveries.deliver(1, 10)
    deliveries.deadlines.stop()
    assert deliveries.timers.next_deadline() is None
