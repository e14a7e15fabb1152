"""The harness finds slow code that is planted."""

from __future__ import annotations

import pytest

from amqp_broker.broker.broker import Broker
from amqp_broker.broker.queues.classic import ClassicQueue
from amqp_broker.broker.scheduling.timers import Timers
from amqp_broker.session.channel.channel import Channel
from tests.growth.table import Play, Row, faults
from tests.growth.test_growth import ROWS
from tests.growth.world import World

pytestmark = pytest.mark.interpreted


def named(name: str) -> Row:
    return next(row for row in ROWS if row.name == name)


def test_a_walk_over_all_deliveries_for_each_ack_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    ack = Channel.ack

    def slow(self: Channel, tag: int, multiple: bool) -> None:
        for unacked in self.unacked.deliveries:
            if unacked == tag:
                break
        ack(self, tag, multiple)

    assert not faults(named("basic_ack_backwards"))
    monkeypatch.setattr(Channel, "ack", slow)
    assert "work grows faster than N log N" in faults(named("basic_ack_backwards"))[0]


def test_a_comprehension_for_each_declaration_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    unique_name = Broker.unique_name

    def slow(self: Broker, prefix: str) -> str:
        assert [queue for vhost in self.vhosts.values() for queue in vhost.queues if queue.startswith("q")]
        return unique_name(self, prefix)

    assert not faults(named("queue_declare_unnamed_beside_many"))
    monkeypatch.setattr(Broker, "unique_name", slow)
    found = faults(named("queue_declare_unnamed_beside_many"))
    assert "the longest turn grows" in found[0]
    assert "test_planted.py" in found[1], "the line is shown"


def test_a_turn_that_delivers_a_whole_backlog_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    drain = ClassicQueue.drain

    def slow(self: ClassicQueue) -> None:
        drain(self)
        while self.is_undrained:
            self.vhost.broker.undrained.remove(self._drain_next_portion)
            self._drain_next_portion()

    assert not faults(named("basic_consume_classic_of_all"))
    monkeypatch.setattr(ClassicQueue, "drain", slow)
    assert "the longest turn grows" in faults(named("basic_consume_classic_of_all"))[0]


def test_a_turn_that_runs_all_due_timers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run_due = Timers.run_due

    def slow(self: Timers, now: int) -> None:
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            run_due(self, now)

    assert not faults(named("queues_expire"))
    monkeypatch.setattr(Timers, "run_due", slow)
    assert "the longest turn grows" in faults(named("queues_expire"))[0]


def test_a_turn_of_what_c_does_at_once_is_not_found() -> None:
    """This is the weak spot: a sort of any length is one line."""

    def play(world: World, n: int) -> Play:
        numbers = list(range(n * 10_000))
        yield
        world.turn(sorted, numbers)

    assert not faults(Row("sorting", play, 1))
