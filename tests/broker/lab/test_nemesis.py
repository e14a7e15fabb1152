from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from pamqp import commands

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.lab.fault_rules import ACTIONS, RULES_MAX, Rule
from amqp_broker.broker.lab.nemesis import CHOICES, STROKES_MAX, Nemesis, stroke_line
from tests.peer import Lab


def new_lab() -> Lab:
    """Return a lab whose broker knows the time."""
    lab = Lab()
    lab.broker.now = lab.now
    return lab


def drawn(seed: int, **given: Any) -> list[dict[str, Any]]:
    """Return the strokes of a minute without clients."""
    lab = new_lab()
    nemesis = lab.broker.faults.begin_nemesis(lab.vhost, seed=seed, duration_ms=60_000, pace_ms=500, **given)
    lab.advance(70_000)
    assert nemesis.is_over
    strokes: list[dict[str, Any]] = nemesis.as_dict()["strokes"]
    return strokes


def test_a_seed_draws_the_same_strokes_each_time() -> None:
    assert drawn(7) == drawn(7)
    assert drawn(7) != drawn(8)


def test_strokes_follow_each_other_with_pauses_until_the_time_is_over() -> None:
    strokes = drawn(1)
    assert 30 < len(strokes) < 120
    times = [time for stroke in strokes for time in (stroke["begun_ms"], stroke["ended_ms"])]
    assert times == sorted(times)
    assert all(250 <= later - earlier <= 760 for earlier, later in pairwise(times[:-1]))
    assert times[-1] <= 60_000


def test_each_action_is_drawn_with_each_of_its_moments() -> None:
    rules = [stroke["fault"] for seed in range(30) for stroke in drawn(seed)]
    assert {(rule["action"], rule["on"]) for rule in rules} == {
        (action, moment) for action, choice in CHOICES.items() for moment in choice.moments
    }
    assert {rule["vhost"] for rule in rules} == {"/"}
    assert {rule.get("is_mid_frame") for rule in rules if rule["action"] == "cut"} == {None, True}
    assert {rule.get("times") for rule in rules if rule["action"] == "confirm_nack"} == {1, 2, 3, 4, 5}
    delays = [rule["delay_ms"] for rule in rules if rule["action"] == "confirm_delay"]
    assert 10 <= min(delays) < 200 < 1800 < max(delays) <= 2000


def test_the_actions_that_lose_messages_or_concern_other_vhosts_are_not_drawn() -> None:
    assert set(ACTIONS) - set(CHOICES) == {
        *("drop_dead_letter", "refuse", "refuse_login", "slow_close", "stop_heartbeats", "unblock")
    }


def test_only_the_given_actions_are_drawn() -> None:
    assert {stroke["fault"]["action"] for stroke in drawn(1, actions=["cut", "return", "cut"])} == {"cut", "return"}


def test_a_stroke_hits_what_clients_do_and_ends() -> None:
    lab = new_lab()
    peer = lab.connect()
    peer.call(commands.Confirm.Select())
    nemesis = lab.broker.faults.begin_nemesis(lab.vhost, seed=1, pace_ms=1000, actions=["confirm_nack"])
    lab.advance(1500)
    for _ in range(6):
        peer.publish("q", b"x")
    [stroke] = nemesis.strokes
    assert (stroke.rule.hits, len(lab.broker.faults)) == (stroke.rule.times, 1)
    nemesis.end()
    assert (nemesis.is_over, len(lab.broker.faults)) == (True, 0)
    assert stroke_line(stroke.as_dict()).endswith(f"times={stroke.rule.times}: {stroke.rule.hits} hits")
    lab.advance(100_000)
    assert nemesis.stroke_count == 1


def test_a_removed_rule_ends_like_the_others() -> None:
    lab = new_lab()
    nemesis = lab.broker.faults.begin_nemesis(lab.vhost, seed=1, duration_ms=10_000, pace_ms=1000)
    lab.advance(1500)
    lab.broker.faults.remove(nemesis.strokes[-1].fault_id)
    other = lab.broker.faults.add(Rule("drop_ack"))
    lab.advance(20_000)
    assert nemesis.is_over
    assert list(lab.broker.faults) == [other]


