"""Transcripts by name, played on lookup."""

from __future__ import annotations

from amqp_broker.conformance.lab import Lab, Scenario
from amqp_broker.conformance.playing import Playing
from tests.conformance.broker_under_test import BrokerUnderTest


def test_a_scenario_is_played_when_it_is_looked_up_and_a_slow_one_at_once(broker: BrokerUnderTest) -> None:
    played: list[str] = []

    def play(name: str, is_slow: bool = False) -> Scenario:
        def note(lab: Lab) -> None:
            played.append(name)
            lab.transcript.record(name)

        return Scenario(name, "area", note, is_slow)

    with Playing(broker, [play("one"), play("slow", is_slow=True), play("other")]) as playing:
        assert list(playing) == ["area/one", "area/slow", "area/other"]
        assert playing["area/slow"] == ["slow"]
        assert playing["area/other"] == ["other"]
    assert sorted(played) == ["other", "slow"]
