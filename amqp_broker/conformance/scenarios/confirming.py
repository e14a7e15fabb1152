"""Publisher confirms and transactions."""

from __future__ import annotations

from pamqp.commands import Basic, Confirm, Queue, Tx

from amqp_broker.conformance.lab import Lab, scenario


@scenario
def each_publish_is_confirmed_from_1_on(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.publish(b"before", routing_key=q)
    channel.call(Confirm.Select)
    for body in (b"1", b"2"):
        channel.publish(body, routing_key=q)
        channel.expect(Basic.Ack)


@scenario
def what_is_unroutable_is_confirmed(lab: Lab) -> None:
    channel = lab.channel()
    channel.call(Confirm.Select)
    channel.publish(b"x", routing_key=lab.name("missing"))
    channel.expect(Basic.Ack)


@scenario
def a_return_comes_before_its_confirm(lab: Lab) -> None:
    channel = lab.channel()
    channel.call(Confirm.Select)
    for body in (b"1", b"2"):
        channel.publish(body, routing_key=lab.name("missing"), mandatory=True)
        channel.expect(Basic.Ack)


@scenario
def a_persistent_message_in_a_durable_queue_is_confirmed(lab: Lab) -> None:
    channel = lab.channel()
    q = channel.declare(lab.name("q"), durable=True)
    channel.call(Confirm.Select)
    channel.publish(b"x", routing_key=q, delivery_mode=2)
    channel.expect(Basic.Ack)


@scenario
def a_message_to_many_queues_is_confirmed_once(lab: Lab) -> None:
    channel = lab.channel()
    x = lab.name("x")
    channel.exchange(x, "fanout")
    channel.bind(channel.declare(lab.name("one"), durable=True), x)
    channel.bind(channel.declare(lab.name("two")), x)
    channel.bind(channel.declare(lab.name("three"), durable=True), x)
    channel.call(Confirm.Select)
    channel.publish(b"x", exchange=x, delivery_mode=2)
    channel.expect(Basic.Ack)
    channel.sync()


@scenario
def many_publishes_are_all_confirmed(lab: Lab) -> None:
    channel = lab.channel()
    q = channel.declare(lab.name("q"), durable=True)
    channel.call(Confirm.Select)
    with lab.transcript.muted():
        for number in range(100):
            channel.publish(b"x", routing_key=q if number % 3 else lab.name("missing"), delivery_mode=1 + number % 2)
    channel.confirms(1, 100)
    channel.declare(q, passive=True)


@scenario
def a_second_confirm_select_continues_the_count(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    for _ in range(2):
        channel.call(Confirm.Select)
        channel.publish(b"x", routing_key=q)
        channel.expect(Basic.Ack)


@scenario
def channels_count_their_confirms_apart(lab: Lab) -> None:
    connection = lab.connect()
    q = lab.queue()
    channels = [connection.channel(), connection.channel()]
    for channel in (*channels, channels[0]):
        channel.call(Confirm.Select)
        channel.publish(b"x", routing_key=q)
        channel.expect(Basic.Ack)


@scenario
def a_channel_opened_again_does_not_confirm(lab: Lab) -> None:
    channel = lab.channel()
    channel.call(Confirm.Select)
    channel.publish(b"x", exchange=lab.name("missing"))
    channel.expect()
    again = channel.connection.channel(1)
    again.publish(b"x", routing_key=lab.queue())
    again.sync()


@scenario
def a_message_dropped_by_its_length_limit_is_confirmed(lab: Lab) -> None:
    channel = lab.channel()
    q = channel.declare(lab.name("q"), arguments={"x-max-length": 1})
    channel.call(Confirm.Select)
    for body in (b"1", b"2"):
        channel.publish(body, routing_key=q)
        channel.expect(Basic.Ack)
    channel.drain(q)


@scenario
def a_message_refused_by_its_length_limit_is_nacked(lab: Lab) -> None:
    channel = lab.channel()
    q = channel.declare(lab.name("q"), arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    channel.call(Confirm.Select)
    for body in (b"1", b"2"):
        channel.publish(body, routing_key=q)
        channel.expect(Basic.Ack, Basic.Nack)
    channel.drain(q)


@scenario
def a_settle_by_the_client_is_not_a_confirm(lab: Lab) -> None:
    channel = lab.channel()
    channel.call(Confirm.Select)
    channel.publish(b"x", routing_key=lab.queue())
    channel.expect(Basic.Ack)
    channel.ack(1)
    channel.expect()


# --- transactions


@scenario
def what_is_published_in_a_transaction_comes_with_the_commit(lab: Lab) -> None:
    channel, other = lab.channel(), lab.channel()
    q = lab.queue()
    channel.call(Tx.Select)
    channel.publish(b"1", routing_key=q)
    channel.publish(b"2", routing_key=q)
    channel.sync()
    other.get(q)
    channel.call(Tx.Commit)
    other.drain(q)


@scenario
def what_is_published_in_a_transaction_goes_with_the_rollback(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.call(Tx.Select)
    channel.publish(b"lost", routing_key=q)
    channel.call(Tx.Rollback)
    channel.publish(b"kept", routing_key=q)
    channel.call(Tx.Commit)
    channel.drain(q)


@scenario
def an_uncommitted_publish_goes_with_the_channel(lab: Lab) -> None:
    connection = lab.connect()
    channel = connection.channel()
    q = lab.queue()
    channel.call(Tx.Select)
    channel.publish(b"lost", routing_key=q)
    channel.call(Queue.Declare, queue=lab.name("missing"), passive=True)
    connection.channel().drain(q)


@scenario
def an_ack_in_a_transaction_counts_with_the_commit(lab: Lab) -> None:
    channel, other = lab.channel(), lab.channel()
    q = lab.queue()
    lab.put(q, b"1", b"2")
    channel.call(Tx.Select)
    channel.get(q)
    channel.get(q)
    channel.ack(1)
    channel.call(Tx.Commit)
    channel.nack(2)
    channel.sync()
    other.get(q)
    channel.call(Tx.Commit)
    other.drain(q)


@scenario
def an_ack_rolled_back_leaves_the_message_unacked(lab: Lab) -> None:
    channel, other = lab.channel(), lab.channel()
    q = lab.queue()
    lab.put(q, b"1")
    channel.call(Tx.Select)
    channel.get(q)
    channel.ack(1)
    channel.call(Tx.Rollback)
    other.get(q)
    channel.ack(1)
    channel.call(Tx.Commit)


@scenario
def an_unknown_tag_in_a_transaction_is_refused_at_once(lab: Lab) -> None:
    channel = lab.channel()
    channel.call(Tx.Select)
    channel.ack(99)
    channel.expect()


@scenario
def a_return_comes_with_the_commit(lab: Lab) -> None:
    channel = lab.channel()
    channel.call(Tx.Select)
    channel.publish(b"x", routing_key=lab.name("missing"), mandatory=True)
    channel.sync()
    channel.call(Tx.Commit)


@scenario
def a_missing_exchange_in_a_transaction_is_refused_at_once(lab: Lab) -> None:
    channel = lab.channel()
    channel.call(Tx.Select)
    channel.publish(b"x", exchange=lab.name("missing"))
    channel.expect()


@scenario
def an_empty_transaction_can_be_committed_and_rolled_back(lab: Lab) -> None:
    channel = lab.channel()
    for method in (Tx.Select, Tx.Commit, Tx.Rollback, Tx.Select, Tx.Commit):
        channel.call(method)


@scenario
def commit_and_rollback_need_a_transaction(lab: Lab) -> None:
    connection = lab.connect()
    connection.channel().call(Tx.Commit)
    connection.channel().call(Tx.Rollback)


@scenario
def a_channel_is_in_confirm_mode_or_in_a_transaction(lab: Lab) -> None:
    connection = lab.connect()
    for first, second in ((Tx.Select, Confirm.Select), (Confirm.Select, Tx.Select)):
        channel = connection.channel()
        channel.call(first)
        channel.call(second)


@scenario
def a_commit_on_a_channel_with_confirms_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    channel.call(Confirm.Select)
    channel.call(Tx.Commit)


@scenario
def publishes_are_committed_in_their_order_before_acks(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    lab.put(q, b"old")
    channel.call(Tx.Select)
    channel.get(q)
    channel.nack(1)
    channel.publish(b"new", routing_key=q)
    channel.call(Tx.Commit)
    channel.drain(q)


@scenario
def a_publish_refused_by_its_queue_makes_the_commit_partial(lab: Lab) -> None:
    channel = lab.channel()
    q = channel.declare(lab.name("q"), arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    channel.call(Tx.Select)
    channel.publish(b"1", routing_key=q)
    channel.publish(b"2", routing_key=q)
    channel.call(Tx.Commit)
