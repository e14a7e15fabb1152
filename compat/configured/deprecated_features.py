"""Uses of deprecated features, both where an administrator refuses and where one permits them."""

from __future__ import annotations

from pamqp.commands import Basic, Queue

from amqp_broker.conformance.lab import Lab
from compat.configured import denied_features, permitted_features
from compat.configured.registry import shared_scenario

AREAS = denied_features.AREA, permitted_features.AREA
_scenario = shared_scenario(*(area.name for area in AREAS))


@_scenario
def a_transient_queue(lab: Lab) -> None:
    channel = lab.channel()
    channel.call(Queue.Declare, queue=lab.name("q"), durable=False, auto_delete=True)


@_scenario
def a_global_prefetch(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue(durable=True)
    lab.put(q, b"1", b"2", b"3", b"4", b"5")
    channel.call(Basic.Qos, prefetch_count=2, global_=True)
    channel.consume(q, "one")
    channel.consume(q, "two")
    channel.sync(q)
    channel.sync(q)


@_scenario
def a_master_locator(lab: Lab) -> None:
    channel = lab.channel()
    channel.call(Queue.Declare, queue=lab.name("q"), durable=True, arguments={"x-queue-master-locator": "client-local"})
