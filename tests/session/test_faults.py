from __future__ import annotations

import contextlib
from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.faults import Rule
from tests.peer import Lab, Peer, publish_bytes


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def peer(lab: Lab) -> Peer:
    """A client whose channel is in confirm mode."""
    peer = lab.connect()
    peer.declare("q")
    peer.call(commands.Confirm.Select())
    return peer


def publish(peer: Peer, *bodies: bytes, **options: Any) -> None:
    """Publish several messages in one read."""
    peer.send_bytes(b"".join(publish_bytes("q", body, **options) for body in bodies))


def confirms(peer: Peer) -> list[tuple[str, int, bool]]:
    """What is said of publish numbers: ack or nack, up to which, and whether that stands for several."""
    found = []
    peer._received += b"".join(peer.session.take_output())
    while peer._received:
        method, _ = peer.next()
        assert isinstance(method, (commands.Basic.Ack, commands.Basic.Nack))
        found.append((type(method).__name__, method.delivery_tag, bool(method.multiple)))
    return found


def bodies(lab: Lab) -> list[bytes]:
    return [message.body for message in lab.vhost.queues["q"].messages()]


# Confirms


def test_a_nacked_message_is_not_taken_and_the_others_are_confirmed(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("confirm_nack", routing_key="q", after=1, times=1))
    publish(peer, b"1", b"2", b"3")
    assert confirms(peer) == [("Ack", 1, True), ("Ack", 3, False), ("Nack", 2, False)]
    assert bodies(lab) == [b"1", b"3"]


def test_a_dropped_confirm_stores_and_no_other_confirms_it(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("confirm_drop", after=1, times=1))
    publish(peer, b"1", b"2", b"3", b"4")
    assert confirms(peer) == [("Ack", 1, True), ("Ack", 3, False), ("Ack", 4, False)]
    publish(peer, b"5", b"6")
    # Never again: number 2 would be among those before.
    assert confirms(peer) == [("Ack", 5, False), ("Ack", 6, False)]
    assert bodies(lab) == [b"1", b"2", b"3", b"4", b"5", b"6"]
    assert peer.session.channels[1].messages_unconfirmed == 1


def test_a_delayed_confirm_comes_in_time_and_multiple_goes_on_after_it(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("confirm_delay", delay_ms=700, times=1))
    publish(peer, b"1", b"2", b"3")
    assert confirms(peer) == [("Ack", 2, False), ("Ack", 3, False)]
    lab.advance(699)
    assert confirms(peer) == []
    lab.advance(1)
    assert confirms(peer) == [("Ack", 1, False)]
    publish(peer, b"4", b"5")
    assert confirms(peer) == [("Ack", 5, True)]
    assert lab.broker.counters.publishes.confirm == 5
    assert peer.session.channels[1].messages_unconfirmed == 0


def test_a_late_confirm_of_a_channel_that_has_gone_is_not_sent(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("confirm_delay", delay_ms=700))
    publish(peer, b"1")
    peer.call(commands.Channel.Close(200, "", 0, 0))
    peer.open_channel(1)
    lab.advance(1000)
    peer.expect_nothing()


def test_a_nack_can_be_late(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("confirm_nack", times=1))
    lab.broker.faults.add(Rule("confirm_delay", delay_ms=5, times=1))
    publish(peer, b"1", b"2")
    assert confirms(peer) == [("Ack", 2, False)]
    lab.advance(5)
    assert confirms(peer) == [("Nack", 1, False)]
    assert bodies(lab) == [b"2"]