def test_the_nemesis_ends_with_all_rules_and_with_its_vhost() -> None:
    lab = new_lab()
    vhost = lab.broker.add_vhost("other")
    for end in (lab.broker.faults.clear, lab.broker.delete_vhost):
        nemesis = lab.broker.faults.begin_nemesis(vhost, pace_ms=1000)
        end("other")
        lab.advance(5000)
        assert (nemesis.is_over, nemesis.stroke_count, lab.broker.faults.nemeses) == (True, 0, {})


def test_a_vhost_has_one_nemesis_at_work() -> None:
    lab = new_lab()
    first = lab.broker.faults.begin_nemesis(lab.vhost, seed=3)
    with pytest.raises(InvalidParameter, match="a nemesis is at work in vhost '/', with seed 3"):
        lab.broker.faults.begin_nemesis(lab.vhost)
    first.end()
    assert lab.broker.faults.begin_nemesis(lab.vhost) is lab.broker.faults.nemeses["/"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"seed": -1}, "seed must be a whole number from 0 to"),
        ({"seed": True}, "seed must be a whole number"),
        ({"duration_ms": 0}, "duration_ms must be a whole number from 1 to"),
        ({"pace_ms": 9}, "pace_ms must be a whole number from 10 to"),
        ({"pace_ms": 1.5}, "pace_ms must be a whole number"),
        ({"actions": "cut"}, "actions must be a list, not 'cut'"),
        ({"actions": None}, "actions must be a list, not None"),
        ({"actions": [[]]}, "a nemesis has no action []"),
        ({"actions": ["refuse"]}, "a nemesis has no action 'refuse', but confirm_nack, confirm_drop"),
    ],
    ids=str,
)
def test_impossible_values_are_refused(given: dict[str, Any], reason: str) -> None:
    lab = new_lab()
    with pytest.raises(InvalidParameter, match=re.escape(reason)):
        Nemesis(lab.broker, lab.vhost, **given)


def test_a_full_table_of_rules_makes_a_stroke_wait_for_room() -> None:
    lab = new_lab()
    nemesis = lab.broker.faults.begin_nemesis(lab.vhost, seed=1, pace_ms=100)
    for number in range(RULES_MAX):
        lab.broker.faults.add(Rule("drop_ack", queue=f"none{number}"))
    lab.advance(1000)
    assert (nemesis.stroke_count, nemesis.is_over) == (0, False)
    for rule in list(lab.broker.faults):
        lab.broker.faults.remove(rule.id)
    lab.advance(1000)
    assert nemesis.stroke_count > 0


def test_the_time_of_a_nemesis_ends_with_it() -> None:
    lab = new_lab()
    nemesis = lab.broker.faults.begin_nemesis(lab.vhost, seed=1, pace_ms=1000)
    lab.advance(3000)
    nemesis.end()
    elapsed_ms = nemesis.elapsed_ms
    lab.advance(50_000)
    nemesis.end()
    assert nemesis.elapsed_ms == elapsed_ms <= 3000


def test_the_last_strokes_are_kept() -> None:
    lab = new_lab()
    nemesis = lab.broker.faults.begin_nemesis(lab.vhost, seed=1, duration_ms=60_000, pace_ms=20)
    lab.advance(61_000)
    assert nemesis.stroke_count > STROKES_MAX == len(nemesis.strokes)


def test_a_stroke_is_a_line() -> None:
    lab = new_lab()
    rule = Rule("cut", "publish", "/", times=1, is_mid_frame=True)
    lab.broker.faults.add(rule)
    line = stroke_line({"begun_ms": 1234, "ended_ms": None, "fault": rule.as_dict()})
    assert line == "    1.23 s  cut on publish times=1 is_mid_frame=True: hit nothing"
    rule.hits = 1
    assert stroke_line({"begun_ms": 0, "ended_ms": 1, "fault": rule.as_dict()}).endswith(": 1 hit")
