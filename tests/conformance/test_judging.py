"""Verdicts on transcripts."""

from __future__ import annotations

import pytest

from amqp_broker.conformance.judging import Judge, Verdict, neutral
from amqp_broker.conformance.lab import STOPPED, Scenario

SCENARIO = Scenario("x", "area", print)
GET = "a1< basic.get-ok delivery_tag=1 redelivered=false"
AGAIN = "a1< basic.get-ok delivery_tag=1 redelivered=true"
EMPTY = "a1< basic.get-empty"
JUDGE = Judge({"4.0": {"area/x": [[GET, EMPTY], [GET, GET, EMPTY]]}, "4.3": {"area/x": [[AGAIN]]}}, (2047, 131072))


@pytest.mark.parametrize("lines", [[GET, EMPTY], [GET, GET, EMPTY], [AGAIN]])
def test_each_answer_of_each_accepted_version_agrees(lines: list[str]) -> None:
    assert JUDGE.judge(SCENARIO, lines).verdict is Verdict.AGREES


def test_a_difference_is_shown_against_the_closest_answer() -> None:
    judged = JUDGE.judge(SCENARIO, [AGAIN, EMPTY])
    assert (judged.verdict, judged.oracle) == (Verdict.DIFFERS, "4.0")
    assert (judged.places, judged.expected) == (("basic.get-ok redelivered",), (GET, EMPTY))


def test_lines_that_one_side_lacks_are_called_missing_or_not_expected() -> None:
    judge = Judge({"4.3": {"area/x": [[GET, EMPTY]]}}, (2047, 131072))
    assert judge.judge(SCENARIO, [GET]).places == ("basic.get-empty: missing",)
    assert judge.judge(SCENARIO, [GET, EMPTY, EMPTY]).places == ("basic.get-empty: not expected",)


def test_a_scenario_without_a_record_is_skipped() -> None:
    assert JUDGE.judge(Scenario("y", "area", print), [GET]).reason == "RabbitMQ's answer is not recorded"


def test_silence_is_recognized() -> None:
    assert JUDGE.judge(SCENARIO, [GET, f"{STOPPED} the broker has been silent on connection a"]).is_silence
    assert not JUDGE.judge(SCENARIO, [GET, f"{STOPPED} q does not take messages"]).is_silence


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            "a0< connection.tune channel_max=4096 frame_max=65536 heartbeat=10",
            "a0< connection.tune channel_max=<setting> frame_max=<setting> heartbeat=<setting>",
        ),
        (
            "a0< connection.start {product: S'X', platform: S<any>}",
            "a0< connection.start {product=<setting>, platform: S<any>}",
        ),
        (
            "a0> connection.start-ok response='\\x00a\\x00b' locale='en_US'",
            "a0> connection.start-ok response=<credentials> locale='en_US'",
        ),
        ("a1< basic.qos heartbeat=10", "a1< basic.qos heartbeat=10"),
        (
            f'a1< channel.close reply_text="{"x" * 155}..." class_id=1',
            f'a1< channel.close reply_text="{"x" * 150}…" class_id=1',
        ),
        (f'lab< GET: 400 {{"reason": "{"x" * 160}"}}', f'lab< GET: 400 {{"reason": "{"x" * 150}…"}}'),
    ],
)
def test_settings_credentials_and_ends_of_long_texts_are_no_difference(line: str, shown: str) -> None:
    assert neutral(line) == shown


def test_answers_that_contain_the_usual_limits_need_a_broker_that_has_them() -> None:
    recorded = {"4.3": {"area/x": [["a0< connection.close reply_text='2048 is higher than 2047'"]]}}
    assert Judge(recorded, (2047, 131072)).reason_to_skip(SCENARIO) == ""
    assert "channel_max=4096" in Judge(recorded, (4096, 131072)).reason_to_skip(SCENARIO)
    assert Judge({"4.3": {"area/x": [[GET]]}}, (4096, 131072)).reason_to_skip(SCENARIO) == ""
