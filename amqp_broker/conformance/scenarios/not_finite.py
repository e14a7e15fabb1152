"""Floating-point numbers that Erlang does not have: NaN and infinity, in headers and in arguments."""

from __future__ import annotations

from typing import Any

from pamqp import commands
from pamqp.commands import Basic, Confirm, Exchange, Queue, Tx

from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.wire import Field

NOT_A_NUMBER, INFINITY = float("nan"), float("inf")


def _publish(lab: Lab, headers: dict[str, Any], **flags: Any) -> None:
    """Publish with headers that RabbitMQ cannot read, and see what follows."""
    channel, q = lab.channel(), lab.queue()
    other = channel.connection.channel()
    channel.call(Confirm.Select)
    channel.publish(b"x", routing_key=q, headers=headers, **flags)
    channel.expect()
    other.call(Queue.Declare, queue=q, passive=True)


@scenario
def a_header_that_is_not_a_number_is_refused(lab: Lab) -> None:
    _publish(lab, {"a": Field("d", NOT_A_NUMBER)})


@scenario
def a_short_header_that_is_not_a_number_is_refused(lab: Lab) -> None:
    _publish(lab, {"a": Field("f", NOT_A_NUMBER)})


@scenario
def an_infinite_header_is_refused(lab: Lab) -> None:
    _publish(lab, {"a": 1, "b": Field("d", -INFINITY)})


@scenario
def a_short_infinite_header_is_refused(lab: Lab) -> None:
    _publish(lab, {"a": 1, "b": Field("f", INFINITY)})


@scenario
def a_number_that_is_none_deep_in_a_header_is_refused(lab: Lab) -> None:
    _publish(lab, {"a": {"b": [1, {"c": Field("d", NOT_A_NUMBER)}]}})


@scenario
def a_header_that_is_not_a_number_is_refused_without_a_queue(lab: Lab) -> None:
    channel = lab.channel()
    channel.publish(b"x", routing_key=lab.name("missing"), headers={"a": Field("d", NOT_A_NUMBER)})
    channel.expect()


@scenario
def a_header_that_is_not_a_number_is_refused_in_a_transaction(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    channel.call(Tx.Select)
    channel.publish(b"x", routing_key=q, headers={"a": Field("d", NOT_A_NUMBER)})
    channel.expect()


@scenario
def finite_headers_come_back(lab: Lab) -> None:
    numbers = (0.0, -0.0, 1.5, 5e-324, 1.7976931348623157e308)
    lab.channel().echo(lab.queue(), b"x", headers={f"d{n}": Field("d", one) for n, one in enumerate(numbers)})


@scenario
def a_queue_with_an_argument_that_is_not_a_number_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    channel.call(Queue.Declare, queue=lab.name("q"), durable=True, arguments={"a": Field("d", NOT_A_NUMBER)})


@scenario
def an_exchange_with_an_argument_that_is_infinite_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    arguments = {"a": Field("f", INFINITY)}
    channel.call(Exchange.Declare, exchange=lab.name("x"), exchange_type="direct", durable=True, arguments=arguments)


@scenario
def a_binding_with_an_argument_that_is_not_a_number_is_refused(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    channel.call(Queue.Bind, queue=q, exchange="amq.headers", arguments={"a": Field("d", NOT_A_NUMBER)})


@scenario
def a_consumer_with_an_argument_that_is_not_a_number_is_refused(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    channel.call(Basic.Consume, queue=q, arguments={"a": Field("d", NOT_A_NUMBER)})


@scenario
def a_missing_exchange_is_noticed_before_a_header_that_is_not_a_number(lab: Lab) -> None:
    channel = lab.channel()
    channel.publish(b"x", exchange=lab.name("missing"), headers={"a": Field("d", NOT_A_NUMBER)})
    channel.expect()


@scenario
def a_number_that_is_none_is_refused_after_finite_ones_of_the_same_layout(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    channel.call(Confirm.Select)
    for number in (1.5, 2.5, NOT_A_NUMBER):
        channel.publish(b"x", routing_key=q, headers={"a": Field("d", number)})
        channel.expect()


@scenario
def a_client_whose_properties_have_a_number_that_is_none_is_refused(lab: Lab) -> None:
    connection = lab.dial()
    connection.send_header()
    connection.call(
        commands.Connection.StartOk,
        client_properties={"a": Field("d", NOT_A_NUMBER)},
        mechanism="PLAIN",
        response=f"\0{lab.terms.user}\0{lab.terms.password}",
        locale="en_US",
    )
