"""What the broker is told to do as a whole; what is meant for clusters has nothing to do here."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from amqp_broker.broker.resetting import reset, reset_vhost
from amqp_broker.management import body
from amqp_broker.management.access import ADMINISTRATOR, MANAGEMENT
from amqp_broker.management.request import NO_CONTENT, Answer, Request, Resource, not_found

SECRET: Final = ("pass", "secret", "key_password")


def nothing(request: Request) -> Answer:
    """Leaders of queues are where they are, and no statistics are kept beside the objects that have them."""
    if request.path.get("node", request.broker.node) != request.broker.node:
        raise not_found()
    return NO_CONTENT


def act_on_queue(request: Request) -> Answer:
    """Queues have no mirrors that could be behind."""
    if request.path["queue"] not in request.vhost.queues:
        raise not_found()
    action = body.body_of(request, "action")["action"]
    if action not in ("sync", "cancel_sync"):
        raise body.refused_term("unknown", action)
    return NO_CONTENT


def effective_config(request: Request) -> dict[str, Any]:
    """The settings that are in force, but for passwords."""
    config = request.broker.config
    return {
        field.name: value
        for field in dataclasses.fields(config)
        if not any(word in field.name for word in SECRET)
        and isinstance(value := getattr(config, field.name), (str, int, float, bool, type(None)))
    }


def reset_broker(request: Request) -> Answer:
    """Delete everything, or everything in the vhost that the query names."""
    name = request.query.get("vhost")
    if name is None:
        reset(request.broker)
    elif name in request.broker.vhosts:
        reset_vhost(request.broker.vhosts[name])
    else:
        raise not_found()
    return NO_CONTENT


RESOURCES = (
    Resource("/api/rebalance/queues", ADMINISTRATOR, {"POST": nothing}),
    Resource("/api/reset", ADMINISTRATOR, {"DELETE": nothing}),
    Resource("/api/reset/{node}", ADMINISTRATOR, {"DELETE": nothing}),
    Resource("/api/config/effective", ADMINISTRATOR, {"GET": effective_config}),
    Resource("/api/queues/{vhost}/{queue}/actions", MANAGEMENT, {"POST": act_on_queue}),
    Resource("/_broker/reset", ADMINISTRATOR, {"POST": reset_broker}),
)