def test_what_a_full_queue_refuses_is_nacked_late(lab: Lab, peer: Peer) -> None:
    peer.declare("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    lab.broker.faults.add(Rule("confirm_delay", delay_ms=100, times=1))
    peer.publish("full", b"")
    assert confirms(peer) == []
    lab.advance(100)
    assert confirms(peer) == [("Nack", 1, False)]


def test_who_asked_for_no_confirms_is_not_nacked(lab: Lab) -> None:
    peer = lab.connect()
    peer.declare("q")
    rule = lab.broker.faults.add(Rule("confirm_nack"))
    publish(peer, b"1")
    assert (bodies(lab), rule.matched) == ([b"1"], 0)


def test_a_rule_of_one_vhost_never_touches_another(lab: Lab, peer: Peer) -> None:
    lab.broker.add_vhost("other")
    lab.broker.faults.add(Rule("confirm_nack", vhost="other"))
    lab.broker.faults.add(Rule("close_connection", vhost="other"))
    lab.broker.faults.add(Rule("block", vhost="other"))
    publish(peer, b"1")
    assert confirms(peer) == [("Ack", 1, False)]
    assert all(route.is_plain for route in peer.session.routes.values())


def test_rules_match_the_queue_that_a_message_goes_to(lab: Lab, peer: Peer) -> None:
    peer.call(commands.Queue.Bind(queue="q", exchange="amq.headers", arguments={"x-match": "all", "kind": "a"}))
    lab.broker.faults.add(Rule("confirm_nack", queue="q", exchange="amq.headers"))
    peer.publish("", b"to q", exchange="amq.headers", headers={"kind": "a"})
    assert confirms(peer) == [("Nack", 1, True)]
    peer.publish("", b"nowhere", exchange="amq.headers", headers={"kind": "b"})
    assert confirms(peer) == [("Ack", 2, False)]


# Returns and closes


def test_a_routable_message_is_returned_and_confirmed(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("return", times=1))
    publish(peer, b"1", mandatory=True)
    returned = peer.expect(commands.Basic.Return)
    assert (returned.reply_code, returned.reply_text, peer.expect_content().body) == (312, "NO_ROUTE", b"1")
    assert confirms(peer) == [("Ack", 1, False)]
    assert bodies(lab) == []


def test_a_message_of_a_transaction_is_returned_once(lab: Lab) -> None:
    peer = lab.connect()
    peer.declare("q")
    peer.call(commands.Tx.Select())
    lab.broker.faults.add(Rule("return", times=1))
    peer.publish("q", b"x", mandatory=True)
    peer.expect(commands.Basic.Return)
    assert peer.expect_content().body == b"x"
    peer.call(commands.Tx.Commit())
    assert bodies(lab) == []


def test_a_message_can_be_returned_although_it_is_routed(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("return", code=313, text="NO_CONSUMERS", is_routed=True))
    publish(peer, b"plain")
    assert confirms(peer) == [("Ack", 1, False)]
    publish(peer, b"1", mandatory=True)
    assert peer.expect(commands.Basic.Return).reply_code == 313
    assert peer.expect_content().body == b"1"
    assert bodies(lab) == [b"plain", b"1"]


@pytest.mark.parametrize(("on", "stored"), [("publish", [b"1"]), ("confirm", [b"1", b"2"])])
def test_a_channel_is_closed_before_a_publish_or_before_its_confirm(
    lab: Lab, peer: Peer, on: str, stored: list[bytes]
) -> None:
    lab.broker.faults.add(Rule("close_channel", on=on, code=404, text="NOT_FOUND - gone", after=1, times=1))
    publish(peer, b"1", b"2", b"3")
    ack = peer.expect(commands.Basic.Ack)
    assert (ack.delivery_tag, ack.multiple) == (1, False)
    assert peer.expect_channel_close(404) == "NOT_FOUND - gone"
    assert bodies(lab) == stored
    peer.expect_nothing()


@pytest.mark.parametrize(("on", "stored"), [("publish", []), ("confirm", [b"1"])])
def test_a_connection_is_closed_with_a_code(lab: Lab, peer: Peer, on: str, stored: list[bytes]) -> None:
    lab.broker.faults.add(Rule("close_connection", on=on))
    publish(peer, b"1", b"2")
    assert peer.expect_connection_close(320) == "CONNECTION_FORCED - closed by a fault"
    assert peer.is_dropped
    assert bodies(lab) == stored


def test_connections_are_closed_now(lab: Lab, peer: Peer) -> None:
    other = lab.connect()
    rule = lab.broker.faults.add(Rule("close_connection", connection=other.session.name, code=541, text="BROKEN"))
    assert other.expect_connection_close(541) == "BROKEN"
    assert (rule.hits, rule.is_spent) == (1, True)
    peer.expect_nothing()
    lab.broker.faults.add(Rule("close_channel"))
    assert peer.expect_channel_close(406) == "PRECONDITION_FAILED - closed by a fault"


# The socket


@pytest.mark.parametrize("action", ["cut", "reset"])
def test_a_cut_comes_after_the_confirms_before_it(lab: Lab, peer: Peer, action: str) -> None:
    lab.broker.faults.add(Rule(action, on="confirm", after=1))
    publish(peer, b"1", b"2", b"3")
    assert confirms(peer) == [("Ack", 1, False)]
    assert (peer.is_dropped, peer.session.is_reset) == (True, action == "reset")
    assert bodies(lab) == [b"1", b"2"]


def test_a_cut_can_tear_a_frame(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("cut", on="publish", is_mid_frame=True))
    publish(peer, b"1")
    assert b"".join(peer.session.take_output()) == b"\x08\0\0\0\0"
    assert peer.is_dropped


def test_connections_are_cut_now_and_what_they_hold_goes_back(lab: Lab, peer: Peer) -> None:
    consumer = lab.connect()
    consumer.consume("q")
    publish(peer, b"1")
    assert consumer.bodies() == [b"1"]
    lab.broker.faults.add(Rule("cut", vhost="/", connection=consumer.session.name))
    assert consumer.is_dropped
    assert bodies(lab) == [b"1"]
    assert not peer.is_dropped


def test_a_black_hole_hears_and_says_nothing_until_its_rule_is_removed(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("black_hole", on="publish", times=1))
    publish(peer, b"1", b"2")
    assert bodies(lab) == []
    assert peer.session.is_blocked
    assert peer.session.held_until > lab.broker.journal.batch
    publish(peer, b"3")
    lab.broker.set_alarm("memory", True)
    lab.broker.set_alarm("memory", False)
    assert peer.session.is_blocked
    assert not peer.is_dropped
    assert bodies(lab) == []
    lab.broker.faults.remove(rule.id)
    assert (peer.is_dropped, peer.session.is_reset, peer.session.held_until) == (True, True, 0)
    peer.expect_nothing()
    assert lab.broker.connections == set()


def test_a_black_hole_that_has_heartbeats_ends_for_the_broker_by_them(lab: Lab) -> None:
    peer = lab.peer()
    peer.open(heartbeat=10)
    peer.open_channel(1)
    peer.declare("q")
    rule = lab.broker.faults.add(Rule("black_hole"))
    lab.advance(40_000)
    assert lab.broker.connections == set()
    # The peer does not hear of it: the shell sends nothing while output is held.
    assert peer.session.held_until
    peer.disconnect()
    assert rule.afflicted == {}


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
    assert b"".join(peer.session.take_output()) == b"\x08\0\0\0\0\0\0\xce"


# Block


def test_connections_are_blocked_with_a_reason_and_unblocked(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("block", text="low on patience"))
    assert peer.expect(commands.Connection.Blocked, 0).reason == "low on patience"
    assert (peer.session.is_blocked, peer.session.status) == (True, "blocked")
    lab.broker.faults.remove(rule.id)
    peer.expect(commands.Connection.Unblocked, 0)
    assert (peer.session.is_blocked, peer.session.status) == (False, "running")


def test_a_block_lasts_as_long_as_it_says(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("block", on="publish", duration_ms=300, times=1))
    publish(peer, b"1")
    assert peer.expect(commands.Connection.Blocked, 0).reason == "low on memory"
    assert peer.expect(commands.Basic.Ack).delivery_tag == 1
    lab.advance(300)
    peer.expect(commands.Connection.Unblocked, 0)


def test_unblock_lifts_what_rules_blocked(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("block"))
    peer.expect(commands.Connection.Blocked, 0)
    lab.broker.faults.add(Rule("unblock", vhost="/"))
    peer.expect(commands.Connection.Unblocked, 0)


@pytest.mark.parametrize("ends", ["lifted", "removed"])
def test_a_block_that_has_ended_does_not_shorten_the_next(lab: Lab, peer: Peer, ends: str) -> None:
    rule = lab.broker.faults.add(Rule("block", on="publish", duration_ms=300))
    publish(peer, b"1")
    lab.advance(200)
    if ends == "lifted":
        lab.broker.faults.add(Rule("unblock"))
    else:
        lab.broker.faults.remove(rule.id)
        lab.broker.faults.add(rule)
    publish(peer, b"2")
    lab.advance(299)
    assert peer.session.is_blocked
    lab.advance(1)
    assert not peer.session.is_blocked


def test_who_comes_is_blocked_when_its_connection_is_open(lab: Lab) -> None:
    lab.broker.faults.add(Rule("block", on="open"))
    peer = lab.peer()
    peer.open()
    peer.expect(commands.Connection.Blocked, 0)


# Coming in


def test_a_login_is_refused(lab: Lab) -> None:
    rule = lab.broker.faults.add(Rule("refuse_login", user="guest", times=1))
    peer = lab.peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    peer.expect(commands.Connection.Start, 0)
    table = {"capabilities": {"authentication_failure_close": True}}
    peer.send(commands.Connection.StartOk(table, "PLAIN", "\0guest\0guest"), channel=0)
    assert "Login was refused using authentication mechanism PLAIN" in peer.expect_connection_close(403)
    assert rule.hits == 1
    lab.connect()


@pytest.mark.parametrize("on", ["login", "open"])
def test_a_connection_is_cut_on_its_way_in(lab: Lab, on: str) -> None:
    lab.broker.faults.add(Rule("cut", on=on, user="guest", times=1))
    peer = lab.peer()
    with contextlib.suppress(AssertionError):
        peer.open()
    assert peer.is_dropped
    assert (peer.session.vhost is not None) is (on == "open")
    lab.connect()


def test_a_peer_without_a_login_is_not_found_by_now(lab: Lab) -> None:
    peer = lab.peer()
    assert lab.broker.faults.add(Rule("cut")).hits == 0
    assert not peer.is_dropped


# Latency


def test_replies_come_late_and_in_order(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("latency", delay_ms=100))
    peer.send(commands.Queue.Declare(queue="a"))
    assert peer.session.take_output() == []
    lab.advance(60)
    peer.send(commands.Queue.Declare(queue="b"))
    assert peer.session.take_output() == []
    lab.advance(40)
    assert peer.expect(commands.Queue.DeclareOk).queue == "a"
    peer.expect_nothing()
    lab.advance(60)
    assert peer.expect(commands.Queue.DeclareOk).queue == "b"
    peer.send(commands.Queue.Declare(queue="c"))
    assert peer.session.take_output() == []
    lab.broker.faults.remove(rule.id)
    assert peer.expect(commands.Queue.DeclareOk).queue == "c"
    assert peer.session.lag is None


def test_jitter_follows_from_the_seed(lab: Lab) -> None:
    def arrivals(seed: int) -> list[int]:
        peer = lab.connect()
        rule = lab.broker.faults.add(Rule("latency", delay_ms=10, jitter_ms=50, seed=seed))
        came = []
        for name in ("a", "b", "c", "d"):
            peer.send(commands.Queue.Declare(queue=name))
            peer.session.take_output()
            start = lab.now
            while not (output := peer.session.take_output()):
                lab.advance(1)
            assert output
            came.append(lab.now - start)
        lab.broker.faults.remove(rule.id)
        peer.disconnect()
        return came

    assert arrivals(1) == arrivals(1) != arrivals(2)
    assert all(10 <= wait <= 60 for wait in arrivals(3))


def test_a_late_connection_does_not_pile_up_what_it_is_delivered(lab: Lab, peer: Peer) -> None:
    consumer = lab.connect()
    consumer.consume("q", no_ack=True)
    lab.broker.faults.add(Rule("latency", delay_ms=1000, connection=consumer.session.name))
    for _ in range(20):
        publish(peer, bytes(60_000))
        consumer.session.take_output()
    assert consumer.session.is_paused
    assert 0 < lab.vhost.queues["q"].ready_count < 20
    for _ in range(20):
        lab.advance(1000)
        consumer.session.take_output()
    assert lab.vhost.queues["q"].ready_count == 0


@pytest.mark.parametrize("multiple", [False, True])
def test_an_ack_of_what_a_deleted_queue_delivered_is_not_lost(lab: Lab, multiple: bool) -> None:
    peer = lab.connect()
    peer.declare("gone")
    peer.publish("gone")
    assert peer.get("gone", no_ack=False) is not None
    rule = lab.broker.faults.add(Rule("drop_ack"))
    peer.call(commands.Queue.Delete(queue="gone"))
    peer.send(commands.Basic.Ack(1, multiple=multiple))
    assert (rule.matched, peer.session.channels[1].unacked) == (0, {})
