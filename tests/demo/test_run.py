"""Strategies end to end: pika, sockets, faults, and a broker that is really killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest

from amqp_broker.demo.proof import Proof
from amqp_broker.demo.run import Run
from amqp_broker.demo.storm import Gust, storm
from amqp_broker.demo.strategies import STRATEGIES
from amqp_broker.testing import EmbeddedBroker

RESTART = Gust(25, "is killed", None)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(data_dir=tmp_path / "data", management=False) as broker:
        yield broker


def gust(at: int, action: str, times: int = 1, **fields: Any) -> Gust:
    return Gust(at, action, {"action": action, "on": "publish", "times": times, **fields})


def a_run(broker: EmbeddedBroker, name: str, gusts: list[Gust], messages: int = 200, rate: int = 0) -> Run:
    return Run(broker, STRATEGIES[name], gusts, messages, 20, rate, lambda told: None, lambda: None)


def assert_all_are_there_by_message_id(proof: Proof, messages: int = 200) -> None:
    assert proof.breaches == ()
    assert (proof.confirmed, proof.distinct, proof.lost) == (messages, messages, {})


@pytest.mark.parametrize(("name", "seed"), [("window", 1), ("window", 2), ("async", 1), ("async", 3)])
def test_the_whole_storm_breaks_no_promise(broker: EmbeddedBroker, name: str, seed: int) -> None:
    run = a_run(broker, name, storm(300, seed), 300)
    assert_all_are_there_by_message_id(run.run(), 300)
    told = run.figures()
    assert [one["state"] for one in told["storm"]] == ["over"] * len(told["storm"])
    assert told["connects"] == 4
    assert told["connection"] == "closed"


def test_sync_survives_each_kind(broker: EmbeddedBroker) -> None:
    gusts = [
        gust(5, "confirm_nack", 3),
        gust(10, "return", 2),
        gust(15, "confirm_drop", 1),
        gust(20, "cut", is_mid_frame=True),
        RESTART,
        gust(30, "close_channel"),
    ]
    run = a_run(broker, "sync", gusts, 50)
    assert_all_are_there_by_message_id(run.run(), 50)
    retries = run.publisher.retried
    assert (retries["nacked"], retries["returned"], retries["no answer in time"]) == (3, 2, 1)
    assert retries["connection lost"] >= 2
    assert run.publisher.window == 1


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_without_a_storm_everything_is_there_once(broker: EmbeddedBroker, name: str) -> None:
    proof = a_run(broker, name, []).run()
    assert_all_are_there_by_message_id(proof)
    assert (proof.sent, proof.duplicates) == (200, 0)


def test_naive_loses_what_is_nacked_and_returned_and_says_so(broker: EmbeddedBroker) -> None:
    proof = a_run(broker, "naive", [gust(10, "confirm_nack", 5), gust(60, "return", 4)]).run()
    assert proof.is_held
    assert proof.lost == {"nacked": 5, "returned as unroutable": 4}
    assert (proof.distinct, proof.duplicates) == (191, 0)


def test_naive_meets_the_whole_storm_and_loses_by_it(broker: EmbeddedBroker) -> None:
    run = a_run(broker, "naive", storm(300, 2), 300)
    proof = run.run()
    assert proof.is_held
    assert proof.distinct + sum(proof.lost.values()) == 300
    assert {"nacked", "returned as unroutable"} <= set(proof.lost)
    assert [one["state"] for one in run.figures()["storm"]] == ["over"] * 10


def test_naive_loses_what_is_on_its_way_when_the_broker_is_killed(broker: EmbeddedBroker) -> None:
    proof = a_run(broker, "naive", [RESTART], 400, rate=2000).run()
    assert proof.is_held
    assert proof.distinct + sum(proof.lost.values()) == 400
    assert set(proof.lost) <= {"on its way when the connection broke"}


def test_a_confirm_that_is_lost_makes_a_duplicate_that_message_ids_tell(broker: EmbeddedBroker) -> None:
    proof = a_run(broker, "async", [gust(10, "confirm_drop", 4)]).run()
    assert_all_are_there_by_message_id(proof)
    assert proof.duplicates == 4


def test_a_blocked_publisher_waits_and_publishes_nothing_twice(broker: EmbeddedBroker) -> None:
    run = a_run(broker, "async", [gust(10, "block", duration_ms=700)])
    proof = run.run()
    assert_all_are_there_by_message_id(proof)
    assert proof.duplicates == 0
    assert run.elapsed_ms >= 700


def test_a_restart_is_told_and_keeps_what_was_confirmed(broker: EmbeddedBroker) -> None:
    restarted: list[int] = []
    run = Run(
        broker, STRATEGIES["async"], [RESTART], 200, 20, 0, lambda told: None, lambda: restarted.append(broker.port)
    )
    port = broker.port
    assert_all_are_there_by_message_id(run.run())
    assert restarted == [port]


def test_a_message_that_vanishes_breaks_the_promise(broker: EmbeddedBroker) -> None:
    """What the proof is for: somebody else takes a confirmed message out of the queue."""

    def steal(told: dict[str, Any]) -> None:
        if told["confirmed"] == 20 and not stolen:
            with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
                stolen.append(connection.channel().basic_get("demo.async", auto_ack=True))

    stolen: list[Any] = []
    run = Run(broker, STRATEGIES["async"], [], 20, 20, 0, steal, lambda: None)
    proof = run.run()
    assert len(stolen) == 1
    assert not proof.is_held
    assert "is in the queue 0 times" in proof.breaches[0]


def test_publishes_are_as_many_a_second_as_the_rate_says(broker: EmbeddedBroker) -> None:
    run = a_run(broker, "async", [], 100, rate=200)
    run.run()
    assert run.elapsed_ms >= 450


def test_an_error_of_the_restart_ends_the_run(broker: EmbeddedBroker) -> None:
    def fail() -> None:
        raise OSError("no port")

    run = Run(broker, STRATEGIES["async"], [RESTART], 200, 20, 0, lambda told: None, fail)
    with pytest.raises(OSError, match="no port"):
        run.run()
