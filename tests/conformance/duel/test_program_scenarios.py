"""Recorded programs as scenarios: what is compared, and where a difference ends a program."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pamqp.commands import Basic, Queue

from amqp_broker.conformance.api_client import HttpApi
from amqp_broker.conformance.duel import program_scenarios
from amqp_broker.conformance.duel.http_steps import PERMISSIONS
from amqp_broker.conformance.duel.program_records import Recorded
from amqp_broker.conformance.duel.program_scenarios import ProgramScenarios
from amqp_broker.conformance.duel.steps import SHORT_MS, At, Call, Http, Name, Publish, Settle, Step
from amqp_broker.conformance.judging import Judge, Judged, Verdict
from amqp_broker.conformance.records import Transcripts
from amqp_broker.conformance.suite_run import SuiteRun, new_prefix
from amqp_broker.conformance.terms import Terms
from tests.conformance.broker_under_test import BrokerUnderTest
from tests.running import RunningServer

Q = Name("q0")
PROGRAM = (
    Call(At(), Queue.Declare, {"queue": Q, "durable": True}),
    Publish(At(1), {"routing_key": Q}),
    Call(At(), Basic.Get, {"queue": Q, "no_ack": False}),
    Settle(At(), "nack", 0, {"requeue": True}),
)
WINDOWS = [
    ["a1 queue.declare-ok queue='q0' message_count=0 consumer_count=0", "q0: 0 ready, 0 consumers"],
    ["q0: 1 ready, 0 consumers"],
    [
        "a1 basic.get-ok delivery_tag=1 redelivered=false exchange='' routing_key='q0' message_count=0",
        "a1     body=b'1'",
        "q0: 0 ready, 0 consumers",
    ],
    ["q0: 1 ready, 0 consumers"],
    ["q0: 1 ready, 0 consumers"],
    ["q0: 1 ready, 0 consumers"],
    [
        "lab basic.get-ok delivery_tag=0 redelivered=true exchange='' routing_key='q0' message_count=0",
        "lab     body=b'1'",
        "q0: 0 ready, 0 consumers",
    ],
]
OF_ANOTHER_USER = (
    Http("PUT", PERMISSIONS, {"configure": "", "write": "", "read": ""}),
    Call(At(3), Queue.Declare, {"queue": Q, "durable": True}),
)
REFUSED = [
    ["lab PUT permissions/{vhost}/{prefix}dueller: 204 null"],
    [
        "d1 channel.close reply_code=403 reply_text=\"ACCESS_REFUSED - configure access to queue 'q0' in vhost '/' "
        "refused for user 'dueller'\" class_id=50 method_id=10",
    ],
    [],
    [
        'lab channel.close reply_code=404 reply_text="NOT_FOUND - no queue '
        + "'q0' in vhost '/'\" class_id=60 method_id=70"
    ],
]


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with RunningServer(management=True, management_port=0) as one:
        yield one


def judged(
    monkeypatch: pytest.MonkeyPatch, server: RunningServer, recorded: list[Recorded], *, has_api: bool = False
) -> list[Judged]:
    monkeypatch.setattr(program_scenarios, "load", lambda: recorded)
    transcripts: dict[str, Transcripts] = {"4.3": {}}
    api = HttpApi(server.management_url, "guest", "guest") if has_api else None
    found: list[Judged] = []
    run = SuiteRun(
        BrokerUnderTest(server.port), Terms(prefix=new_prefix(), api=api), Judge(transcripts, (2047, 131072))
    )
    run.play_all(ProgramScenarios(transcripts, has_api).scenarios, found.append)
    return found


def test_a_program_that_is_answered_as_recorded_agrees(monkeypatch: pytest.MonkeyPatch, server: RunningServer) -> None:
    (one,) = judged(monkeypatch, server, [Recorded(PROGRAM, WINDOWS, ("4.3",))])
    assert one.verdict is Verdict.AGREES


def test_a_program_ends_with_the_first_step_that_is_answered_differently(
    monkeypatch: pytest.MonkeyPatch, server: RunningServer
) -> None:
    windows = [*WINDOWS]
    windows[2] = [line.replace("redelivered=false", "redelivered=true") for line in WINDOWS[2]]
    (one,) = judged(monkeypatch, server, [Recorded(PROGRAM, windows, ("4.3",))])
    assert (one.verdict, one.places, one.oracle) == (Verdict.DIFFERS, ("basic.get-ok redelivered",), "4.3")
    assert one.seen[-4:] == (
        "lab> a1.call(Basic.Get, queue=q0, no_ack=False)",
        "a1< basic.get-ok delivery_tag=1 redelivered=false exchange='' routing_key='q0' message_count=0",
        "a1<     body=b'1'",
        "lab< q0: 0 ready, 0 consumers",
    )


def with_limit(number: int) -> tuple[Step, ...]:
    """A program with a number that is a short time or not; as a limit, it does not depend on the machine."""
    return (
        Call(At(), Queue.Declare, {"queue": Q, "durable": True, "arguments": {"x-max-length": number}}),
        *PROGRAM[1:],
    )


@pytest.mark.parametrize(("number", "verdict"), [(SHORT_MS, Verdict.SKIPPED), (SHORT_MS + 1, Verdict.DIFFERS)])
def test_a_difference_after_late_steps_is_not_judged_where_a_short_time_may_have_passed(
    monkeypatch: pytest.MonkeyPatch, server: RunningServer, number: int, verdict: Verdict
) -> None:
    monkeypatch.setattr(program_scenarios, "LATE_S", 0.0)
    windows = [*WINDOWS[:2], ["a1 basic.get-empty", "q0: 0 ready, 0 consumers"], *WINDOWS[3:]]
    (one,) = judged(monkeypatch, server, [Recorded(with_limit(number), windows, ("4.3",))])
    assert one.verdict is verdict


def test_late_steps_whose_answers_are_as_recorded_agree(monkeypatch: pytest.MonkeyPatch, server: RunningServer) -> None:
    monkeypatch.setattr(program_scenarios, "LATE_S", 0.0)
    (one,) = judged(monkeypatch, server, [Recorded(with_limit(SHORT_MS), WINDOWS, ("4.3",))])
    assert one.verdict is Verdict.AGREES


def test_steps_in_time_that_are_answered_differently_differ(
    monkeypatch: pytest.MonkeyPatch, server: RunningServer
) -> None:
    monkeypatch.setattr(program_scenarios, "LATE_S", 60.0)
    windows = [*WINDOWS[:2], ["a1 basic.get-empty", "q0: 0 ready, 0 consumers"], *WINDOWS[3:]]
    (one,) = judged(monkeypatch, server, [Recorded(with_limit(SHORT_MS), windows, ("4.3",))])
    assert one.verdict is Verdict.DIFFERS


def test_programs_of_other_versions_are_left_out(monkeypatch: pytest.MonkeyPatch, server: RunningServer) -> None:
    assert judged(monkeypatch, server, [Recorded(PROGRAM, WINDOWS, ("3.10", "4.0"))]) == []


def test_programs_that_need_the_http_api_are_left_out_without_it(
    monkeypatch: pytest.MonkeyPatch, server: RunningServer
) -> None:
    assert judged(monkeypatch, server, [Recorded(OF_ANOTHER_USER, REFUSED, ("4.3",))]) == []


def test_a_user_of_a_program_is_deleted_afterwards(monkeypatch: pytest.MonkeyPatch, server: RunningServer) -> None:
    (one,) = judged(monkeypatch, server, [Recorded(OF_ANOTHER_USER, REFUSED, ("4.3",))], has_api=True)
    assert one.verdict is Verdict.AGREES, one.seen
    assert server.ask(lambda running: [*running.broker.users]) == ["guest"]


def test_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch, server: RunningServer) -> None:
    judged(monkeypatch, server, [Recorded(PROGRAM, WINDOWS, ("4.3",))])
    assert server.ask(lambda running: [*running.broker.vhosts["/"].queues]) == []
