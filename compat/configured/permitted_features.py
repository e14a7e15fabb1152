"""Deprecated features that an administrator permits."""

from __future__ import annotations

from pamqp.commands import Queue

from amqp_broker.conformance.lab import Lab
from compat.configured.area import Area
from compat.configured.registry import configured_scenario

AREA = Area(
    "permitted_features",
    (
        "deprecated_features.permit.transient_nonexcl_queues = true",
        "deprecated_features.permit.global_qos = true",
        "deprecated_features.permit.queue_master_locator = true",
    ),
    since=(4, 0),
)


@configured_scenario
def a_permitted_transient_queue_works(lab: Lab) -> None:
    channel, q = lab.channel(), lab.name("q")
    channel.call(Queue.Declare, queue=q, durable=False)
    channel.echo(q, b"1")
    channel.call(Queue.Declare, queue=q, durable=True)


@configured_scenario
def a_permitted_server_named_transient_queue(lab: Lab) -> None:
    channel = lab.channel()
    q = channel.call(Queue.Declare, durable=False, auto_delete=True)["queue"]
    channel.echo(q, b"1")
