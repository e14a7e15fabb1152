"""Exchanges: declare, delete, bind to each other, and all refusals."""

from __future__ import annotations

from pamqp.commands import Exchange, Queue

from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.wire import Field

TYPES = ("direct", "fanout", "topic", "headers")
PREDECLARED = {
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.topic": "topic",
    "amq.headers": "headers",
    "amq.match": "headers",
}


@scenario
def an_exchange_of_each_type_is_declared_and_deleted(lab: Lab) -> None:
    channel = lab.channel()
    for kind in TYPES:
        channel.exchange(lab.name(kind), kind)
        channel.call(Exchange.Delete, exchange=lab.name(kind))


@scenario
def the_predeclared_exchanges_are_there_and_durable(lab: Lab) -> None:
    channel = lab.channel()
    for name, kind in PREDECLARED.items():
        channel.exchange(name, kind, durable=True)
        channel.call(Exchange.Declare, exchange=name, passive=True)
    channel.exchange("amq.rabbitmq.trace", "topic", durable=True, internal=True)


@scenario
def a_predeclared_exchange_is_not_transient(lab: Lab) -> None:
    lab.channel().exchange("amq.direct", "direct")


@scenario
def an_exchange_name_with_the_reserved_prefix_is_refused(lab: Lab) -> None:
    lab.channel().exchange("amq.foo", "direct")


@scenario
def the_type_of_an_exchange_is_checked_before_its_name(lab: Lab) -> None:
    lab.channel().exchange("amq.foo", "nonsense")


@scenario
def an_unknown_exchange_type_is_refused(lab: Lab) -> None:
    lab.channel().exchange(lab.name("x"), "nonsense")


@scenario
def an_unknown_type_is_refused_although_the_exchange_exists(lab: Lab) -> None:
    channel = lab.channel()
    channel.exchange(lab.name("x"), "direct")
    channel.exchange(lab.name("x"), "nonsense")


@scenario
def an_empty_exchange_type_is_unknown(lab: Lab) -> None:
    lab.channel().exchange(lab.name("x"), "")


@scenario
def a_passive_declare_of_an_exchange_ignores_its_attributes(lab: Lab) -> None:
    channel = lab.channel()
    channel.exchange(lab.name("x"), "direct")
    channel.exchange(lab.name("x"), "nonsense", passive=True, durable=True, auto_delete=True, internal=True)


@scenario
def a_passive_declare_of_a_missing_exchange_is_refused(lab: Lab) -> None:
    lab.channel().exchange(lab.name("x"), passive=True)


@scenario
def a_passive_declare_of_a_missing_reserved_exchange_is_refused(lab: Lab) -> None:
    lab.channel().exchange("amq.foo", passive=True)


@scenario
def declaring_an_exchange_again_is_fine(lab: Lab) -> None:
    channel = lab.channel()
    for _ in range(2):
        channel.exchange(lab.name("x"), "topic", durable=True, arguments={"x-unknown": 1})
    channel.exchange(lab.name("x"), "topic", durable=True, arguments={"x-other": "y"})


@scenario
def each_attribute_of_an_exchange_is_compared(lab: Lab) -> None:
    connection = lab.connect()
    connection.channel().exchange(lab.name("x"), "direct")
    connection.channel().exchange(lab.name("x"), "fanout")
    connection.channel().exchange(lab.name("x"), "direct", durable=True)
    connection.channel().exchange(lab.name("x"), "direct", auto_delete=True)
    connection.channel().exchange(lab.name("x"), "direct", internal=True)
    connection.channel().exchange(lab.name("x"), "direct", arguments={"alternate-exchange": "amq.fanout"})


