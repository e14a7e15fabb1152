"""The limit of basic.qos with global, which the queues and consumers of a channel share."""

from __future__ import annotations

from collections import Counter

from pamqp import commands
from pamqp.commands import Basic, Tx

from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.scenario_channel import Channel

# The smallest share of 99 deliveries that each of three queues makes, which RabbitMQ serves in a random order.
SHARE_MIN = 10


def limited(lab: Lab, total: int, own: int = 0) -> Channel:
    """Return a channel with a limit for all its consumers, and with one for each."""
    channel = lab.channel()
    if own:
        channel.call(Basic.Qos, prefetch_count=own)
    channel.call(Basic.Qos, prefetch_count=total, global_=True)
    return channel


def ack_each(channel: Channel, first: int, last: int) -> None:
    """Ack these deliveries one after the other; record what each ack leads to."""
    for tag in range(first, last + 1):
        channel.ack(tag)
        channel.deliveries(1)


def share(lab: Lab, total: int, batch: int) -> None:
    """Settle 99 deliveries of three queues of 100, in batches; record whether all queues have their share."""
    channel = limited(lab, total)
    queues = {tag: lab.queue(tag) for tag in "pqr"}
    for tag, queue in queues.items():
        channel.consume(queue, tag)
    lab.transcript.record("lab> puts 100 messages into each")
    with lab.transcript.muted():
        for queue in queues.values():
            lab.put(queue, *[b""] * 100)
        counts: Counter[str] = Counter()
        taken, acked = 0, 0
        while acked < 99:
            for _ in range(total - (taken - acked)):
                tag = channel.expect(Basic.Deliver)["consumer_tag"]
                counts[tag] += taken >= total
                taken += 1
            acked = min(acked + batch, 99)
            channel.ack(acked, multiple=True)
        # The rest of the deliveries is not recorded.
        channel.call(commands.Channel.Close, reply_code=200)
    for tag in queues:
        channel.record("<", f"{tag} gets a share: {counts[tag] >= SHARE_MIN}")


@scenario
def queues_share_a_global_prefetch_of_1(lab: Lab) -> None:
    share(lab, 1, 1)


@scenario
def queues_share_a_global_prefetch_of_2(lab: Lab) -> None:
    share(lab, 2, 1)


@scenario
def queues_share_a_global_prefetch_of_10(lab: Lab) -> None:
    share(lab, 10, 1)


@scenario
def queues_share_what_one_ack_allows(lab: Lab) -> None:
    share(lab, 10, 10)


@scenario
def consumers_of_a_queue_share_a_global_prefetch(lab: Lab) -> None:
    channel, q = limited(lab, 1), lab.queue()
    lab.put(q, *[b"%d" % number for number in range(12)])
    channel.consume(q, "x")
    channel.deliveries(1)
    channel.consume(q, "y")
    ack_each(channel, 1, 9)


@scenario
def consumers_share_a_global_prefetch_in_the_order_in_which_they_were_passed_over(lab: Lab) -> None:
    channel, q = limited(lab, 2), lab.queue()
    lab.put(q, *[b"%d" % number for number in range(12)])
    channel.consume(q, "x")
    channel.deliveries(2)
    channel.consume(q, "y")
    channel.consume(q, "z")
    ack_each(channel, 1, 6)
    channel.ack(0, multiple=True)
    channel.deliveries(2)


@scenario
def a_consumer_that_was_served_waits_for_its_turn_when_messages_come_later(lab: Lab) -> None:
    channel, q = limited(lab, 1), lab.queue()
    channel.consume(q, "x")
    channel.consume(q, "y")
    for number in range(6):
        lab.put(q, b"%d" % number)
    channel.deliveries(1)
    ack_each(channel, 1, 5)


@scenario
def a_consumer_without_acks_waits_while_a_global_prefetch_is_reached(lab: Lab) -> None:
    channel, q = limited(lab, 1), lab.queue()
    lab.put(q, *[b"%d" % number for number in range(5)])
    channel.consume(q, "x")
    channel.deliveries(1)
    channel.consume(q, "n", no_ack=True)
    lab.rest(q)
    channel.ack(1)
    lab.rest(q)


@scenario
def a_global_prefetch_does_not_count_deliveries_without_acks(lab: Lab) -> None:
    channel, q = limited(lab, 1), lab.queue()
    lab.put(q, *[b"%d" % number for number in range(5)])
    channel.consume(q, no_ack=True)
    channel.deliveries(5)


@scenario
def consumers_of_higher_priority_come_first_under_a_global_prefetch(lab: Lab) -> None:
    channel, q = limited(lab, 2), lab.queue()
    lab.put(q, *[b"%d" % number for number in range(9)])
    channel.consume(q, "low")
    channel.deliveries(2)
    channel.consume(q, "high", arguments={"x-priority": 5})
    ack_each(channel, 1, 4)


@scenario
def consumers_with_room_of_their_own_share_a_global_prefetch(lab: Lab) -> None:
    channel, q = limited(lab, 3, own=2), lab.queue()
    lab.put(q, *[b"%d" % number for number in range(14)])
    channel.consume(q, "x")
    channel.deliveries(2)
    channel.consume(q, "y")
    channel.deliveries(1)
    channel.consume(q, "z")
    ack_each(channel, 1, 8)


@scenario
def a_consumer_that_settles_may_come_before_one_that_waits_under_a_global_prefetch(lab: Lab) -> None:
    channel, q = limited(lab, 2, own=1), lab.queue()
    lab.put(q, *[b"%d" % number for number in range(14)])
    for tag in "xy":
        channel.consume(q, tag)
        channel.deliveries(1)
    channel.consume(q, "z")
    ack_each(channel, 1, 6)


