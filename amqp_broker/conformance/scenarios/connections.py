"""An open connection: closes in both directions, secrets, methods out of place, limits of channels."""

from __future__ import annotations

from pamqp import commands
from pamqp.commands import Basic, Queue

from amqp_broker.conformance import wire
from amqp_broker.conformance.lab import Lab, scenario


@scenario
def a_client_that_closes_is_answered_with_close_ok(lab: Lab) -> None:
    connection = lab.connect()
    connection.channel()
    connection.call(commands.Connection.Close, reply_code=320, reply_text="I am leaving", class_id=1, method_id=2)


@scenario
def the_secret_can_be_updated(lab: Lab) -> None:
    lab.connect().call(commands.Connection.UpdateSecret, new_secret="guest", reason="rotation")


@scenario
def opening_the_vhost_twice_is_refused(lab: Lab) -> None:
    lab.connect().open()


@scenario
def a_second_login_is_refused(lab: Lab) -> None:
    lab.connect().start_ok()


@scenario
def a_second_tune_ok_is_refused(lab: Lab) -> None:
    connection = lab.connect()
    connection.tune_ok()
    connection.expect()


@scenario
def an_unsolicited_close_ok_is_refused(lab: Lab) -> None:
    connection = lab.connect()
    connection.send(commands.Connection.CloseOk)
    connection.expect()


@scenario
def a_method_of_the_server_on_channel_0_is_refused(lab: Lab) -> None:
    connection = lab.connect()
    connection.send(commands.Connection.OpenOk)
    connection.expect()


@scenario
def a_method_of_channels_on_channel_0_is_refused(lab: Lab) -> None:
    lab.connect().call(Queue.Declare, queue=lab.name("q"))


@scenario
def opening_channel_0_is_refused(lab: Lab) -> None:
    lab.connect().call(commands.Channel.Open)


@scenario
def a_method_of_connections_on_a_channel_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    channel.send(commands.Connection.TuneOk, channel_max=10, frame_max=8192)
    channel.expect()


@scenario
def a_connection_closed_on_a_channel_is_refused(lab: Lab) -> None:
    lab.channel().call(commands.Connection.Close, reply_code=200, reply_text="bye")


@scenario
def one_channel_more_than_channel_max_is_refused(lab: Lab) -> None:
    connection = lab.connect(channel_max=2)
    connection.channel(1)
    connection.channel(2)
    connection.use_channel(3).call(commands.Channel.Open)


@scenario
def the_number_of_a_channel_may_exceed_channel_max(lab: Lab) -> None:
    connection = lab.connect(channel_max=2)
    connection.use_channel(1000).call(commands.Channel.Open)
    connection.use_channel(65535).call(commands.Channel.Open)


@scenario
def a_closed_channel_does_not_count_against_channel_max(lab: Lab) -> None:
    connection = lab.connect(channel_max=1)
    connection.channel(1).call(commands.Channel.Close, reply_code=200)
    connection.use_channel(2).call(commands.Channel.Open)


@scenario
def all_is_ignored_after_the_brokers_connection_close(lab: Lab) -> None:
    connection = lab.connect()
    connection.control.answers_closes = False
    connection.call(commands.Channel.Open)
    connection.use_channel(1).send(commands.Channel.Open)
    connection.use_channel(2).send(Queue.Declare, queue=lab.name("q"))
    connection.send(commands.Connection.CloseOk)
    connection.expect_end()
    lab.channel().call(Queue.Declare, queue=lab.name("q"), passive=True)


@scenario
def a_close_that_crosses_the_brokers_close_is_answered(lab: Lab) -> None:
    connection = lab.connect()
    connection.control.answers_closes = False
    connection.call(commands.Channel.Open)
    connection.call(commands.Connection.Close, reply_code=200, reply_text="crossing")
    connection.send(commands.Connection.CloseOk)
    connection.expect_end()


@scenario
def heartbeats_are_accepted_although_none_were_agreed(lab: Lab) -> None:
    connection = lab.connect(heartbeat=0)
    connection.control.send_frame(wire.HEARTBEAT, b"", "heartbeat")
    connection.channel().declare(lab.name("q"))


@scenario
def a_reply_text_of_the_client_may_be_long_and_not_ascii(lab: Lab) -> None:
    lab.connect().call(commands.Connection.Close, reply_code=65535, reply_text="é" * 127)


@scenario
def an_error_on_one_connection_leaves_the_others_alone(lab: Lab) -> None:
    a, b = lab.channel(), lab.channel()
    a.call(commands.Channel.Open)
    b.declare(lab.name("q"))
    b.call(Basic.Get, queue=lab.name("q"))
