"""A user without any permission."""

from __future__ import annotations

from pamqp.commands import Basic, Exchange, Queue

from amqp_broker.conformance.lab import Lab
from compat.configured.area import Area
from compat.configured.registry import configured_scenario

AREA = Area(
    "no_permissions",
    tuple(f"default_permissions.{action} = ^$" for action in ("configure", "read", "write")),
)


@configured_scenario
def a_passive_declare_of_a_queue_without_any_permission(lab: Lab) -> None:
    lab.channel().call(Queue.Declare, queue="missing", passive=True)


@configured_scenario
def a_passive_declare_of_a_queue_without_a_name_and_without_any_permission(lab: Lab) -> None:
    lab.channel().call(Queue.Declare, queue="", passive=True)


@configured_scenario
def a_passive_declare_of_an_exchange_without_any_permission(lab: Lab) -> None:
    for exchange in ("amq.direct", "missing", ""):
        lab.channel().call(Exchange.Declare, exchange=exchange, exchange_type="direct", passive=True)


@configured_scenario
def each_verb_without_any_permission(lab: Lab) -> None:
    connection = lab.connect()
    connection.channel().call(Queue.Declare, queue="q", durable=True)
    connection.channel().call(Queue.Delete, queue="q")
    connection.channel().call(Queue.Purge, queue="q")
    connection.channel().call(Queue.Bind, queue="q", exchange="amq.direct")
    connection.channel().call(Queue.Unbind, queue="q", exchange="amq.direct")
    connection.channel().call(Exchange.Declare, exchange="x", exchange_type="direct")
    connection.channel().call(Exchange.Delete, exchange="x")
    connection.channel().call(Exchange.Bind, destination="amq.fanout", source="amq.direct")
    connection.channel().call(Basic.Get, queue="q")
    connection.channel().call(Basic.Consume, queue="q")
    channel = connection.channel()
    channel.publish(b"", exchange="amq.direct")
    channel.expect()
