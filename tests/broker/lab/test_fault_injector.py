"""The rules in force, and which of them hit."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from amqp_broker.amqp.errors import DoesNotExist, InvalidParameter
from amqp_broker.broker.lab.fault_rules import RULES_MAX, Rule
from amqp_broker.broker.operations.resetting import reset_vhost
from amqp_broker.broker.queues.kept_dead_letters import RETRY_MS
from tests.broker_parts import new_broker
from tests.peer import Lab, Peer


def test_rules_are_kept_in_order_and_removed_by_id() -> None:
    faults = new_broker().faults
    rules = [faults.add(Rule("confirm_nack")) for _ in range(3)]
    faults.remove(rules[1].id)
    assert list(faults) == [rules[0], rules[2]]
    assert [rule.action for rule in faults] == ["confirm_nack", "confirm_nack"]
    with pytest.raises(DoesNotExist):
        faults.remove(2)
    faults.clear()
    assert len(faults) == 0


def test_a_rule_can_be_added_again_only_after_it_was_removed() -> None:
    faults = new_broker().faults
    rule = faults.add(Rule("confirm_nack"))
    with pytest.raises(InvalidParameter, match="in force already, as fault 1"):
        faults.add(rule)
    faults.remove(1)
    assert faults.add(rule).id == 2


@pytest.mark.parametrize(
    ("rule", "is_of_queues"),
    [
        (Rule("refuse"), False),
        (Rule("drop_dead_letter"), False),
        (Rule("latency", delay_ms=1), False),
        (Rule("close_channel", on="method", method="basic.get"), False),
        (Rule("confirm_nack", queue="q"), True),
        (Rule("duplicate"), True),
        (Rule("drop_ack"), True),
    ],
    ids=lambda value: getattr(value, "action", None),
)
def test_only_rules_on_messages_look_at_the_queues(
    lab: Lab, peer: Peer, rule: Rule, is_of_queues: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, looks = lab.vhost.queues["q"], []
    monkeypatch.setattr(queue, "follow_faults", lambda: looks.append(queue))
    lab.broker.faults.add(rule)
    assert looks == [queue] * is_of_queues
    lab.broker.faults.clear()
    assert looks == 2 * [queue] * is_of_queues


def test_a_rule_for_an_unknown_vhost_is_refused() -> None:
    faults = new_broker().faults
    with pytest.raises(InvalidParameter, match="there is no vhost 'typo'"):
        faults.add(Rule("confirm_nack", vhost="typo"))
    assert len(faults) == 0


def test_the_number_of_rules_is_bounded() -> None:
    faults = new_broker().faults
    for _ in range(RULES_MAX):
        faults.add(Rule("cut"))
    with pytest.raises(InvalidParameter, match="1000 faults already"):
        faults.add(Rule("cut"))


def test_deleting_or_resetting_a_vhost_removes_its_rules() -> None:
    broker = new_broker()
    broker.add_vhost("a")
    everywhere = broker.faults.add(Rule("confirm_nack"))
    broker.faults.add(Rule("confirm_nack", vhost="a"))
    here = broker.faults.add(Rule("confirm_nack", vhost="/"))
    broker.delete_vhost("a")
    assert list(broker.faults) == [everywhere, here]
    reset_vhost(broker.vhosts["/"])
    assert list(broker.faults) == [everywhere]


def test_only_routes_and_queues_that_a_rule_concerns_leave_the_hot_path(lab: Lab, peer: Peer) -> None:
    peer.declare("other")
    lab.broker.faults.add(Rule("confirm_nack", vhost="/", routing_key="q"))
    rule = lab.broker.faults.add(Rule("duplicate", queue="other"))
    peer.publish("q")
    peer.publish("other")
    routes = {route.address.routing_key: route.is_plain for route in peer.session.routes.values()}
    assert routes == {"q": False, "other": True}
    assert not lab.vhost.queues["q"].has_extras
    assert lab.vhost.queues["other"].has_extras
    lab.broker.faults.remove(rule.id)
    assert not lab.vhost.queues["other"].has_extras


def test_a_spent_rule_costs_nothing(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("confirm_nack", routing_key="q", times=1))
    peer.call(commands.Confirm.Select())
    peer.publish("q")
    peer.publish("q")
    assert (rule.hits, rule.matched, lab.broker.faults.on_publish) == (1, 1, ())
    assert all(route.is_plain for route in peer.session.routes.values())


DYING = {"x-dead-letter-exchange": "amq.fanout", "x-max-length": 0}


@pytest.mark.parametrize(
    ("said", "is_hit"),
    [
        ({}, True),
        ({"vhost": "/", "exchange": "amq.fanout", "routing_key": "dying", "queue": "dying"}, True),
        # A target, and one of several.
        ({"queue": "dead"}, True),
        ({"queue": "other"}, True),
        ({"exchange": "amq.default"}, False),
        ({"routing_key": "dead"}, False),
        ({"queue": "q"}, False),
    ],
)
def test_a_rule_has_a_dead_letter_reach_no_target(lab: Lab, peer: Peer, said: dict[str, Any], is_hit: bool) -> None:
    for name in ("dead", "other"):
        peer.declare(name)
        peer.call(commands.Queue.Bind(queue=name, exchange="amq.fanout"))
    peer.declare("dying", arguments=DYING)
    rule = lab.broker.faults.add(Rule("drop_dead_letter", times=1, **said))
    peer.publish("dying", b"1")
    peer.publish("dying", b"2")
    expected = 1 if is_hit else 2
    assert [lab.vhost.queues[name].ready_count for name in ("dead", "other")] == [expected, expected]
    assert (rule.matched, rule.hits) == (int(is_hit), int(is_hit))


def test_a_dead_letter_that_has_no_target_is_hit_by_no_rule(lab: Lab, peer: Peer) -> None:
    peer.declare("dying", arguments=DYING)
    rule = lab.broker.faults.add(Rule("drop_dead_letter"))
    peer.publish("dying")
    assert rule.matched == 0


def test_a_quorum_queue_keeps_a_dead_letter_that_a_rule_drops_and_tries_again(lab: Lab, peer: Peer) -> None:
    peer.declare("dead")
    declared = {
        "x-queue-type": "quorum",
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "dead",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
    peer.declare("dying", durable=True, arguments=declared)
    rule = lab.broker.faults.add(Rule("drop_dead_letter", times=2))
    peer.publish("dying", b"1")
    pulled = peer.get("dying", no_ack=False)
    assert pulled is not None
    peer.send(commands.Basic.Reject(pulled[0].delivery_tag or 0, requeue=False))
    queues = lab.vhost.queues
    assert (queues["dying"].message_count, queues["dead"].ready_count) == (1, 0)
    lab.advance(10 * RETRY_MS)
    assert (queues["dying"].message_count, queues["dead"].ready_count, rule.hits) == (0, 1, 2)
