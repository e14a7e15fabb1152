from __future__ import annotations

import pytest
from pamqp import commands

from amqp_broker.broker.counting.counters import DeliveryCounts, PublishCounts
from tests.peer import Lab, Peer
from tests.stepping import counted


def stats(lab: Lab) -> dict[str, int]:
    lab.broker.collect_counts()
    return {name: count for name, count in lab.broker.counters.message_stats().items() if count}


def published(lab: Lab, *bodies: bytes, to: str = "q") -> Peer:
    peer = lab.connect()
    for body in bodies:
        peer.publish(to, body)
    return peer


def test_counts_that_are_0_are_omitted() -> None:
    assert PublishCounts().stats() == PublishCounts().exchange_stats() == DeliveryCounts().stats() == {}


def test_the_stats_of_an_exchange_have_messages_in_out_and_without_a_queue() -> None:
    counts = PublishCounts()
    counts.count(2, queues=3, mandatory=False)
    counts.count(1, queues=0, mandatory=True)
    assert counts.exchange_stats() == {"publish_in": 3, "publish_out": 6}
    assert counts.unroutable_stats() == {"return_unroutable": 1}
    assert counts.stats() == {"publish": 3, "confirm": 0, "return_unroutable": 1, "drop_unroutable": 0}


def test_deliver_get_is_the_sum_of_all_deliveries_and_gets() -> None:
    counts = DeliveryCounts()
    counts.deliver, counts.deliver_no_ack, counts.get, counts.get_no_ack, counts.ack = 1, 2, 4, 8, 1
    assert counts.stats()["deliver_get"] == 15


@pytest.mark.parametrize("name", ["deliver_no_ack", "ack", "get_empty"])
def test_the_first_delivery_makes_all_delivery_counters_appear(name: str) -> None:
    counts = DeliveryCounts()
    setattr(counts, name, 1)
    assert (counts.stats()[name], len(counts.stats())) == (1, 8)


def test_counts_are_up_to_date_after_collect_and_count_once() -> None:
    lab = Lab()
    lab.connect().declare("q")
    published(lab, b"one", b"two")
    assert stats(lab) == stats(lab) == {"publish": 2}
    queue = lab.vhost.queues["q"]
    assert queue.statistics.message_stats() == {"publish": 2}
    assert queue.statistics.published_from == {lab.vhost.default_exchange: 2}


def test_the_counts_of_a_lost_connection_remain() -> None:
    lab = Lab()
    receiver = lab.connect()
    receiver.declare("q")
    receiver.consume("q", no_ack=True)
    published(lab, b"one", b"two").disconnect()
    receiver.disconnect()
    assert stats(lab) == {"publish": 2, "deliver_no_ack": 2, "deliver_get": 2}
    assert lab.vhost.queues["q"].statistics.message_stats()["deliver_no_ack"] == 2


def test_the_counts_of_a_deleted_queue_remain_in_the_totals() -> None:
    lab = Lab()
    peer = published(lab)
    peer.declare("q")
    peer.publish("q", b"one")
    peer.get("q")
    peer.call(commands.Queue.Delete(queue="q"))
    peer.declare("q")
    assert stats(lab) == {"publish": 1, "get_no_ack": 1, "deliver_get": 1}
    assert lab.vhost.counts.message_stats()["publish"] == 1
    assert lab.vhost.queues["q"].statistics.message_stats() == {}


def test_the_counts_of_a_deleted_vhost_remain_in_the_totals() -> None:
    lab = Lab()
    lab.broker.add_vhost("other")
    from_guest = lab.broker.users["guest"]
    from_guest.permissions["other"] = from_guest.permissions["/"]
    lab.connect(vhost="other").publish("nowhere", b"x")
    lab.broker.delete_vhost("other")
    assert stats(lab) == {"publish": 1, "drop_unroutable": 1}


def test_deliveries_are_counted_by_type_of_queue() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("classic")
    peer.declare("quorum", durable=True, arguments={"x-queue-type": "quorum"})
    for queue in ("classic", "quorum", "quorum"):
        peer.publish(queue, b"x")
        peer.get(queue)
    counted = {kind: counts.deliver_get for kind, counts in lab.broker.counters.deliveries.items()}
    assert counted == {"classic": 1, "quorum": 2, "stream": 0, "volatile": 0}


