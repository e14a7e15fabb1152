from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.admin.policies import Policy
from amqp_broker.broker.lab import advice as module
from amqp_broker.broker.lab.advice import PLACES_MAX, SCAN_BATCH, Advice
from tests.broker.advising import MINUTE_MS, advice_in, consume, declare, habits_in, leave, only
from tests.peer import Lab, Peer
from tests.present import present

# Consuming


def test_a_consumer_without_prefetch_is_reported_with_its_place(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    consume(peer, "orders")
    advice = only(lab, "unlimited-prefetch")
    place = advice.place
    assert (place.vhost, place.user, place.queue, advice.channel) == ("/", "guest", "orders", 1)
    assert advice.connection == peer.session.name
    assert "basic.qos" in str(advice)
    assert "queue 'orders'" in str(advice)


def test_a_habit_in_the_same_place_is_counted(lab: Lab) -> None:
    heard: list[Advice] = []
    lab.broker.advice.listeners = (heard.append,)
    declare(lab.connect(), "orders")
    for _ in range(3):
        consume(lab.connect(), "orders")
    assert [advice.count for advice in heard] == [3]


def test_different_places_are_reported_separately(lab: Lab) -> None:
    peer = lab.connect()
    for name in ("a", "b"):
        declare(peer, name)
        consume(peer, name)
    assert [advice.place.queue for advice in advice_in(lab)] == ["a", "b"]


@pytest.mark.parametrize("options", [{"exclusive": True, "durable": False}, {"auto_delete": True}])
def test_queues_that_end_with_their_consumer_are_not_reported(lab: Lab, options: dict[str, Any]) -> None:
    peer = lab.connect()
    declare(peer, "mine", **options)
    consume(peer, "mine")
    consume(peer, "mine", no_ack=True)
    assert habits_in(lab) == []


def test_direct_replies_are_consumed_as_they_must_be(lab: Lab) -> None:
    peer = lab.connect()
    peer.call(commands.Basic.Consume(queue="amq.rabbitmq.reply-to", no_ack=True))
    assert habits_in(lab) == []


def test_a_limited_consumer_is_as_it_should_be(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    consume(peer, "orders", prefetch=10)
    assert habits_in(lab) == []


def test_auto_ack_is_reported(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    consume(peer, "orders", prefetch=10, no_ack=True)
    assert only(lab, "auto-ack").place.queue == "orders"


def test_a_global_prefetch_is_reported_and_counts_as_a_limit(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    peer.call(commands.Basic.Qos(prefetch_count=5, global_=True))
    peer.call(commands.Basic.Consume(queue="orders"))
    assert habits_in(lab) == ["global-prefetch"]


def test_polling_an_empty_queue_is_reported(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    for polls in range(1, 11):
        assert habits_in(lab) == [], polls
        peer.call(commands.Basic.Get(queue="orders"))
    assert only(lab, "polling").place.queue == "orders"


def test_polling_many_messages_is_reported(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    for number in range(100):
        assert habits_in(lab) == [], number
        peer.publish("orders", b"m")
        peer.send(commands.Basic.Get(queue="orders", no_ack=True))
        peer.expect(commands.Basic.GetOk)
        peer.expect_content()
    assert habits_in(lab) == ["polling"]


def test_many_consumers_of_one_queue_on_a_channel_are_leaked(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    for number in range(9):
        consume(peer, "orders", prefetch=1, consumer_tag=str(number))
    assert habits_in(lab) == []
    for number in range(9, 12):
        consume(peer, "orders", prefetch=1, consumer_tag=str(number))
    assert only(lab, "leaked-consumers").count == 12


def test_many_consumers_of_many_queues_are_not(lab: Lab) -> None:
    peer = lab.connect()
    for number in range(30):
        declare(peer, f"q{number}")
        consume(peer, f"q{number}", prefetch=1)
    assert habits_in(lab) == []


def unacked(lab: Lab, peer: Peer, count: int) -> list[int]:
    """Have messages delivered, and return their tags."""
    for _ in range(count):
        peer.publish("orders", b"m")
    lab.drain()
    return [present(delivery.delivery_tag) for delivery, _ in peer.deliveries()]


def test_growing_unacked_deliveries_are_reported(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    consume(peer, "orders", prefetch=1000)
    unacked(lab, peer, 100)
    assert habits_in(lab) == []
    lab.advance(MINUTE_MS)
    unacked(lab, peer, 100)
    assert only(lab, "growing-unacked").place.queue == "orders"


def test_a_slow_consumer_that_has_all_it_may_have_is_only_slow(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    consume(peer, "orders", prefetch=150)
    unacked(lab, peer, 300)
    for _ in range(5):
        assert habits_in(lab) == []
        lab.advance(MINUTE_MS)


def test_a_consumer_that_settles_now_and_then_is_working(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    consume(peer, "orders", prefetch=10_000)
    for _ in range(5):
        tags = unacked(lab, peer, 200)
        assert habits_in(lab) == []
        lab.advance(MINUTE_MS - 1)
        peer.send(commands.Basic.Ack(tags[0]))


# Publishing


def test_persistent_messages_without_confirms_are_reported(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    peer.publish("orders", b"m", delivery_mode=2)
    assert "published to exchange '(default)'" in only(lab, "no-confirms").detail


def test_a_channel_closed_before_a_scan_is_reported(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    peer.publish("orders", b"m", delivery_mode=2)
    peer.call(commands.Channel.Close(200, "", 0, 0))
    assert [advice.habit.name for advice in lab.broker.advice] == ["no-confirms"]


def test_a_persistent_message_to_a_missing_exchange_closes_its_channel_alone(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    peer.call(commands.Basic.Consume(queue="orders", consumer_tag="c", no_ack=True))
    peer.publish("orders", b"m", exchange="missing", delivery_mode=2)
    assert peer.expect(commands.Channel.Close).reply_code == 404
    assert "no-confirms" not in habits_in(lab)


@pytest.mark.parametrize("method", [commands.Confirm.Select(), commands.Tx.Select()])
def test_with_confirms_or_transactions_they_are_safe(lab: Lab, method: Any) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    peer.call(method)
    peer.publish("orders", b"m", delivery_mode=2)
    assert habits_in(lab) == []


def test_transient_messages_need_no_confirms(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    peer.publish("orders", b"m")
    peer.publish("orders", b"m", delivery_mode=1)
    assert habits_in(lab) == []


def test_a_channel_with_confirms_is_not_reported_for_another(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    peer.open_channel(2)
    peer.call(commands.Confirm.Select())
    peer.publish("orders", b"m", delivery_mode=2)
    peer.publish("orders", b"m", channel=2)
    assert habits_in(lab) == []


# Removed features


def test_a_transient_queue_is_reported(lab: Lab) -> None:
    declare(lab.connect(), "orders", durable=False)
    assert only(lab, "transient-queue").place.queue == "orders"


def test_an_exclusive_queue_is_not(lab: Lab) -> None:
    declare(lab.connect(), "mine", durable=False, exclusive=True)
    assert habits_in(lab) == []


def test_removed_arguments_are_reported(lab: Lab) -> None:
    declare(lab.connect(), "orders", arguments={"x-queue-mode": "lazy"})
    assert only(lab, "removed-argument").detail == "x-queue-mode"


def test_a_policy_with_removed_keys_is_reported(lab: Lab) -> None:
    lab.vhost.policies.set(Policy("lazy", "^q", {"queue-mode": "lazy"}, apply_to="queues"))
    assert only(lab, "removed-argument").detail == "policy 'lazy': queue-mode"


# Bounds


def test_advice_can_be_cleared(lab: Lab) -> None:
    peer = lab.connect()
    declare(peer, "orders")
    consume(peer, "orders")
    lab.broker.advice.clear("other")
    assert len(lab.broker.advice) == 1
    lab.broker.advice.clear("/")
    assert habits_in(lab) == []
    consume(peer, "orders")
    assert habits_in(lab) == ["unlimited-prefetch"]


def test_advice_goes_with_its_vhost(lab: Lab) -> None:
    declare(lab.connect(), "orders", durable=False)
    lab.broker.delete_vhost("/")
    assert len(lab.broker.advice) == 0


def test_closing_with_the_vhost_gives_no_advice(lab: Lab) -> None:
    peers = [lab.connect() for _ in range(30)]
    for peer in peers:
        peer.publish("ordrs", b"m", delivery_mode=2)
    lab.broker.delete_vhost("/")
    for peer in peers:
        peer.disconnect()
    advisor = lab.broker.advice
    assert (len(advisor), advisor._channels, advisor._connections, advisor._short_connections) == (0, {}, {}, {})


def test_a_vhost_may_go_in_the_middle_of_a_look(lab: Lab) -> None:
    leave(lab, SCAN_BATCH + 20)
    lab.advance(MINUTE_MS)
    lab.broker.now = lab.now
    lab.broker.advice.scan()
    lab.broker.delete_vhost("/")
    lab.broker.advice.scan()
    assert len(lab.broker.advice) == 0


def test_a_flood_of_a_habit_is_counted_and_hides_no_other(lab: Lab) -> None:
    advisor, peer = lab.broker.advice, lab.connect()
    for number in range(PLACES_MAX + 10):
        declare(peer, f"q{number}", durable=False)
    assert len(advisor) == PLACES_MAX
    assert advisor.beyond == {("transient-queue", "/"): 10}
    peer.call(commands.Basic.Qos(prefetch_count=1, global_=True))
    assert [advice.habit.name for advice in advisor][-1] == "global-prefetch"


def test_clearing_makes_room_for_the_habit_again(lab: Lab) -> None:
    advisor, peer = lab.broker.advice, lab.connect()
    for number in range(PLACES_MAX + 1):
        declare(peer, f"q{number}", durable=False)
    advisor.clear("/")
    declare(peer, "another", durable=False)
    assert [advice.place.queue for advice in advisor] == ["another"]
    assert not advisor.beyond


def test_closed_channels_and_connections_are_forgotten(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLIENTS_MAX", 5)
    advisor = lab.broker.advice
    for number in range(20):
        peer = lab.connect()
        peer.session.client_properties["connection_name"] = f"client {number}"
        peer.publish("orders", b"m", delivery_mode=2)
        peer.disconnect()
    assert (advisor._channels, advisor._connections, len(advisor._short_connections)) == ({}, {}, 5)


def test_a_look_sees_a_portion_and_the_next_ones_the_rest(lab: Lab) -> None:
    peer = lab.connect()
    for number in range(2 * SCAN_BATCH):
        declare(peer, f"q{number}", arguments={"x-expires": 1000})
    peer.disconnect()
    lab.connect().publish("ordrs", b"m")
    lab.broker.advice.scan()
    assert len(lab.broker.advice) == 1
    lab.broker.advice.clear()
    other = lab.connect()
    other.publish("ordrs", b"m", exchange="amq.direct")
    for _ in range(3):
        lab.broker.advice.scan()
    assert [advice.place.exchange for advice in lab.broker.advice] == ["amq.direct"]


def test_a_client_cannot_begin_a_line_of_the_text(lab: Lab) -> None:
    peer = lab.connect()
    peer.session.client_properties["connection_name"] = "x\nERROR: y" + "z" * 100_000
    peer.publish("a\nb", b"m")
    text = str(only(lab, "unroutable"))
    assert "\n" not in text
    assert len(text) < 2000
