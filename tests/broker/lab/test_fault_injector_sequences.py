"""Rules that follow each other: each begins when the one before it is spent."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from amqp_broker.amqp.errors import DoesNotExist, InvalidParameter
from amqp_broker.broker.lab.fault_rules import RULES_MAX, Rule
from tests.broker.lab.confirming import bodies, confirms, publish
from tests.peer import Lab, Peer

DELAY_ONCE: dict[str, Any] = {"action": "confirm_delay", "delay_ms": 2000, "times": 1}


def hits(lab: Lab) -> list[int]:
    return [rule.hits for rule in lab.broker.faults]


def answers(publisher: Peer) -> list[tuple[str, int]]:
    """Return the kinds and tags of the confirms that have arrived."""
    return [(kind, tag) for kind, tag, _ in confirms(publisher)]


def test_a_nack_then_a_late_confirm_then_confirms(lab: Lab, publisher: Peer) -> None:
    lab.broker.faults.add(Rule("confirm_nack", routing_key="q", then=[DELAY_ONCE]))
    publish(publisher, b"1")
    assert answers(publisher) == [("Nack", 1)]
    publish(publisher, b"2")
    publish(publisher, b"3")
    assert answers(publisher) == [("Ack", 3)]
    lab.advance(2000)
    assert answers(publisher) == [("Ack", 2)]
    assert (bodies(lab), hits(lab)) == ([b"2", b"3"], [1, 1])


def test_a_rule_begins_only_with_the_message_after_the_last_hit_before_it(lab: Lab, publisher: Peer) -> None:
    lab.broker.faults.add(Rule("confirm_nack", times=2, then=[{"action": "confirm_nack", "after": 1, "times": 1}]))
    for body in (b"1", b"2", b"3", b"4", b"5"):
        publish(publisher, body)
    assert bodies(lab) == [b"3", b"5"]
    assert answers(publisher) == [("Nack", 1), ("Nack", 2), ("Ack", 3), ("Nack", 4), ("Ack", 5)]


def test_the_last_rule_of_a_sequence_hits_for_ever_unless_it_has_times(lab: Lab, publisher: Peer) -> None:
    lab.broker.faults.add(Rule("confirm_drop", then=[{"action": "confirm_nack"}]))
    publish(publisher, b"1", b"2", b"3", b"4")
    assert hits(lab) == [1, 3]


def test_a_block_and_the_return_after_it_hit_two_messages(lab: Lab, publisher: Peer) -> None:
    lab.broker.faults.add(Rule("block", on="publish", duration_ms=1, then=[{"action": "return", "times": 1}]))
    publish(publisher, b"1", mandatory=True)
    assert hits(lab) == [1, 0]


def test_rules_of_a_sequence_have_the_same_fields_unless_they_have_their_own(lab: Lab, publisher: Peer) -> None:
    steps: list[dict[str, Any]] = [
        {"action": "confirm_nack", "routing_key": None},
        {"action": "drop_ack", "queue": "other"},
    ]
    lab.broker.faults.add(Rule("confirm_drop", vhost="/", routing_key="q", then=steps))
    given = [rule.as_dict() for rule in lab.broker.faults]
    assert [(one["vhost"], one.get("routing_key"), one.get("queue")) for one in given] == [
        ("/", "q", None),
        ("/", None, None),
        ("/", "q", "other"),
    ]
    assert [(one["id"], one.get("follows"), one.get("times")) for one in given] == [
        (1, None, 1),
        (2, 1, 1),
        (3, 2, None),
    ]
    assert all("then" not in one for one in given)


def test_a_fault_of_a_method_is_followed_by_one_of_a_publish(lab: Lab, peer: Peer) -> None:
    step = {"action": "confirm_nack", "on": "publish", "method": None, "times": 1}
    lab.broker.faults.add(Rule("close_channel", on="method", method="queue.declare", then=[step]))
    publish(peer, b"1")
    assert bodies(lab) == [b"1"]
    peer.send(commands.Queue.Declare(queue="new"))
    peer.expect(commands.Channel.Close)
    assert hits(lab) == [1, 0]
    other = lab.connect()
    other.call(commands.Confirm.Select())
    publish(other, b"2")
    assert answers(other) == [("Nack", 1)]


def test_removing_a_rule_removes_those_that_follow_it(lab: Lab) -> None:
    faults = lab.broker.faults
    first = faults.add(Rule("confirm_nack", then=[DELAY_ONCE, DELAY_ONCE]))
    other = faults.add(Rule("drop_ack"))
    faults.remove(2)
    assert list(faults) == [first, other]
    with pytest.raises(DoesNotExist):
        faults.remove(3)
    faults.clear()
    assert not len(faults)


def test_a_sequence_of_a_vhost_is_cleared_with_it(lab: Lab) -> None:
    lab.broker.faults.add(Rule("confirm_nack", vhost="/", then=[DELAY_ONCE]))
    lab.broker.faults.clear("/")
    assert not len(lab.broker.faults)


def test_a_rule_of_a_sequence_that_was_removed_can_be_added_again(lab: Lab, publisher: Peer) -> None:
    faults = lab.broker.faults
    rule = faults.add(Rule("confirm_nack", then=[DELAY_ONCE]))
    faults.remove(rule.id)
    faults.add(rule)
    publish(publisher, b"1", b"2")
    assert hits(lab) == [1, 1]


@pytest.mark.parametrize(
    ("then", "reason"),
    [
        ("confirm_nack", "then must be a list of objects"),
        ({"action": "confirm_nack"}, "then must be a list of objects"),
        (["confirm_nack"], "then must be a list of objects"),
        ([{"on": "publish"}], "a fault needs an 'action'"),
        ([{"action": "nack"}], "unknown action 'nack'"),
        ([{"action": "confirm_nack", "size": 1}], "a fault has no field 'size'"),
        ([{"action": "confirm_nack", "then": []}], "a rule in 'then' has no 'then' of its own"),
        ([{"action": "cut", "on": "now"}], "a rule on 'now' is no part of a sequence"),
        ([{"action": "cut", "on": "open"}], "'routing_key' is not known on 'open'"),
        ([{"action": "confirm_nack", "vhost": "typo"}], "there is no vhost 'typo'"),
        ([DELAY_ONCE] * RULES_MAX, "then has 1000 rules, and 999 is the most"),
        ([{"action": "confirm_nack", "times": 0}, DELAY_ONCE], "times must be a whole number from 1"),
    ],
)
def test_a_sequence_that_is_not_possible_is_refused_as_a_whole(lab: Lab, then: Any, reason: str) -> None:
    with pytest.raises(InvalidParameter, match=reason):
        lab.broker.faults.add(Rule("confirm_nack", routing_key="q", then=then))
    assert not len(lab.broker.faults)


def test_a_sequence_counts_as_many_rules_as_it_has(lab: Lab) -> None:
    lab.broker.faults.add(Rule("confirm_nack", then=[DELAY_ONCE] * (RULES_MAX - 2)))
    with pytest.raises(InvalidParameter, match="there are 999 faults already, and 1000 is the most"):
        lab.broker.faults.add(Rule("confirm_nack", then=[DELAY_ONCE]))
    assert lab.broker.faults.add(Rule("confirm_nack")).id == RULES_MAX


def test_a_rule_on_now_begins_no_sequence(lab: Lab) -> None:
    with pytest.raises(InvalidParameter, match="a rule on 'now' is no part of a sequence"):
        lab.broker.faults.add(Rule("cut", then=[DELAY_ONCE]))
