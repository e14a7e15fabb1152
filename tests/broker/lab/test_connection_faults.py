"""Faults of a connection: refused, closed, cut, blocked or swallowed."""

from __future__ import annotations

import contextlib

import pytest
from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.broker.lab.fault_rules import Rule
from tests.broker.lab.confirming import bodies, confirms, publish
from tests.peer import Lab, Peer


@pytest.mark.parametrize(("on", "stored"), [("publish", [b"1"]), ("confirm", [b"1", b"2"])])
def test_a_channel_is_closed_before_a_publish_or_before_its_confirm(
    lab: Lab, publisher: Peer, on: str, stored: list[bytes]
) -> None:
    lab.broker.faults.add(Rule("close_channel", on=on, code=404, text="NOT_FOUND - gone", after=1, times=1))
    publish(publisher, b"1", b"2", b"3")
    ack = publisher.expect(commands.Basic.Ack)
    assert (ack.delivery_tag, ack.multiple) == (1, False)
    assert publisher.expect_channel_close(404) == "NOT_FOUND - gone"
    assert bodies(lab) == stored
    publisher.expect_nothing()


@pytest.mark.parametrize(("on", "stored"), [("publish", []), ("confirm", [b"1"])])
def test_a_connection_is_closed_with_a_code(lab: Lab, publisher: Peer, on: str, stored: list[bytes]) -> None:
    lab.broker.faults.add(Rule("close_connection", on=on))
    publish(publisher, b"1", b"2")
    assert publisher.expect_connection_close(320) == "CONNECTION_FORCED - closed by a fault"
    assert publisher.is_dropped
    assert bodies(lab) == stored


def test_a_rule_on_now_closes_connections_at_once(lab: Lab, publisher: Peer) -> None:
    other = lab.connect()
    rule = lab.broker.faults.add(Rule("close_connection", connection=other.session.name, code=541, text="BROKEN"))
    assert other.expect_connection_close(541) == "BROKEN"
    assert (rule.hits, rule.is_spent) == (1, True)
    publisher.expect_nothing()
    lab.broker.faults.add(Rule("close_channel"))
    assert publisher.expect_channel_close(406) == "PRECONDITION_FAILED - closed by a fault"


@pytest.mark.parametrize("action", ["cut", "reset"])
def test_earlier_confirms_leave_before_the_connection_is_cut(lab: Lab, publisher: Peer, action: str) -> None:
    lab.broker.faults.add(Rule(action, on="confirm", after=1))
    publish(publisher, b"1", b"2", b"3")
    assert confirms(publisher) == [("Ack", 1, False)]
    assert (publisher.is_dropped, publisher.session.faults.resets_socket) == (True, action == "reset")
    assert bodies(lab) == [b"1", b"2"]


def test_a_cut_can_tear_a_frame(lab: Lab, publisher: Peer) -> None:
    lab.broker.faults.add(Rule("cut", on="publish", is_mid_frame=True))
    publish(publisher, b"1")
    assert b"".join(publisher.session.outbox.take()) == b"\x08\0\0\0\0"
    assert publisher.is_dropped


def test_messages_of_a_cut_connection_are_requeued(lab: Lab, publisher: Peer) -> None:
    consumer = lab.connect()
    consumer.consume("q")
    publish(publisher, b"1")
    assert consumer.bodies() == [b"1"]
    lab.broker.faults.add(Rule("cut", vhost="/", connection=consumer.session.name))
    assert consumer.is_dropped
    assert bodies(lab) == [b"1"]
    assert not publisher.is_dropped


def test_a_black_hole_ignores_input_and_sends_nothing_until_its_rule_is_removed(lab: Lab, publisher: Peer) -> None:
    rule = lab.broker.faults.add(Rule("black_hole", on="publish", times=1))
    publish(publisher, b"1", b"2")
    assert bodies(lab) == []
    assert publisher.session.blocking.is_blocked
    assert publisher.session.outbox.held_until > lab.broker.journal.batch
    publish(publisher, b"3")
    lab.broker.set_alarm("memory", True)
    lab.broker.set_alarm("memory", False)
    assert publisher.session.blocking.is_blocked
    assert not publisher.is_dropped
    assert bodies(lab) == []
    lab.broker.faults.remove(rule.id)
    assert (publisher.is_dropped, publisher.session.faults.resets_socket, publisher.session.outbox.held_until) == (
        True,
        True,
        0,
    )
    publisher.expect_nothing()
    assert lab.broker.connections == set()


