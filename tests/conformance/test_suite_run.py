"""Runs of the suite: verdicts, repetitions and cleaning up."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from pamqp.commands import Queue

from amqp_broker.conformance import suite_run
from amqp_broker.conformance.judging import Judge, Judged, Verdict
from amqp_broker.conformance.lab import Lab, Scenario
from amqp_broker.conformance.suite_run import ENDED, GONE, SuiteRun, new_prefix
from amqp_broker.conformance.terms import TOO_SLOW, Skipped, Terms
from tests.conformance.broker_under_test import BrokerUnderTest
from tests.running import RunningServer

LIMITS = 2047, 131072
DECLARED = [
    "a1> queue.declare queue='q' durable=true",
    "a1< queue.declare-ok queue='q' message_count=0 consumer_count=0",
]


def declares(lab: Lab) -> None:
    lab.channel().call(Queue.Declare, queue=lab.name("q"), durable=True)


def played(
    broker: BrokerUnderTest, lines: list[str], play: Callable[[Lab], None] = declares, terms: Terms | None = None
) -> Judged:
    """Play one scenario whose recorded transcript has these lines, and return the verdict."""
    found: list[Judged] = []
    run = SuiteRun(broker, terms or Terms(prefix=new_prefix()), Judge({"4.3": {"area/x": [lines]}}, LIMITS))
    run.play_all([Scenario("x", "area", play)], found.append)
    (judged,) = found
    return judged


def test_an_answer_as_recorded_agrees(broker: BrokerUnderTest) -> None:
    assert played(broker, DECLARED).verdict is Verdict.AGREES


def test_a_planted_difference_is_found(broker: BrokerUnderTest) -> None:
    judged = played(broker, [DECLARED[0], DECLARED[1].replace("message_count=0", "message_count=1")])
    assert (judged.verdict, judged.places) == (Verdict.DIFFERS, ("queue.declare-ok message_count",))


def test_a_scenario_that_differs_once_is_played_again(broker: BrokerUnderTest) -> None:
    plays: list[Lab] = []

    def is_late_at_first(lab: Lab) -> None:
        plays.append(lab)
        declares(lab)
        if len(plays) == 1:
            lab.transcript.record("late")

    assert played(broker, DECLARED, is_late_at_first).verdict is Verdict.AGREES
    assert len(plays) == 2


@pytest.mark.parametrize(("late_plays", "verdict"), [(1, Verdict.AGREES), (2, Verdict.SKIPPED)])
def test_a_scenario_that_was_played_too_slowly_is_skipped_if_it_is_again(
    broker: BrokerUnderTest, late_plays: int, verdict: Verdict
) -> None:
    plays: list[Lab] = []

    def is_slow(lab: Lab) -> None:
        plays.append(lab)
        if len(plays) <= late_plays:
            raise Skipped(TOO_SLOW)
        declares(lab)

    assert played(broker, DECLARED, is_slow).verdict is verdict
    assert len(plays) == 2


def test_a_missing_feature_is_the_reason_to_skip(broker: BrokerUnderTest) -> None:
    def needs_a_stream(lab: Lab) -> None:
        lab.queue("s", arguments={"x-queue-type": "stream"})

    judged = played(broker, DECLARED, needs_a_stream, Terms(lacks={"queues of type stream": "it has none"}))
    assert (judged.verdict, judged.reason) == (Verdict.SKIPPED, "it has none")


def test_an_answer_that_confuses_the_scenario_is_a_difference(broker: BrokerUnderTest) -> None:
    def expects_another_answer(lab: Lab) -> None:
        declares(lab)
        raise IndexError("list index out of range")

    judged = played(broker, DECLARED, expects_another_answer)
    assert judged.verdict is Verdict.DIFFERS
    assert judged.seen[-1] == "STOPPED: IndexError: list index out of range"


def test_nothing_is_left_at_the_broker() -> None:
    def leaves(lab: Lab) -> None:
        channel = lab.channel()
        declares(lab)
        channel.exchange(lab.name("x"), durable=True)
        # A name that the broker has chosen, of a queue that survives its connection.
        channel.declare("", durable=True)
        raise RuntimeError("it fails")

    with RunningServer() as server:
        before = server.ask(lambda one: len(one.broker.vhosts["/"].exchanges))
        assert played(BrokerUnderTest(server.port), DECLARED, leaves).verdict is Verdict.DIFFERS
        assert server.ask(lambda one: [*one.broker.vhosts["/"].queues]) == []
        assert server.ask(lambda one: len(one.broker.vhosts["/"].exchanges)) == before


def test_an_interruption_deletes_the_objects_of_running_scenarios() -> None:
    waits = threading.Event()

    def waits_for_ever(lab: Lab) -> None:
        declares(lab)
        waits.set()
        lab.channel().expect()

    def interrupt(judged: Judged) -> None:
        assert waits.wait(10)
        raise KeyboardInterrupt

    scenarios = [Scenario("x", "area", waits_for_ever), Scenario("y", "area", declares)]
    with RunningServer() as server:
        judge = Judge({"4.3": {"area/x": [[]], "area/y": [DECLARED]}}, LIMITS)
        run = SuiteRun(BrokerUnderTest(server.port), Terms(prefix="run-"), judge)
        with pytest.raises(KeyboardInterrupt):
            run.play_all(scenarios, interrupt)
        assert server.ask(lambda one: [*one.broker.vhosts["/"].queues]) == []


def test_a_broker_that_has_ended_is_not_asked_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite_run, "RETURN_S", 0.1)
    monkeypatch.setattr(suite_run, "WORKERS", 1)
    server = RunningServer()
    server.start()

    def ends_the_broker(lab: Lab) -> None:
        lab.connect()
        server.stop()

    judge = Judge({"4.3": {"area/x": [["nothing"]], "area/y": [DECLARED]}}, LIMITS)
    found: list[Judged] = []
    scenarios = [Scenario("x", "area", ends_the_broker), Scenario("y", "area", declares)]
    SuiteRun(BrokerUnderTest(server.port), Terms(), judge).play_all(scenarios, found.append)
    ended, other = sorted(found, key=lambda one: one.scenario.name)
    assert (ended.verdict, ended.places[-1]) == (Verdict.DIFFERS, ENDED)
    assert (other.verdict, other.reason) == (Verdict.SKIPPED, GONE)


def test_two_runs_have_different_names() -> None:
    assert new_prefix() != new_prefix()
    assert new_prefix().startswith("conformance-")