@scenario
def a_consumer_that_is_cancelled_waits_no_longer_under_a_global_prefetch(lab: Lab) -> None:
    channel, q = limited(lab, 1), lab.queue()
    lab.put(q, *[b"%d" % number for number in range(9)])
    channel.consume(q, "x")
    channel.deliveries(1)
    channel.consume(q, "y")
    channel.consume(q, "z")
    channel.call(Basic.Cancel, consumer_tag="x")
    lab.rest(q)
    channel.ack(1)
    lab.rest(q)
    channel.ack(2)
    lab.rest(q)
    channel.call(Basic.Cancel, consumer_tag="y")
    channel.ack(3)
    lab.rest(q)


@scenario
def a_consumer_that_comes_again_waits_behind_others_under_a_global_prefetch(lab: Lab) -> None:
    channel, q = limited(lab, 2), lab.queue()
    lab.put(q, *[b"%d" % number for number in range(9)])
    channel.consume(q, "x")
    channel.deliveries(2)
    channel.consume(q, "y")
    channel.call(Basic.Cancel, consumer_tag="x")
    channel.consume(q, "x")
    lab.rest(q)
    for tag in range(1, 7):
        channel.ack(tag)
        lab.rest(q)


@scenario
def a_returned_message_goes_to_each_consumer_in_turn_under_a_global_prefetch(lab: Lab) -> None:
    channel, q = limited(lab, 1), lab.queue()
    channel.consume(q, "x")
    channel.consume(q, "y")
    lab.put(q, b"1")
    channel.deliveries(1)
    for tag in range(1, 5):
        channel.reject(tag)
        channel.deliveries(1)


@scenario
def a_returned_message_may_go_to_a_consumer_without_acks_under_a_global_prefetch(lab: Lab) -> None:
    channel, q = limited(lab, 2), lab.queue()
    lab.put(q, *[b"%d" % number for number in range(3)])
    channel.consume(q, "x")
    channel.deliveries(2)
    channel.consume(q, "n", no_ack=True)
    lab.rest(q)
    channel.nack(2, multiple=True)
    lab.rest(q)


@scenario
def a_global_prefetch_may_be_lowered_raised_and_lifted(lab: Lab) -> None:
    channel, q = limited(lab, 4), lab.queue()
    lab.put(q, *[b"%d" % number for number in range(12)])
    channel.consume(q, "x")
    channel.deliveries(4)
    channel.consume(q, "y")
    channel.call(Basic.Qos, prefetch_count=2, global_=True)
    for tag in range(1, 5):
        channel.ack(tag)
        lab.rest(q)
    channel.call(Basic.Qos, prefetch_count=4, global_=True)
    lab.rest(q)
    channel.call(Basic.Qos, prefetch_count=0, global_=True)
    lab.rest(q)


@scenario
def a_prefetch_for_each_consumer_lifts_a_global_one(lab: Lab) -> None:
    channel, q = limited(lab, 1), lab.queue()
    lab.put(q, *[b"%d" % number for number in range(5)])
    channel.consume(q, "x")
    channel.deliveries(1)
    channel.consume(q, "y")
    channel.call(Basic.Qos, prefetch_count=1)
    lab.rest(q)


@scenario
def a_commit_makes_room_under_a_global_prefetch(lab: Lab) -> None:
    channel, q = limited(lab, 2), lab.queue()
    lab.put(q, *[b"%d" % number for number in range(9)])
    channel.call(Tx.Select)
    channel.consume(q, "x")
    channel.deliveries(2)
    channel.consume(q, "y")
    channel.ack(1)
    lab.rest(q)
    channel.ack(2)
    channel.call(Tx.Commit)
    lab.rest(q)
    channel.ack(4, multiple=True)
    channel.call(Tx.Commit)
    lab.rest(q)
    channel.ack(5)
    channel.call(Tx.Rollback)
    lab.rest(q)
    channel.ack(6, multiple=True)
    channel.call(Tx.Commit)
    lab.rest(q)


@scenario
def messages_from_get_count_while_the_global_prefetch_lasts_that_found_them(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    lab.put(q, *[b"%d" % number for number in range(9)])
    channel.get(q)
    channel.call(Basic.Qos, prefetch_count=2, global_=True)
    channel.consume(q)
    channel.deliveries(1)
    channel.ack(1)
    lab.rest(q)
    channel.get(q)
    channel.ack(2)
    lab.rest(q)
    channel.call(Basic.Qos, prefetch_count=0, global_=True)
    lab.rest(q)


@scenario
def acks_of_quorum_queues_make_room_under_a_global_prefetch(lab: Lab) -> None:
    channel = lab.channel()
    quorum = lab.queue("quorum", durable=True, arguments={"x-queue-type": "quorum"})
    q = lab.queue()
    lab.put(quorum, *[b"%d" % number for number in range(6)])
    channel.call(Basic.Qos, prefetch_count=3)
    channel.consume(quorum, "quorum")
    channel.deliveries(3)
    channel.call(Basic.Qos, prefetch_count=0)
    channel.call(Basic.Qos, prefetch_count=1, global_=True)
    lab.put(q, *[b"%d" % number for number in range(9)])
    channel.consume(q, "classic")
    lab.rest(quorum, q)
    for tag in range(1, 4):
        channel.ack(tag)
        lab.rest(quorum, q)


@scenario
def messages_of_a_lost_channel_go_to_consumers_under_a_global_prefetch(lab: Lab) -> None:
    channel, q = limited(lab, 2), lab.queue()
    lost = lab.channel()
    lab.put(q, *[b"%d" % number for number in range(5)])
    for _ in range(5):
        lost.get(q)
    channel.consume(q, "x")
    channel.consume(q, "y")
    lost.connection.close()
    lab.rest(q)