def test_a_stream_counts_the_deliveries_to_each_of_its_readers() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("log", durable=True, arguments={"x-queue-type": "stream"})
    peer.call(commands.Basic.Qos(prefetch_count=10))
    for tag in "ab":
        peer.consume("log", tag)
    peer.publish("log", b"x")
    peer.deliveries()
    peer.send(commands.Basic.Ack(0, True))
    assert stats(lab) == {"publish": 1, "deliver": 2, "deliver_get": 2, "ack": 2}


def test_dead_messages_are_counted_by_reason_and_strategy() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("dead")
    peer.declare(
        "kept", arguments={"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    )
    peer.declare("lost", arguments={"x-message-ttl": 10})
    for queue in ("kept", "kept", "lost"):
        peer.publish(queue, b"x")
    lab.advance(10)
    peer.call(commands.Queue.Purge(queue="kept"))
    counted = {key: count for key, count in lab.broker.counters.dead_lettered.items() if count}
    assert counted == {("classic", "at_most_once", "maxlen"): 1, ("classic", "disabled", "expired"): 1}
    assert lab.vhost.queues["kept"].statistics.given_up == {"maxlen": 1, "purged": 1}
    # A dead letter does not count as published by a client.
    assert stats(lab) == {"publish": 3}


def test_created_and_deleted_objects_are_counted() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("q")
    peer.declare("q")
    peer.call(commands.Queue.Delete(queue="q"))
    peer.open_channel(2)
    peer.call(commands.Channel.Close(200, "", 0, 0), channel=2)
    lab.connect().disconnect()
    assert lab.broker.counters.churn() == {
        "connection_created": 2,
        "connection_closed": 1,
        "channel_created": 3,
        "channel_closed": 2,
        "queue_declared": 2,
        "queue_created": 1,
        "queue_deleted": 1,
    }


def test_replies_count_as_deliveries_of_a_type_of_their_own() -> None:
    lab = Lab()
    client, server = lab.connect(), lab.connect()
    server.declare("requests")
    client.consume("amq.rabbitmq.reply-to", no_ack=True)
    client.publish("requests", b"question", reply_to="amq.rabbitmq.reply-to")
    asked = server.get("requests")
    assert asked is not None
    server.publish(asked[1].properties.reply_to or "", b"answer")
    lab.broker.collect_counts()
    deliveries = lab.broker.counters.deliveries
    assert (deliveries["volatile"].deliver_no_ack, deliveries["classic"].deliver_no_ack) == (1, 0)


@pytest.mark.parametrize(
    ("strategy", "overflow", "counted"),
    [
        ("at-least-once", "reject-publish", {("at_least_once", "rejected"): 1, ("at_least_once", "confirmed"): 1}),
        ("at-least-once", "drop-head", {("at_most_once", "rejected"): 1}),
        ("at-most-once", "reject-publish", {("at_most_once", "rejected"): 1}),
    ],
)
def test_dead_letters_are_counted_by_strategy(
    strategy: str, overflow: str, counted: dict[tuple[str, str], int]
) -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("dead")
    arguments = {
        "x-queue-type": "quorum",
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "dead",
        "x-dead-letter-strategy": strategy,
        "x-overflow": overflow,
    }
    peer.declare("work", durable=True, arguments=arguments)
    peer.publish("work", b"m")
    assert peer.get("work", no_ack=False)
    peer.send(commands.Basic.Reject(1, requeue=False))
    found = lab.broker.counters.dead_lettered.items()
    assert {(by, reason): count for (kind, by, reason), count in found if count and kind == "quorum"} == counted


def test_counts_are_collected_in_steps_between_which_clients_publish_and_change_the_topology() -> None:
    lab = Lab()
    peers = [published(lab, b"m", to="nowhere") for _ in range(5)]
    peers[0].declare("q")
    for number in range(5):
        peers[0].publish(f"key {number}")

    def publish() -> None:
        for peer in peers:
            peer.publish("nowhere")
        peers[4].publish("q")

    steps, _ = counted(lab.broker.collecting_counts(), {2: publish, 7: lambda: peers[1].declare("other")})
    assert steps >= 7
    assert stats(lab)["publish"] == 16
    assert not lab.vhost.counts.pending_routes