@scenario
def the_attributes_of_an_exchange_are_compared_in_order(lab: Lab) -> None:
    connection = lab.connect()
    different = {"durable": True, "auto_delete": True, "internal": True}
    arguments = {"alternate-exchange": "amq.fanout"}
    connection.channel().exchange(lab.name("x"), "direct")
    connection.channel().exchange(lab.name("x"), "fanout", arguments=arguments, **different)
    for name in ("durable", "auto_delete", "internal"):
        connection.channel().exchange(lab.name("x"), "direct", arguments=arguments, **different)
        del different[name]


@scenario
def the_alternate_exchange_is_compared_both_ways(lab: Lab) -> None:
    connection = lab.connect()
    connection.channel().exchange(lab.name("x"), "direct", arguments={"alternate-exchange": "amq.fanout"})
    connection.channel().exchange(lab.name("x"), "direct")
    connection.channel().exchange(lab.name("x"), "direct", arguments={"alternate-exchange": "amq.direct"})


@scenario
def an_alternate_exchange_that_is_not_a_string_is_refused(lab: Lab) -> None:
    connection = lab.connect()
    for value in (True, 1, Field("V", None), ["amq.fanout"]):
        connection.channel().exchange(lab.name("x"), "direct", arguments={"alternate-exchange": value})


@scenario
def an_alternate_exchange_may_be_missing_or_nonsense(lab: Lab) -> None:
    connection = lab.connect()
    connection.channel().exchange(lab.name("x"), "direct", arguments={"alternate-exchange": "missing"})
    connection.channel().exchange(lab.name("y"), "direct", arguments={"alternate-exchange": ""})


@scenario
def line_ends_are_stripped_from_exchange_names(lab: Lab) -> None:
    channel = lab.channel()
    channel.exchange(lab.name("x\r\n"), "direct")
    channel.exchange(lab.name("x"), passive=True)
    channel.call(Exchange.Delete, exchange=lab.name("\rx\n"))
    channel.exchange(lab.name("x"), passive=True)


# --- the default exchange


@scenario
def the_default_exchange_cannot_be_declared(lab: Lab) -> None:
    connection = lab.connect()
    connection.channel().exchange("", "direct", durable=True)
    connection.channel().exchange("", "direct", passive=True)


@scenario
def the_default_exchange_cannot_be_deleted(lab: Lab) -> None:
    lab.channel().call(Exchange.Delete, exchange="")


@scenario
def nothing_can_be_bound_to_the_default_exchange(lab: Lab) -> None:
    connection = lab.connect()
    q = lab.queue()
    connection.channel().bind(q, "", "k")
    connection.channel().call(Exchange.Bind, source="", destination="amq.fanout")
    connection.channel().call(Exchange.Bind, source="amq.fanout", destination="")
    connection.channel().call(Exchange.Unbind, source="", destination="amq.fanout")
    connection.channel().call(Exchange.Unbind, source="amq.fanout", destination="")


# --- deleting


@scenario
def deleting_a_missing_exchange_is_fine(lab: Lab) -> None:
    channel = lab.channel()
    channel.call(Exchange.Delete, exchange=lab.name("x"))
    channel.call(Exchange.Delete, exchange=lab.name("x"), if_unused=True)


@scenario
def a_predeclared_exchange_cannot_be_deleted(lab: Lab) -> None:
    connection = lab.connect()
    for name in (*PREDECLARED, "amq.rabbitmq.trace", "amq.missing"):
        connection.channel().call(Exchange.Delete, exchange=name)


@scenario
def an_exchange_in_use_is_not_deleted_if_unused(lab: Lab) -> None:
    connection = lab.connect()
    channel = connection.channel()
    channel.exchange(lab.name("x"), "fanout")
    channel.bind(lab.queue(), lab.name("x"))
    channel.call(Exchange.Delete, exchange=lab.name("x"), if_unused=True)
    connection.channel().call(Exchange.Delete, exchange=lab.name("x"))
    connection.channel().exchange(lab.name("x"), passive=True)


