"""Lines that do not depend on the machine, the time or the run."""

from __future__ import annotations

import time

import pytest

from amqp_broker.conformance.transcript import Transcript, show, show_content
from amqp_broker.conformance.wire import Field, Pairs


def recorded(*lines: str) -> list[str]:
    transcript = Transcript("1f2e3d4c.")
    for line in lines:
        transcript.record(line)
    return transcript.lines


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("queue='1f2e3d4c.q'", "queue='q'"),
        ("queue='amq.gen-0123456789abcdefghijkl'", "queue='amq.gen-<1>'"),
        ("pid <0.12.3>", "pid <pid>"),
        ("{time: TNOW}", "{time: T<now>}"),
        (" timestamp=NOW", " timestamp=<now>"),
        (" timestamp=1", " timestamp=1"),
        (
            "a0< connection.start version: S'4.3.6' mechanisms='PLAIN AMQPLAIN'",
            "a0< connection.start version: S<any> mechanisms={AMQPLAIN, PLAIN}",
        ),
    ],
)
def test_a_value_of_the_run_is_masked(line: str, shown: str) -> None:
    assert recorded(line.replace("NOW", str(int(time.time())))) == [shown]


def test_a_generated_name_of_another_format_is_shown() -> None:
    assert recorded("queue='amq.gen-short'") == ["queue='amq.gen-short'"]


def test_equal_generated_names_have_equal_numbers() -> None:
    one, other = "amq.ctag-" + "a" * 22, "amq.ctag-" + "b" * 22
    assert recorded(one, other, one) == ["amq.ctag-<1>", "amq.ctag-<2>", "amq.ctag-<1>"]


def test_nothing_is_recorded_while_it_is_muted() -> None:
    transcript = Transcript("x.")
    with transcript.muted():
        transcript.record("no")
    transcript.record("yes")
    assert transcript.lines == ["yes"]


def test_table_values_are_shown_with_their_tags() -> None:
    assert show(Pairs([("n", Field("I", 5)), ("deep", Field("F", Pairs()))])) == "{n: I5, deep: F{}}"


def test_the_fields_of_a_death_are_sorted() -> None:
    death = Pairs([("reason", Field("S", "r")), ("count", Field("l", 1)), ("queue", Field("S", "q"))])
    assert show(death) == "{count: l1, queue: S'q', reason: S'r'}"


def test_a_large_body_is_shown_as_its_size_and_hash() -> None:
    assert show_content({}, b"x" * 65) == " body=65 bytes, sha1 78c741ddc482"
