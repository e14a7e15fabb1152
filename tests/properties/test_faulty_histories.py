"""The event log is a complete history under faults, too."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amqp_broker.broker.lab.fault_rules import ACTIONS, KEEPING_BACK, METHOD, NOW, Rule
from amqp_broker.broker.observe.history_check import HistoryCheck
from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.conformance.duel.steps import At, Program, Step
from compat.duel.programs import programs
from tests.peer import Peer
from tests.properties.generators import examples
from tests.properties.test_histories import Counts, Play, number_of, renamed_step

# Faults of a login have no history.
_DRAWN = [name for name in ACTIONS if name not in ("refuse", "refuse_login")]
_OFTEN = [*KEEPING_BACK, "duplicate", "drop_ack", "confirm_nack", "return"]


class Release:
    """Release a delivery of each rule that holds some."""


class Clear:
    """Remove all rules."""


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    action = draw(st.sampled_from(sorted(_OFTEN)) | st.sampled_from(_DRAWN))
    on = draw(st.sampled_from([moment for moment in ACTIONS[action].on if moment != "login"]))
    rule = Rule(action, on, method="*" if on == METHOD else None)
    if "delay_ms" in ACTIONS[action].needs:
        rule.delay_ms = draw(st.sampled_from([1, 20, 500]))
    if "bytes_per_s" in ACTIONS[action].needs:
        rule.bytes_per_s = 20_000
    if on != NOW:
        rule.times = draw(st.none() | st.integers(1, 4))
        rule.after = draw(st.sampled_from([0, 0, 1]))
    return rule


class FaultyPlay(Play):
    """A program at a broker with faults. A client whose socket or channel a fault has taken does nothing."""

    def act(self, what: Step | Rule | Release | Clear) -> None:
        injector = self.lab.broker.faults
        if isinstance(what, Rule):
            injector.add(what)
        elif isinstance(what, Release):
            for rule in injector:
                if rule.held:
                    injector.release(rule.id, 1)
        elif isinstance(what, Clear):
            injector.clear()
        else:
            with contextlib.suppress(Cut):
                self.step(renamed_step(what))
        self.lab.broker.end_turn()
        self.lab.advance(1)
        self.lab.drain()

    def peer(self, at: At) -> Peer:
        try:
            peer = super().peer(at)
        except (AssertionError, LookupError) as error:
            raise Cut from error
        if at.channel + 1 not in peer.session.channels:
            raise Cut
        return peer

    def actual(self) -> Iterator[tuple[tuple[int, str], Counts]]:
        found = dict(super().actual())
        for queue in self.queues():
            for message in self.lab.broker.faults.kept_back(queue):
                place = number_of(message), queue.name
                ready, unacked, delayed = found.get(place, (0, 0, 0))
                found[place] = ready, unacked, delayed + 1
        yield from found.items()


class Cut(Exception):
    """A fault has taken the connection or the channel of a step."""


@st.composite
def faulty_programs(draw: st.DrawFn) -> list[Any]:
    faults = st.lists(rules() | st.builds(Release) | st.builds(Clear), max_size=1)
    program: Program = draw(programs())
    return [part for step in program for part in (*draw(faults), step)]


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("compat", ["3.13", "4.3"])
@settings(deadline=None, max_examples=examples(0.5), suppress_health_check=list(HealthCheck))
@given(faulty_programs())
def test_the_history_says_where_each_message_is_under_faults(compat: str, program: list[Any]) -> None:
    played = FaultyPlay(compat=compat)
    for part in [*program, Clear()]:
        played.act(part)
        played.check()
        assert finished(HistoryCheck(played.log).run())["breaches"] == []
    played.check_sentences()