def test_missing_heartbeats_end_a_connection_in_a_black_hole(lab: Lab) -> None:
    peer = lab.peer()
    peer.open(heartbeat=10)
    peer.open_channel(1)
    peer.declare("q")
    rule = lab.broker.faults.add(Rule("black_hole"))
    lab.advance(40_000)
    assert lab.broker.connections == set()
    # The client receives nothing: the shell writes no output while it is held.
    assert peer.session.outbox.held_until
    peer.disconnect()
    assert rule.affected == {}


def test_heartbeats_stop(lab: Lab) -> None:
    peer = lab.peer()
    peer.open(heartbeat=10)
    rule = lab.broker.faults.add(Rule("stop_heartbeats"))
    for _ in range(6):
        lab.advance(5_000)
        peer.send_bytes(b"\x08\0\0\0\0\0\0\xce")
    peer.expect_nothing()
    lab.broker.faults.remove(rule.id)
    lab.advance(10_000)
    assert b"".join(peer.session.outbox.take()) == b"\x08\0\0\0\0\0\0\xce"


def test_connections_are_blocked_with_a_reason_and_unblocked(lab: Lab, publisher: Peer) -> None:
    rule = lab.broker.faults.add(Rule("block", text="low on patience"))
    assert publisher.expect(commands.Connection.Blocked, 0).reason == "low on patience"
    assert (publisher.session.blocking.is_blocked, publisher.session.status) == (True, "blocked")
    lab.broker.faults.remove(rule.id)
    publisher.expect(commands.Connection.Unblocked, 0)
    assert (publisher.session.blocking.is_blocked, publisher.session.status) == (False, "running")


def test_a_block_lasts_as_long_as_it_says(lab: Lab, publisher: Peer) -> None:
    lab.broker.faults.add(Rule("block", on="publish", duration_ms=300, times=1))
    publish(publisher, b"1")
    assert publisher.expect(commands.Connection.Blocked, 0).reason == "low on memory"
    assert publisher.expect(commands.Basic.Ack).delivery_tag == 1
    lab.advance(300)
    publisher.expect(commands.Connection.Unblocked, 0)


def test_unblock_ends_the_blocks_of_all_rules(lab: Lab, publisher: Peer) -> None:
    lab.broker.faults.add(Rule("block"))
    publisher.expect(commands.Connection.Blocked, 0)
    lab.broker.faults.add(Rule("unblock", vhost="/"))
    publisher.expect(commands.Connection.Unblocked, 0)


@pytest.mark.parametrize("ends", ["lifted", "removed"])
def test_a_block_that_has_ended_does_not_shorten_the_next(lab: Lab, publisher: Peer, ends: str) -> None:
    rule = lab.broker.faults.add(Rule("block", on="publish", duration_ms=300))
    publish(publisher, b"1")
    lab.advance(200)
    if ends == "lifted":
        lab.broker.faults.add(Rule("unblock"))
    else:
        lab.broker.faults.remove(rule.id)
        lab.broker.faults.add(rule)
    publish(publisher, b"2")
    lab.advance(299)
    assert publisher.session.blocking.is_blocked
    lab.advance(1)
    assert not publisher.session.blocking.is_blocked


def test_a_new_connection_is_blocked_when_it_is_open(lab: Lab) -> None:
    lab.broker.faults.add(Rule("block", on="open"))
    peer = lab.peer()
    peer.open()
    peer.expect(commands.Connection.Blocked, 0)


def test_a_rule_refuses_a_login(lab: Lab) -> None:
    rule = lab.broker.faults.add(Rule("refuse_login", user="guest", times=1))
    peer = lab.peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    peer.expect(commands.Connection.Start, 0)
    table: FieldTable = {"capabilities": {"authentication_failure_close": True}}
    peer.send(commands.Connection.StartOk(table, "PLAIN", "\0guest\0guest"), channel=0)
    assert "Login was refused using authentication mechanism PLAIN" in peer.expect_connection_close(403)
    assert rule.hits == 1
    lab.connect()


