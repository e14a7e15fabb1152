"""Fault rules that hit nothing, and what came closest."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.testing.failure_report import FailureReport
from amqp_broker.testing.unused_faults import unused
from tests.peer import Lab


class Tried:
    """Two clients of a broker whose vhost has a failure report."""

    def __init__(self) -> None:
        self.lab, self.report = Lab(), FailureReport()
        self.report.begin(self.lab.vhost)
        self.peer = self.lab.connect()
        (connection,) = self.lab.broker.connections
        connection.client_properties = {"connection_name": "orders", "capabilities": {"basic.nack": True}}
        self.peer.declare("paid", durable=True)
        self.peer.send(commands.Confirm.Select())
        self.peer.expect(commands.Confirm.SelectOk)

    def add(self, action: str, **fields: Any) -> Rule:
        return self.lab.broker.faults.add(Rule(action, **fields))

    def sentences(self) -> list[str]:
        broker = self.lab.broker
        return unused(broker.faults, self.report.events, broker.connections, broker.faults.methods)

    def reasons(self) -> list[str]:
        return [sentence.partition(" hit nothing: ")[2] for sentence in self.sentences()]


@pytest.fixture
def tried() -> Tried:
    return Tried()


def test_a_rule_that_has_hit_is_used(tried: Tried) -> None:
    tried.add("confirm_nack", routing_key="paid", times=1)
    tried.peer.publish("paid")
    tried.peer.publish("paid")
    assert not tried.sentences()


def test_a_sentence_names_the_rule_and_the_publishes_that_came_closest(tried: Tried) -> None:
    tried.add("confirm_nack", routing_key="payed", vhost="/", times=2)
    for _ in range(3):
        tried.peer.publish("paid")
    tried.peer.publish("new")
    assert tried.sentences() == [
        "fault 1 (confirm_nack on publish, routing_key='payed') hit nothing: "
        "3 publishes had routing_key 'paid'; 1 publish had routing_key 'new'"
    ]


def test_nothing_is_close_where_nothing_has_happened(tried: Tried) -> None:
    tried.add("confirm_nack")
    tried.add("cut", on="deliver")
    tried.add("drop_ack")
    assert tried.reasons() == ["there was no publish", "there was no delivery", "there was no ack"]


@pytest.mark.parametrize(
    ("fields", "missed"),
    [
        ({"exchange": "shop"}, "exchange ''"),
        ({"exchange": "amq.default", "routing_key": "shop"}, "routing_key 'paid'"),
        ({"queue": "shop"}, "queue 'paid'"),
        ({"user": "shop"}, "user 'guest'"),
        ({"connection": "shop"}, "connection 'orders', 'ADDRESS'"),
        ({"client_property": {"connection_name": "shop"}}, "client_property 'connection_name=orders'"),
        ({"client_property": {"product": "shop"}}, "client_property none"),
        ({"exchange": "regex:^shop", "user": "shop"}, "user 'guest' and exchange ''"),
    ],
)
def test_the_fields_that_do_not_match_have_their_values(tried: Tried, fields: dict[str, Any], missed: str) -> None:
    tried.add("confirm_nack", **fields)
    tried.peer.publish("paid")
    name = tried.peer.session.name
    assert tried.reasons() == [f"1 publish had {missed.replace('ADDRESS', name)}"]


def test_of_several_publishes_those_with_the_fewest_other_fields_are_named(tried: Tried) -> None:
    tried.add("confirm_nack", exchange="amq.topic", routing_key="payed")
    tried.peer.publish("paid")
    tried.peer.publish("paid", exchange="amq.topic")
    assert tried.reasons() == ["1 publish had routing_key 'paid'"]


def test_a_client_that_has_left_is_known_by_its_address(tried: Tried) -> None:
    tried.add("confirm_nack", connection="shop")
    tried.peer.publish("paid")
    name = tried.peer.session.name
    tried.peer.disconnect()
    assert tried.reasons() == [f"1 publish had connection '{name}'"]


def test_a_long_value_is_cut(tried: Tried) -> None:
    tried.add("confirm_nack", client_property={"connection_name": "shop"})
    (connection,) = tried.lab.broker.connections
    connection.client_properties = {"connection_name": "x" * 100_000}
    tried.peer.publish("paid")
    assert tried.reasons() == [f"1 publish had client_property 'connection_name={'x' * 84}'…"]


def test_matches_that_a_rule_passes_over_are_counted(tried: Tried) -> None:
    tried.add("confirm_nack", after=2)
    tried.add("confirm_drop", probability=1e-9, seed=1)
    for _ in range(2):
        tried.peer.publish("paid")
    assert tried.reasons() == [
        "2 publishes matched, but the first 2 are passed over",
        "2 publishes matched, but none with its probability",
    ]


def test_a_match_without_an_effect_refers_to_the_places_of_rules(tried: Tried) -> None:
    tried.add("return")
    tried.add("cut", on="deliver", queue="paid")
    tried.peer.publish("paid")
    tried.peer.expect(commands.Basic.Ack)
    assert tried.peer.get("paid") is not None
    see = "matched, but could show no effect (docs/faults.md#where-rules-apply)"
    assert tried.reasons() == [f"1 publish {see}", f"1 delivery {see}"]


def test_deliveries_and_acks_have_the_name_of_their_queue(tried: Tried) -> None:
    tried.add("duplicate", queue="shop")
    tried.add("drop_ack", queue="shop")
    tried.peer.publish("paid")
    tried.peer.expect(commands.Basic.Ack)
    assert tried.peer.get("paid", no_ack=False) is not None
    tried.peer.send(commands.Basic.Ack(1))
    assert tried.reasons() == ["1 delivery had queue 'paid'", "1 ack had queue 'paid'"]


def test_rules_on_methods_name_the_methods_that_came_closest(tried: Tried) -> None:
    tried.add("close_channel", on="method", method="queue.declare", queue="payed")
    assert tried.reasons() == ["there was no method"]
    for _ in range(2):
        tried.peer.declare("paid", durable=True)
    tried.peer.call(commands.Basic.Consume(queue="paid"))
    assert tried.reasons() == ["2 methods had queue 'paid'"]


def test_a_rule_of_a_sequence_that_has_not_begun_names_the_one_before_it(tried: Tried) -> None:
    tried.add("confirm_nack", times=3, then=[{"action": "confirm_drop"}])
    tried.peer.publish("paid")
    assert tried.sentences() == [
        "fault 2 (confirm_drop on publish) hit nothing: it follows fault 1, which hit 1 of 3 times"
    ]


def test_rules_on_connections_name_those_that_are_open(tried: Tried) -> None:
    tried.add("cut", connection="shop")
    tried.add("block", on="open", connection="orders")
    tried.add("refuse_login", user="other")
    name = tried.peer.session.name
    assert tried.reasons() == [
        f"1 connection had connection 'orders', '{name}'",
        "1 connection matched, but could show no effect (docs/faults.md#where-rules-apply)",
        "1 connection had user 'guest'",
    ]
    tried.peer.disconnect()
    assert tried.reasons() == ["no connection is open now"] * 3


def test_the_closest_dead_letter_is_named_with_its_source_and_its_targets(tried: Tried) -> None:
    tried.peer.declare("dying", arguments={"x-dead-letter-exchange": "", "x-max-length": 0})
    tried.peer.declare("paid.dead", arguments={"x-dead-letter-exchange": "amq.direct", "x-max-length": 0})
    tried.peer.declare("dead")
    tried.peer.call(commands.Queue.Bind(queue="dead", exchange="amq.direct", routing_key="paid.dead"))
    tried.add("drop_dead_letter", queue="letters")
    assert tried.reasons() == ["there was no dead letter"]
    tried.peer.publish("paid.dead")
    assert tried.reasons() == ["1 dead letter had queue 'paid.dead', 'dead'"]
