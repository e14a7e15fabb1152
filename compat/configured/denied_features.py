"""Deprecated features that an administrator refuses."""

from __future__ import annotations

from pamqp.commands import Basic, Queue

from amqp_broker.conformance.lab import Lab
from compat.configured.area import Area
from compat.configured.registry import configured_scenario

AREA = Area(
    "denied_features",
    (
        "deprecated_features.permit.transient_nonexcl_queues = false",
        "deprecated_features.permit.global_qos = false",
        "deprecated_features.permit.queue_master_locator = false",
    ),
    since=(4, 0),
)


@configured_scenario
def an_exclusive_transient_queue_is_not_refused(lab: Lab) -> None:
    channel, q = lab.channel(), lab.name("q")
    channel.call(Queue.Declare, queue=q, exclusive=True)
    channel.call(Queue.Declare, queue=q, passive=True)


@configured_scenario
def a_missing_transient_queue_may_be_asked_for(lab: Lab) -> None:
    lab.channel().call(Queue.Declare, queue=lab.name("q"), passive=True)


@configured_scenario
def a_durable_queue_that_exists_is_not_redeclared_as_transient(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue(durable=True)
    channel.call(Queue.Declare, queue=q, durable=False, auto_delete=True)


@configured_scenario
def a_local_prefetch_is_not_refused(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue(durable=True)
    lab.put(q, b"1", b"2", b"3")
    channel.call(Basic.Qos, prefetch_count=1)
    channel.consume(q, "one")
    channel.consume(q, "two")
    channel.sync(q)
    channel.sync(q)
