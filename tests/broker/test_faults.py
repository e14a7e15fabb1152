from __future__ import annotations

import pytest
from pamqp import commands

from amqp_broker.broker.faults import RULES_MAX, Rule
from amqp_broker.broker.resetting import reset_vhost
from amqp_broker.broker.snapshot import kept_in
from amqp_broker.errors import DoesNotExist, InvalidParameter
from tests.peer import Lab, Peer
from tests.taker import Taker, new_broker, new_queue, push


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def peer(lab: Lab) -> Peer:
    peer = lab.connect()
    peer.declare("q")
    return peer


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


def test_the_same_rule_is_not_added_twice_but_again() -> None:
    faults = new_broker().faults
    rule = faults.add(Rule("confirm_nack"))
    with pytest.raises(InvalidParameter, match="in force already, as fault 1"):
        faults.add(rule)
    faults.remove(1)
    assert faults.add(rule).id == 2


def test_a_vhost_that_is_not_there_is_refused() -> None:
    faults = new_broker().faults
    with pytest.raises(InvalidParameter, match="there is no vhost 'typo'"):
        faults.add(Rule("confirm_nack", vhost="typo"))
    assert len(faults) == 0


def test_there_are_not_more_rules_than_can_be_asked() -> None:
    faults = new_broker().faults
    for _ in range(RULES_MAX):
        faults.add(Rule("cut"))
    with pytest.raises(InvalidParameter, match="1000 faults already"):
        faults.add(Rule("cut"))


def test_rules_of_a_vhost_go_with_it_and_with_its_reset() -> None:
    broker = new_broker()
    broker.add_vhost("a")
    everywhere = broker.faults.add(Rule("confirm_nack"))
    broker.faults.add(Rule("confirm_nack", vhost="a"))
    here = broker.faults.add(Rule("confirm_nack", vhost="/"))
    broker.delete_vhost("a")
    assert list(broker.faults) == [everywhere, here]
    reset_vhost(broker.vhosts["/"])
    assert list(broker.faults) == [everywhere]


def test_only_what_a_rule_concerns_leaves_the_hot_path(lab: Lab, peer: Peer) -> None:
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


def test_a_rule_that_is_spent_costs_nothing_any_more(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("confirm_nack", routing_key="q", times=1))
    peer.call(commands.Confirm.Select())
    peer.publish("q")
    peer.publish("q")
    assert (rule.hits, rule.matched, lab.broker.faults.on_publish) == (1, 1, ())
    assert all(route.is_plain for route in peer.session.routes.values())


def test_a_duplicate_comes_again_as_redelivered_and_leaves_no_trace(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("duplicate", queue="q", times=1))
    peer.send(commands.Basic.Qos(prefetch_count=1))
    peer.expect(commands.Basic.QosOk)
    peer.consume("q")
    peer.publish("q", b"one")
    peer.publish("q", b"two")
    got = peer.deliveries()
    assert [(deliver.delivery_tag, deliver.redelivered, content.body) for deliver, content in got] == [
        (1, False, b"one"),
        (2, True, b"one"),
    ]
    peer.send(commands.Basic.Ack(2), commands.Basic.Ack(1))
    assert peer.bodies() == [b"two"]
    peer.send(commands.Basic.Ack(3))
    queue = lab.vhost.queues["q"]
    assert (queue.ready_count, queue.unacked_count, rule.hits) == (0, 0, 1)


def test_a_duplicate_that_is_rejected_does_not_come_back(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("duplicate", times=1))
    peer.consume("q")
    peer.publish("q", b"one")
    assert peer.bodies() == [b"one", b"one"]
    peer.send(commands.Basic.Reject(2, True), commands.Basic.Ack(1))
    peer.expect_nothing()
    assert lab.vhost.queues["q"].ready_count == 0


def test_a_delayed_delivery_is_overtaken_and_comes_in_time(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("delay_delivery", queue="q", delay_ms=500, times=1))
    peer.consume("q")
    peer.publish("q", b"late")
    peer.publish("q", b"next")
    assert peer.bodies() == [b"next"]
    assert lab.vhost.queues["q"].unacked_count == 2
    lab.advance(499)
    peer.expect_nothing()
    lab.advance(1)
    [(deliver, content)] = peer.deliveries()
    assert (content.body, deliver.redelivered) == (b"late", False)
    peer.send(commands.Basic.Ack(2, True))
    assert lab.vhost.queues["q"].unacked_count == 0