@scenario
def an_exchange_that_is_only_a_destination_is_unused(lab: Lab) -> None:
    channel = lab.channel()
    channel.exchange(lab.name("x"), "fanout")
    channel.call(Exchange.Bind, source="amq.fanout", destination=lab.name("x"))
    channel.call(Exchange.Delete, exchange=lab.name("x"), if_unused=True)


# --- auto-delete


@scenario
def an_auto_delete_exchange_goes_with_its_last_binding(lab: Lab) -> None:
    channel = lab.channel()
    q, x = lab.queue(), lab.name("x")
    channel.exchange(x, "direct", auto_delete=True)
    channel.bind(q, x, "one")
    channel.bind(q, x, "two")
    channel.call(Queue.Unbind, queue=q, exchange=x, routing_key="one")
    channel.exchange(x, passive=True)
    channel.call(Queue.Unbind, queue=q, exchange=x, routing_key="two")
    channel.exchange(x, passive=True)


@scenario
def an_auto_delete_exchange_goes_with_its_last_queue(lab: Lab) -> None:
    channel = lab.channel()
    x = lab.name("x")
    channel.exchange(x, "direct", auto_delete=True)
    q = channel.declare(exclusive=True)
    channel.bind(q, x, "one")
    channel.call(Queue.Delete, queue=q)
    channel.exchange(x, passive=True)


@scenario
def an_auto_delete_exchange_that_is_only_a_destination_stays(lab: Lab) -> None:
    channel = lab.channel()
    x, y = lab.name("x"), lab.name("y")
    channel.exchange(x, "fanout", auto_delete=True)
    channel.exchange(y, "fanout")
    channel.call(Exchange.Bind, source=y, destination=x)
    channel.call(Exchange.Unbind, source=y, destination=x)
    channel.exchange(x, passive=True)


@scenario
def auto_delete_exchanges_go_in_a_chain(lab: Lab) -> None:
    connection = lab.connect()
    channel = connection.channel()
    x, y, q = lab.name("x"), lab.name("y"), lab.queue()
    channel.exchange(x, "fanout", auto_delete=True)
    channel.exchange(y, "fanout", auto_delete=True)
    channel.call(Exchange.Bind, source=x, destination=y)
    channel.bind(q, y)
    channel.call(Queue.Delete, queue=q)
    channel.exchange(y, passive=True)
    connection.channel().exchange(x, passive=True)


# --- binding exchanges to each other


@scenario
def a_binding_of_missing_exchanges_is_refused(lab: Lab) -> None:
    connection = lab.connect()
    connection.channel().call(Exchange.Bind, source=lab.name("missing"), destination="amq.fanout")
    connection.channel().call(Exchange.Bind, source="amq.fanout", destination=lab.name("missing"))
    connection.channel().call(Exchange.Bind, source=lab.name("missing"), destination=lab.name("absent"))


@scenario
def unbinding_an_unbound_exchange_succeeds(lab: Lab) -> None:
    connection = lab.connect()
    connection.channel().call(Exchange.Unbind, source="amq.direct", destination="amq.fanout", routing_key="k")
    connection.channel().call(Exchange.Unbind, source=lab.name("missing"), destination="amq.fanout")
    connection.channel().call(Exchange.Unbind, source="amq.fanout", destination=lab.name("missing"))


@scenario
def binding_exchanges_twice_makes_one_binding(lab: Lab) -> None:
    channel = lab.channel()
    x, q = lab.name("x"), lab.queue()
    channel.exchange(x, "fanout")
    for _ in range(2):
        channel.call(Exchange.Bind, source="amq.direct", destination=x, routing_key=lab.name("k"))
    channel.bind(q, x)
    channel.publish(b"one", exchange="amq.direct", routing_key=lab.name("k"))
    channel.sync(q)
    channel.drain(q)
    channel.call(Exchange.Unbind, source="amq.direct", destination=x, routing_key=lab.name("k"))
    channel.publish(b"two", exchange="amq.direct", routing_key=lab.name("k"), mandatory=True)