@pytest.mark.parametrize("on", ["login", "open"])
def test_a_connection_is_cut_while_it_opens(lab: Lab, on: str) -> None:
    lab.broker.faults.add(Rule("cut", on=on, user="guest", times=1))
    peer = lab.peer()
    with contextlib.suppress(AssertionError):
        peer.open()
    assert peer.is_dropped
    assert (peer.session.vhost is not None) is (on == "open")
    lab.connect()


def test_a_rule_on_now_does_not_match_a_connection_without_a_login(lab: Lab) -> None:
    peer = lab.peer()
    assert lab.broker.faults.add(Rule("cut")).hits == 0
    assert not peer.is_dropped


@pytest.mark.parametrize(("rule", "is_refused"), [(Rule("refuse"), True), (Rule("drop_ack"), False)])
def test_only_rules_about_connecting_refuse_a_connection(lab: Lab, rule: Rule, is_refused: bool) -> None:
    lab.broker.faults.add(rule)
    peer = lab.peer()
    peer.session.faults.on_connect()
    assert peer.is_dropped is is_refused


def test_nothing_is_delivered_into_a_black_hole(lab: Lab, publisher: Peer) -> None:
    consumer = lab.connect()
    consumer.consume("q")
    lab.broker.faults.add(Rule("black_hole", connection=consumer.session.name))
    publish(publisher, b"waits")
    assert lab.vhost.queues["q"].ready_count == 1


def test_a_rule_on_now_counts_only_connections_that_show_an_effect(lab: Lab) -> None:
    peer = lab.peer()
    peer.open()
    lab.peer()
    rules = [lab.broker.faults.add(Rule(action)) for action in ("unblock", "close_channel", "stop_heartbeats")]
    assert [rule.hits for rule in rules] == [0, 0, 0]
    peer.expect_nothing()
    peer.open_channel(1)
    assert [lab.broker.faults.add(Rule(action)).hits for action in ("block", "unblock", "close_channel")] == [1, 1, 1]


@pytest.mark.parametrize(("first", "second"), [("cut", "black_hole"), ("cut", "latency"), ("black_hole", "block")])
def test_one_rule_ends_a_connection_that_opens(lab: Lab, first: str, second: str) -> None:
    rules = [
        lab.broker.faults.add(Rule(action, on="open", delay_ms=5 if action == "latency" else 0))
        for action in (second, first)
    ]
    lab.peer().open()
    assert sorted(rule.hits for rule in rules) == [0, 1]
    ends = [rule for rule in rules if rule.hits]
    assert ends[0].action in ("cut", "black_hole")


def test_one_rule_refuses_a_connection(lab: Lab) -> None:
    for on, actions in (("connect", ["refuse", "refuse"]), ("login", ["refuse_login", "cut"])):
        rules = [lab.broker.faults.add(Rule(action, on=on)) for action in actions]
        peer = lab.peer()
        if on == "login":
            with pytest.raises(AssertionError):
                peer.open()
        else:
            peer.session.faults.on_connect()
        assert [rule.hits for rule in rules] == [1, 0]
        lab.broker.faults.clear()


def test_connection_close_is_answered_late(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("slow_close", delay_ms=100))
    peer.send(commands.Queue.Declare(queue="exclusive", exclusive=True))
    peer.expect(commands.Queue.DeclareOk)
    peer.send(commands.Connection.Close(200, "bye", 0, 0), channel=0)
    # Only the answer is late.
    assert "exclusive" not in lab.vhost.queues
    lab.advance(99)
    assert peer.session.outbox.take() == []
    lab.advance(1)
    peer.expect(commands.Connection.CloseOk, channel=0)
    assert (rule.hits, len(rule.affected)) == (1, 0)


def test_a_close_that_waits_is_answered_when_the_rule_is_removed(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("slow_close", delay_ms=100_000))
    peer.send(commands.Connection.Close(200, "bye", 0, 0), channel=0)
    assert peer.session.outbox.take() == []
    lab.broker.faults.remove(rule.id)
    peer.expect(commands.Connection.CloseOk, channel=0)


def test_a_client_that_does_not_wait_for_a_late_close_is_forgotten(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("slow_close", delay_ms=100))
    peer.send(commands.Connection.Close(200, "bye", 0, 0), channel=0)
    peer.session.connection_lost(lab.now)
    lab.advance(100)
    assert (peer.session.outbox.take(), dict(rule.affected)) == ([], {})
    lab.connect().disconnect()