@pytest.mark.parametrize("of_channel", [False, True])
def test_what_is_late_has_its_place_among_what_may_be_unacked(lab: Lab, peer: Peer, of_channel: bool) -> None:
    peer.call(commands.Basic.Qos(prefetch_count=2, global_=of_channel))
    peer.consume("q")
    lab.broker.faults.add(Rule("delay_delivery", queue="q", delay_ms=500, times=1))
    for body in (b"late", b"next", b"last"):
        peer.publish("q", body)
    assert peer.bodies() == [b"next"]
    lab.advance(500)
    [(deliver, content)] = peer.deliveries()
    assert (content.body, deliver.redelivered) == (b"late", False)
    peer.send(commands.Basic.Ack(2))
    assert peer.bodies() == [b"last"]
    peer.send(commands.Basic.Ack(0, multiple=True))
    assert (lab.vhost.queues["q"].unacked_count, peer.session.channels[1].consumers["c"].in_flight) == (0, 0)


def test_what_is_late_counts_for_a_limit_of_the_channel_that_comes_meanwhile(lab: Lab, peer: Peer) -> None:
    peer.consume("q")
    lab.broker.faults.add(Rule("delay_delivery", queue="q", delay_ms=500, times=1))
    peer.publish("q", b"late")
    peer.call(commands.Basic.Qos(prefetch_count=1, global_=True))
    peer.publish("q", b"next")
    lab.advance(500)
    assert peer.bodies() == [b"late"]
    peer.send(commands.Basic.Ack(1))
    assert peer.bodies() == [b"next"]
    peer.send(commands.Basic.Ack(2))
    assert peer.session.channels[1].in_flight == 0


@pytest.mark.parametrize("ends", ["comes", "cancelled", "deleted"])
def test_a_late_delivery_is_never_an_ack_and_leaves_no_place_taken(lab: Lab, peer: Peer, ends: str) -> None:
    channel = peer.session.channels[1]
    peer.call(commands.Basic.Qos(prefetch_count=1, global_=True))
    peer.consume("q", "first")
    lab.broker.faults.add(Rule("delay_delivery", queue="q", delay_ms=500, times=1))
    peer.publish("q", b"late")
    channel.collect()
    assert channel.counts.message_stats().get("ack", 0) == 0
    if ends == "cancelled":
        peer.call(commands.Basic.Cancel("first"))
    elif ends == "deleted":
        peer.call(commands.Queue.Delete(queue="q"))
        peer.expect(commands.Basic.Cancel)
    lab.advance(500)
    if ends == "comes":
        assert peer.bodies() == [b"late"]
        peer.send(commands.Basic.Ack(1))
    channel.collect()
    assert channel.counts.message_stats().get("ack", 0) == (ends == "comes")
    assert (channel.in_flight, channel.late_count, lab.broker.faults.late) == (0, 0, {})
    peer.declare("other")
    peer.consume("other", "second")
    peer.publish("other", b"next")
    assert peer.bodies() == [b"next"]


def test_what_is_late_to_a_consumer_without_acks_takes_no_place(lab: Lab, peer: Peer) -> None:
    peer.consume("q", "first", no_ack=True)
    lab.broker.faults.add(Rule("delay_delivery", queue="q", delay_ms=500, times=1))
    peer.publish("q", b"late")
    peer.call(commands.Basic.Qos(prefetch_count=1, global_=True))
    lab.advance(500)
    assert peer.bodies() == [b"late"]
    assert peer.session.channels[1].in_flight == 0


def test_a_snapshot_has_what_is_late(lab: Lab, peer: Peer) -> None:
    peer.consume("q")
    lab.broker.faults.add(Rule("delay_delivery", queue="q", delay_ms=500, times=1))
    for body in (b"late", b"unacked"):
        peer.publish("q", body)
    delivered, others = kept_in(lab.vhost.queues["q"])
    assert ([one.message.body for one in delivered], others) == ([b"late", b"unacked"], [])


def test_what_is_delayed_goes_back_if_its_consumer_has_left() -> None:
    queue = new_queue()
    broker = queue.vhost.broker
    broker.faults.add(Rule("delay_delivery", delay_ms=500))
    taker = Taker(queue).start()
    push(queue, b"one")
    taker.stop()
    broker.tick(500)
    assert (queue.ready_count, queue.unacked_count) == (1, 0)
    # Once is enough.
    assert Taker(queue).start().bodies == [b"one"]


