"""Strategies end to end: pika, sockets, faults, and a broker that is really killed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pika
import pytest
from pika.adapters import select_connection

from amqp_broker.demo import strategy_run
from amqp_broker.demo.fault_plan import FaultEvent, fault_plan
from amqp_broker.demo.proof import Proof
from amqp_broker.demo.strategies import STRATEGIES
from amqp_broker.demo.strategy_run import StrategyRun
from amqp_broker.testing import EmbeddedBroker

# On a slow machine a confirm may take longer than publishers usually wait; then they publish again.
PATIENCE_MS = 60_000.0

RESTART = FaultEvent(25, "is killed", None)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(data_dir=tmp_path / "data", management=False) as broker:
        yield broker


def event(at: int, action: str, times: int = 1, **fields: Any) -> FaultEvent:
    return FaultEvent(at, action, {"action": action, "on": "publish", "times": times, **fields})


def a_run(
    broker: EmbeddedBroker, name: str, events: list[FaultEvent], messages: int = 200, rate: int = 0
) -> StrategyRun:
    return StrategyRun(
        broker, STRATEGIES[name], events, messages, 20, rate, lambda shown: None, partial(broker.restart, kill=True)
    )


def assert_all_are_there_by_message_id(proof: Proof, messages: int = 200) -> None:
    assert proof.breaches == ()
    assert (proof.confirmed, proof.distinct, proof.lost) == (messages, messages, {})


@pytest.mark.parametrize(("name", "seed"), [("window", 1), ("window", 2), ("async", 1), ("async", 3)])
def test_the_whole_plan_breaks_no_promise(broker: EmbeddedBroker, name: str, seed: int) -> None:
    run = a_run(broker, name, fault_plan(300, seed), 300)
    assert_all_are_there_by_message_id(run.run(), 300)
    shown = run.figures()
    assert [one["state"] for one in shown["plan"]] == ["over"] * len(shown["plan"])
    assert shown["connects"] == 4
    assert shown["connection"] == "closed"


def test_sync_survives_each_fault(broker: EmbeddedBroker) -> None:
    events = [
        event(5, "confirm_nack", 3),
        event(10, "return", 2),
        event(15, "confirm_drop", 1),
        event(20, "cut", is_mid_frame=True),
        RESTART,
        event(30, "close_channel"),
    ]
    run = a_run(broker, "sync", events, 50)
    assert_all_are_there_by_message_id(run.run(), 50)
    retries = run.publisher.retried
    assert (retries["nacked"], retries["returned"]) == (3, 2)
    assert retries["no answer in time"] >= 1
    assert retries["connection lost"] >= 2
    assert retries["channel closed"] == 1
    assert run.publisher.window == 1


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_without_faults_each_message_is_in_the_queue_once(broker: EmbeddedBroker, name: str) -> None:
    run = a_run(broker, name, [])
    run.publisher.patience_ms = PATIENCE_MS
    proof = run.run()
    assert_all_are_there_by_message_id(proof)
    assert (proof.sent, proof.duplicates) == (200, 0)


def test_naive_loses_nacked_and_returned_messages(broker: EmbeddedBroker) -> None:
    proof = a_run(broker, "naive", [event(10, "confirm_nack", 5), event(60, "return", 4)]).run()
    assert proof.is_held
    assert proof.lost == {"nacked": 5, "returned as unroutable": 4}
    assert (proof.distinct, proof.duplicates) == (191, 0)


def test_naive_loses_messages_in_the_whole_plan(broker: EmbeddedBroker) -> None:
    run = a_run(broker, "naive", fault_plan(300, 2), 300)
    proof = run.run()
    assert proof.is_held
    assert proof.distinct + sum(proof.lost.values()) == 300
    # By what is a matter of time: who loses the connection before it has heard of a nack or a return, loses by that.
    assert proof.lost
    assert [one["state"] for one in run.figures()["plan"]] == ["over"] * 10


def test_naive_loses_messages_in_flight_when_the_broker_is_killed(broker: EmbeddedBroker) -> None:
    proof = a_run(broker, "naive", [RESTART], 400, rate=2000).run()
    assert proof.is_held
    assert proof.distinct + sum(proof.lost.values()) == 400
    assert set(proof.lost) <= {"unanswered when the channel or the connection ended"}


def test_a_lost_confirm_makes_a_duplicate_with_the_same_message_id(broker: EmbeddedBroker) -> None:
    proof = a_run(broker, "async", [event(10, "confirm_drop", 4)]).run()
    assert_all_are_there_by_message_id(proof)
    assert proof.duplicates >= 4


def test_a_late_confirm_arrives_before_the_end(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy_run, "SETTLE_MS", PATIENCE_MS)
    run = a_run(broker, "async", [event(190, "confirm_delay", 4, delay_ms=600)])
    run.publisher.patience_ms = 300
    proof = run.run()
    assert_all_are_there_by_message_id(proof)
    assert proof.duplicates >= 4
    assert run.publisher.ledger.outcomes["waiting"] == 0


def test_an_event_is_shown_before_the_message_where_it_began(broker: EmbeddedBroker) -> None:
    run = a_run(broker, "naive", [event(10, "confirm_nack", 5), event(11, "return", 1)])
    run.run()
    first, second = run.figures()["plan"]
    assert first["at"] == 10
    assert second["at"] >= 15


def test_a_blocked_publisher_publishes_nothing_twice(broker: EmbeddedBroker) -> None:
    run = a_run(broker, "async", [event(10, "block", duration_ms=1700)])
    run.publisher.patience_ms = 1500
    proof = run.run()
    assert_all_are_there_by_message_id(proof)
    assert proof.duplicates == 0
    assert run.elapsed_ms >= 1700


def test_a_restart_keeps_confirmed_messages(broker: EmbeddedBroker) -> None:
    run = a_run(broker, "async", [RESTART])
    port = broker.port
    assert_all_are_there_by_message_id(run.run())
    assert (broker.port, run.connects) == (port, 2)


def test_a_missing_message_breaks_the_promise(broker: EmbeddedBroker) -> None:
    """Another consumer takes a confirmed message out of the queue, which the proof must detect."""

    def steal(shown: dict[str, Any]) -> None:
        if shown["confirmed"] == 20 and not stolen:
            with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
                stolen.append(connection.channel().basic_get("demo.async", auto_ack=True))

    stolen: list[Any] = []
    run = StrategyRun(broker, STRATEGIES["async"], [], 20, 20, 0, steal)
    proof = run.run()
    assert len(stolen) == 1
    assert not proof.is_held
    assert "is in the queue 0 times" in proof.breaches[0]


def test_the_rate_limits_publishing(broker: EmbeddedBroker) -> None:
    run = a_run(broker, "async", [], 100, rate=200)
    run.run()
    assert run.elapsed_ms >= 450


def test_an_interruption_while_the_loop_starts_is_passed_on(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: object) -> None:
        raise SystemExit(143)

    monkeypatch.setattr(select_connection._PollerBase, "activate_poller", interrupt)
    with pytest.raises(SystemExit):
        a_run(broker, "async", []).run()


def test_an_error_of_the_restart_ends_the_run(broker: EmbeddedBroker) -> None:
    def fail() -> None:
        raise OSError("no port")

    run = StrategyRun(broker, STRATEGIES["async"], [RESTART], 200, 20, 0, lambda shown: None, fail)
    with pytest.raises(OSError, match="no port"):
        run.run()
