"""Faults of methods: those that a rule hits are not carried out."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import base, commands

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.amqp.methods import name_of
from amqp_broker.broker.lab.fault_rules import METHODS, Rule
from amqp_broker.session.wire.dispatch import CHANNEL_METHODS
from tests.broker.lab.confirming import bodies, publish
from tests.peer import Lab, Peer

DECLARE = commands.Queue.Declare(queue="orders.new")


def bind(queue: str) -> base.Frame:
    return commands.Queue.Bind(queue=queue, exchange="amq.topic", routing_key="a.b")


def closed(peer: Peer) -> tuple[int, str, str]:
    """Expect that the channel is closed; return the code, the text and the method that is named."""
    close = peer.expect(commands.Channel.Close)
    assert close.class_id is not None
    assert close.method_id is not None
    assert close.reply_code is not None
    named = commands.INDEX_MAPPING[close.class_id << 16 | close.method_id]
    return close.reply_code, close.reply_text, name_of(named)


def test_each_method_of_a_channel_can_be_hit() -> None:
    assert sorted(map(name_of, CHANNEL_METHODS)) == list(METHODS)


def test_a_method_that_is_hit_has_no_effect_and_the_next_one_has(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("close_channel", on="method", method="queue.declare", times=1))
    peer.send(DECLARE)
    assert closed(peer) == (406, "PRECONDITION_FAILED - closed by a fault", "queue.declare")
    assert "orders.new" not in lab.vhost.queues
    peer.send(commands.Channel.CloseOk(), commands.Channel.Open())
    peer.expect(commands.Channel.OpenOk)
    peer.send(DECLARE)
    peer.expect(commands.Queue.DeclareOk)
    assert (rule.matched, rule.hits) == (1, 1)


def test_a_rule_has_the_code_and_text_of_a_real_error(lab: Lab, peer: Peer) -> None:
    text = "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q' in vhost '/'"
    lab.broker.faults.add(Rule("close_channel", on="method", method="basic.consume", code=405, text=text))
    peer.send(commands.Basic.Consume(queue="q"))
    assert closed(peer) == (405, text, "basic.consume")
    assert not lab.vhost.queues["q"].consumer_count


@pytest.mark.parametrize(
    ("fields", "method"),
    [
        ({"queue": "orders.*"}, DECLARE),
        ({"queue": "q"}, bind("")),
        ({"exchange": "amq.*", "routing_key": "a.*"}, bind("q")),
        ({"exchange": "amq.topic"}, commands.Exchange.Bind(source="amq.topic", destination="amq.fanout")),
        ({"exchange": "amq.fanout"}, commands.Exchange.Bind(source="amq.topic", destination="amq.fanout")),
        ({"exchange": "amq.default"}, commands.Queue.Bind(queue="q", exchange="", routing_key="k")),
        ({"method": "basic.recover-async"}, commands.Basic.RecoverAsync()),
        ({"method": "regex:queue\\.(purge|delete)", "queue": "q"}, commands.Queue.Purge(queue="q")),
        ({"queue": "q", "user": "guest", "vhost": "/"}, commands.Basic.Get(queue="q")),
        ({"method": "tx.*"}, commands.Tx.Select()),
        ({}, commands.Basic.Qos(prefetch_count=1)),
    ],
)
def test_a_rule_selects_methods_by_their_names(lab: Lab, peer: Peer, fields: dict[str, Any], method: Any) -> None:
    lab.broker.faults.add(Rule("close_channel", on="method", **fields))
    peer.send(method)
    assert closed(peer)[2] == name_of(type(method))


@pytest.mark.parametrize(
    "fields",
    [
        {"queue": "other"},
        {"routing_key": "*"},
        {"exchange": "*"},
        {"method": "queue.bind"},
        {"user": "other"},
        {"connection": "other"},
    ],
)
def test_a_name_that_a_method_does_not_have_or_that_differs_does_not_match(
    lab: Lab, peer: Peer, fields: dict[str, Any]
) -> None:
    rule = lab.broker.faults.add(Rule("close_channel", on="method", **fields))
    peer.send(DECLARE)
    peer.expect(commands.Queue.DeclareOk)
    assert rule.matched == 0


def test_a_cancel_is_about_the_queue_of_its_consumer(lab: Lab, peer: Peer) -> None:
    peer.call(commands.Basic.Consume(queue="q", consumer_tag="c"))
    lab.broker.faults.add(Rule("close_channel", on="method", method="basic.cancel", queue="q"))
    peer.send(commands.Basic.Cancel(consumer_tag="unknown"))
    peer.expect(commands.Basic.CancelOk)
    peer.send(commands.Basic.Cancel(consumer_tag="c"))
    assert closed(peer)[2] == "basic.cancel"


def test_a_commit_that_is_hit_publishes_nothing(lab: Lab, peer: Peer) -> None:
    peer.call(commands.Tx.Select())
    publish(peer, b"1")
    lab.broker.faults.add(Rule("close_channel", on="method", method="tx.commit"))
    peer.send(commands.Tx.Commit())
    assert closed(peer)[2] == "tx.commit"
    assert bodies(lab) == []


def test_a_channel_that_the_client_closes_is_cut_but_not_closed_by_a_rule(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("close_channel", on="method"))
    peer.send(commands.Channel.Close(200, "", 0, 0))
    peer.expect(commands.Channel.CloseOk)
    lab.broker.faults.add(Rule("cut", on="method", method="channel.close"))
    peer.send(commands.Channel.Open())
    peer.expect(commands.Channel.OpenOk)
    peer.send(commands.Channel.Close(200, "", 0, 0))
    assert (peer.session.state.ignores_input, rule.hits) == (True, 0)


@pytest.mark.parametrize("action", ["close_connection", "cut", "reset", "black_hole"])
def test_a_rule_ends_the_connection_before_a_method_acts(lab: Lab, peer: Peer, action: str) -> None:
    rule = lab.broker.faults.add(Rule(action, on="method", method="queue.*"))
    peer.send(DECLARE, DECLARE)
    assert rule.hits == 1
    assert "orders.new" not in lab.vhost.queues


def test_a_hit_is_an_event_that_names_the_method(lab: Lab, peer: Peer) -> None:
    log = lab.broker.event_logs.start(lab.vhost)
    lab.broker.faults.add(Rule("close_channel", on="method", method="queue.*"))
    peer.send(DECLARE)
    (event,) = log.events
    assert (event.kind, event.more["action"], event.more["on"]) == ("fault", "close_channel", "method")
    assert event.more["method"] == "queue.declare"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"on": "method", "method": "queue.declar"}, "method 'queue.declar' is none of those that a rule can hit: acc"),
        ({"on": "method", "method": "queue.declar"}, "; did you mean 'queue.declare'"),
        ({"on": "method", "method": "basic.ack"}, "method 'basic.ack' is none of those that a rule can hit"),
        ({"on": "method", "method": "channel.close"}, "method 'channel.close' is none of those"),
        ({"on": "publish", "method": "queue.declare"}, "'method' is not known on 'publish'"),
        ({"on": "method", "method": 5}, "method must be a text, not 5"),
        ({"on": "method", "method": "regex:("}, "unterminated|missing"),
    ],
)
def test_a_rule_that_can_hit_no_method_is_refused(lab: Lab, fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidParameter, match=reason):
        lab.broker.faults.add(Rule("close_channel", **fields))


def test_no_method_is_remembered_without_a_rule_on_methods(lab: Lab, peer: Peer) -> None:
    faults = lab.broker.faults
    first, second = (faults.add(Rule("black_hole", on="method", method=name)) for name in ("tx.select", "basic.get"))
    peer.send(DECLARE)
    peer.expect(commands.Queue.DeclareOk)
    faults.remove(first.id)
    assert [method.name for method in faults.methods] == ["queue.declare"]
    faults.remove(second.id)
    assert not faults.methods
