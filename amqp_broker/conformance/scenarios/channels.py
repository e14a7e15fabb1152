"""Channels: opening, closing, flow, numbers, and errors that close only one."""

from __future__ import annotations

from pamqp import commands
from pamqp.commands import Basic, Confirm, Queue, Tx

from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.wire import Access


@scenario
def opening_a_channel_is_answered_with_an_empty_channel_id(lab: Lab) -> None:
    lab.connect().use_channel(1).call(commands.Channel.Open)


@scenario
def opening_a_channel_twice_closes_the_connection_with_504(lab: Lab) -> None:
    lab.channel().call(commands.Channel.Open)


@scenario
def a_method_on_a_channel_that_is_not_open_closes_the_connection_with_504(lab: Lab) -> None:
    lab.connect().use_channel(7).call(Queue.Declare, queue=lab.name("q"))


@scenario
def closing_a_channel_that_is_not_open_closes_the_connection(lab: Lab) -> None:
    lab.connect().use_channel(7).call(commands.Channel.Close, reply_code=200)


@scenario
def a_close_ok_on_a_channel_that_is_not_open(lab: Lab) -> None:
    connection = lab.connect()
    connection.use_channel(7).send(commands.Channel.CloseOk)
    connection.expect()


@scenario
def a_close_ok_on_an_open_channel(lab: Lab) -> None:
    channel = lab.channel()
    channel.send(commands.Channel.CloseOk)
    channel.expect()


@scenario
def publishing_on_a_channel_that_is_not_open_closes_the_connection_with_504(lab: Lab) -> None:
    channel = lab.connect().use_channel(7)
    channel.publish(b"x", routing_key="nowhere")
    channel.expect()


@scenario
def a_channel_closed_by_the_client_can_be_opened_again_with_its_number(lab: Lab) -> None:
    connection = lab.connect()
    channel = connection.channel(5)
    channel.call(commands.Channel.Close, reply_code=404, reply_text="for a reason", class_id=50, method_id=10)
    channel.call(commands.Channel.Open)
    channel.call(Basic.Qos, prefetch_count=1)


@scenario
def a_channel_closed_by_an_error_can_be_opened_again_with_its_number(lab: Lab) -> None:
    channel = lab.channel()
    channel.call(Queue.Declare, queue="missing", passive=True)
    channel.call(commands.Channel.Open)
    channel.call(Basic.Qos, prefetch_count=1)


@scenario
def an_error_carries_the_class_and_method_that_caused_it(lab: Lab) -> None:
    connection = lab.connect()
    connection.channel().call(Queue.Bind, queue="missing", exchange="amq.direct")
    connection.channel().call(Basic.Consume, queue="missing")
    connection.channel().call(Basic.Get, queue="missing")
    connection.channel().call(Queue.Purge, queue="missing")
    connection.channel().call(Tx.Commit)


@scenario
def an_error_on_one_channel_leaves_the_others_alone(lab: Lab) -> None:
    connection = lab.connect()
    one, two = connection.channel(), connection.channel()
    one.call(Queue.Declare, queue="missing", passive=True)
    two.declare(lab.name("q"))


@scenario
def all_is_ignored_between_the_brokers_close_and_close_ok(lab: Lab) -> None:
    q = lab.queue()
    channel = lab.channel()
    channel.answers_closes = False
    channel.call(Queue.Declare, queue="missing", passive=True)
    channel.send(Queue.Delete, queue=q)
    channel.publish(b"lost", routing_key=q)
    channel.send(commands.Channel.CloseOk)
    channel.call(commands.Channel.Open)
    channel.get(q)


@scenario
def opening_a_channel_before_answering_its_close_closes_the_connection(lab: Lab) -> None:
    channel = lab.channel()
    channel.answers_closes = False
    channel.call(Queue.Declare, queue="missing", passive=True)
    channel.call(commands.Channel.Open)


@scenario
def a_channel_close_that_crosses_the_brokers_close_is_answered(lab: Lab) -> None:
    channel = lab.channel()
    channel.answers_closes = False
    channel.call(Queue.Declare, queue="missing", passive=True)
    channel.call(commands.Channel.Close, reply_code=200)
    channel.send(commands.Channel.CloseOk)
    channel.connection.channel(2).declare(lab.name("q"))


@scenario
def methods_sent_before_an_error_are_answered_before_it(lab: Lab) -> None:
    channel = lab.channel()
    channel.send(Basic.Qos, prefetch_count=1)
    channel.send(Queue.Declare, queue="missing", passive=True)
    channel.send(Basic.Qos, prefetch_count=2)
    channel.expect(commands.Channel.Close)


@scenario
def flow_that_is_active_is_answered(lab: Lab) -> None:
    lab.channel().call(commands.Channel.Flow, active=True)


@scenario
def flow_that_is_not_active_closes_the_connection_with_540(lab: Lab) -> None:
    lab.channel().call(commands.Channel.Flow, active=False)


@scenario
def an_unsolicited_flow_ok(lab: Lab) -> None:
    channel = lab.channel()
    channel.send(commands.Channel.FlowOk, active=True)
    channel.expect()


@scenario
def access_is_granted_with_ticket_1(lab: Lab) -> None:
    channel = lab.channel()
    channel.call(Access.Request, realm="/data", passive=True, read=True)


@scenario
def a_ticket_is_ignored(lab: Lab) -> None:
    lab.channel().call(Queue.Declare, ticket=4711, queue=lab.name("q"))


@scenario
def prefetch_size_is_not_implemented(lab: Lab) -> None:
    lab.channel().call(Basic.Qos, prefetch_size=100, prefetch_count=1)


@scenario
def nowait_is_answered_with_nothing(lab: Lab) -> None:
    channel = lab.channel()
    channel.send(Queue.Declare, queue=lab.name("q"), nowait=True)
    channel.send(Queue.Bind, queue=lab.name("q"), exchange="amq.direct", routing_key="k", nowait=True)
    channel.send(Confirm.Select, nowait=True)
    channel.send(Basic.Consume, queue=lab.name("q"), consumer_tag="c", nowait=True)
    channel.send(Basic.Cancel, consumer_tag="c", nowait=True)
    channel.send(Queue.Purge, queue=lab.name("q"), nowait=True)
    channel.send(Queue.Delete, queue=lab.name("q"), nowait=True)
    channel.sync()


@scenario
def an_error_is_reported_despite_nowait(lab: Lab) -> None:
    channel = lab.channel()
    channel.send(Queue.Declare, queue="missing", passive=True, nowait=True)
    channel.expect()


@scenario
def a_long_reply_text_is_cut(lab: Lab) -> None:
    channel = lab.channel()
    channel.call(Queue.Declare, queue="q" * 255, passive=True)
    channel.connection.channel().call(Queue.Declare, queue="é" * 127, passive=True)