def test_what_goes_behind_all_else_when_it_comes_back_is_not_delayed_twice(lab: Lab, peer: Peer) -> None:
    peer.declare("endless", durable=True, arguments={"x-queue-type": "quorum", "x-delivery-limit": -1})
    rule = lab.broker.faults.add(Rule("delay_delivery", queue="endless", delay_ms=500))
    peer.consume("endless", "first")
    peer.publish("endless", b"late")
    peer.call(commands.Basic.Cancel("first"))
    lab.advance(500)
    peer.consume("endless", "second")
    assert (peer.bodies(), rule.hits, rule.delayed) == ([b"late"], 1, set())


def test_what_is_late_is_also_hit_by_the_other_rules_when_it_comes(lab: Lab, peer: Peer) -> None:
    late = lab.broker.faults.add(Rule("delay_delivery", queue="q", delay_ms=500))
    again = lab.broker.faults.add(Rule("duplicate", queue="q"))
    peer.consume("q")
    peer.publish("q", b"one")
    peer.expect_nothing()
    lab.advance(500)
    assert peer.bodies() == [b"one", b"one"]
    assert (late.hits, again.hits) == (1, 1)


@pytest.mark.parametrize("ends", ["comes", "cancelled"])
def test_what_is_late_counts_as_delivered_when_it_is(lab: Lab, peer: Peer, ends: str) -> None:
    channel = peer.session.channels[1]
    lab.broker.faults.add(Rule("delay_delivery", queue="q", delay_ms=500))
    peer.consume("q", "first")
    peer.publish("q", b"late")
    channel.collect()
    assert channel.counts.message_stats().get("deliver", 0) == 0
    if ends == "cancelled":
        peer.call(commands.Basic.Cancel("first"))
    lab.advance(500)
    channel.collect()
    assert channel.counts.message_stats().get("deliver", 0) == (ends == "comes")


def test_an_ack_of_a_duplicate_counts_as_little_as_the_duplicate(lab: Lab, peer: Peer) -> None:
    channel = peer.session.channels[1]
    lab.broker.faults.add(Rule("duplicate", queue="q", times=1))
    peer.consume("q")
    peer.publish("q", b"one")
    assert peer.bodies() == [b"one", b"one"]
    peer.send(commands.Basic.Ack(2), commands.Basic.Ack(1))
    channel.collect()
    stats = {"deliver": 1, "deliver_get": 1, "ack": 1}
    assert {name: count for name, count in lab.vhost.message_stats().items() if count and name in stats} == stats
    # Nor is there a second queue of that name.
    assert list(channel.counts.deliveries) == [lab.vhost.queues["q"]]


def test_a_consumer_is_cancelled_after_a_delivery(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("cancel_consumer", on="deliver", queue="q", times=1))
    peer.consume("q", "mine")
    peer.publish("q", b"one")
    assert peer.bodies() == [b"one"]
    lab.advance(0)
    assert peer.expect(commands.Basic.Cancel).consumer_tag == "mine"
    assert lab.vhost.queues["q"].consumers == []
    # What it has is still its own.
    peer.send(commands.Basic.Ack(1))
    peer.expect_nothing()


def test_consumers_of_a_queue_are_cancelled_now(lab: Lab, peer: Peer) -> None:
    peer.declare("other")
    peer.consume("q", "a")
    peer.consume("other", "b")
    rule = lab.broker.faults.add(Rule("cancel_consumer", queue="q"))
    assert peer.expect(commands.Basic.Cancel).consumer_tag == "a"
    assert (rule.on, rule.hits, len(lab.vhost.queues["other"].consumers)) == ("now", 1, 1)


def test_a_channel_is_closed_by_what_it_is_delivered(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("close_channel", on="deliver", code=404, times=1))
    peer.consume("q")
    peer.publish("q", b"one")
    assert peer.bodies() == [b"one"]
    lab.advance(0)
    assert peer.expect_channel_close(404) == "NOT_FOUND - closed by a fault"
    assert lab.vhost.queues["q"].ready_count == 1


def test_an_ack_that_is_dropped_leaves_the_message_unacked(lab: Lab, peer: Peer) -> None:
    rule = lab.broker.faults.add(Rule("drop_ack", queue="q", times=2))
    peer.consume("q")
    for body in (b"1", b"2", b"3", b"4"):
        peer.publish("q", body)
    peer.bodies()
    peer.send(commands.Basic.Ack(2))
    peer.send(commands.Basic.Ack(3, True))
    queue = lab.vhost.queues["q"]
    assert (rule.hits, queue.unacked_count, list(peer.session.channels[1].unacked)) == (2, 2, [1, 4])
    peer.disconnect()
    assert [message.body for message in queue.messages()] == [b"1", b"4"]
    assert queue.unacked_count == 0
