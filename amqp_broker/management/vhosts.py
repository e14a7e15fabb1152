"""Vhosts, and what an administrator notes about them.

Source: rabbit_mgmt_wm_vhost.erl, rabbit_mgmt_wm_vhost_deletion_protection.erl, rabbit_vhost.erl (put_vhost, info).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from amqp_broker.broker.access import Permission
from amqp_broker.broker.metadata import Metadata
from amqp_broker.broker.vhost import VHost
from amqp_broker.errors import ProtectedFromDeletion
from amqp_broker.management import body
from amqp_broker.management.access import ADMINISTRATOR, MANAGEMENT, may
from amqp_broker.management.listing import listed
from amqp_broker.management.request import CREATED, NO_CONTENT, Answer, Refusal, Request, Resource, bad_request


def seen_vhosts(request: Request) -> list[VHost]:
    """The vhosts whose objects are listed to the user: an administrator sees all, others those that they may open."""
    user, vhosts = request.user, sorted(request.broker.vhosts.items())
    return [vhost for name, vhost in vhosts if may(user, ADMINISTRATOR) or user.can_open(name)]


def named_vhosts(request: Request) -> list[VHost]:
    """The vhost in the path, or all that the user sees where there is none."""
    return [request.vhost] if "vhost" in request.path else seen_vhosts(request)


def changed_vhost(request: Request) -> VHost:
    """The vhost in the path of a change, of which RabbitMQ says in other words that it is not there."""
    if request.path["vhost"] not in request.broker.vhosts:
        raise Refusal(404, "not_found", "vhost_not_found")
    return request.vhost


def of_vhost(vhost: VHost) -> dict[str, Any]:
    metadata = vhost.metadata
    queue_type = metadata.default_queue_type or "classic"
    queues = vhost.queues.values()
    ready, unacked = sum(queue.ready_count for queue in queues), sum(queue.unacked_count for queue in queues)
    return {
        "name": vhost.name,
        "description": metadata.description,
        "tags": list(metadata.tags),
        "default_queue_type": queue_type,
        "protected_from_deletion": metadata.is_protected_from_deletion,
        "metadata": {
            "description": metadata.description,
            "tags": list(metadata.tags),
            "default_queue_type": queue_type,
        },
        "tracing": vhost.is_tracing,
        "cluster_state": {vhost.broker.node: "running"},
        "messages": ready + unacked,
        "messages_ready": ready,
        "messages_unacknowledged": unacked,
    }


def vhosts(request: Request) -> Any:
    return listed(request, [of_vhost(vhost) for vhost in seen_vhosts(request)])


def one(request: Request) -> dict[str, Any]:
    return of_vhost(request.vhost)


def put(request: Request) -> Answer:
    """Create a vhost, or note something else about one; who creates one may do everything there."""
    broker, name = request.broker, request.path["vhost"]
    given = body.body_of(request)
    vhost = broker.vhosts.get(name)
    before = vhost.metadata if vhost is not None else Metadata()
    metadata = _metadata(given, before)
    is_traced = body.boolean(given, "tracing")
    answer = NO_CONTENT
    if vhost is None:
        vhost = broker.add_vhost(name, metadata)
        if request.user.name in broker.users:
            broker.set_permission(broker.users[request.user.name], name, Permission())
        answer = CREATED
    elif not given.keys().isdisjoint(_NOTED):
        vhost.set_metadata(metadata)
    if is_traced is not None and is_traced is not vhost.is_tracing:
        vhost.start_trace() if is_traced else vhost.stop_trace()
    return answer


_NOTED = ("description", "tags", "default_queue_type", "protected_from_deletion")


def _metadata(given: dict[str, Any], before: Metadata) -> Metadata:
    """What a body says; what it does not say stays."""
    queue_type = given.get("default_queue_type", before.default_queue_type)
    if queue_type in ("undefined", ""):
        queue_type = None
    if queue_type is not None and not isinstance(queue_type, str):
        raise bad_request(f"Unsupported default queue type: {queue_type!r}")
    is_protected = body.boolean(given, "protected_from_deletion")
    metadata = Metadata(
        body.text(given, "description", before.description),
        tuple(body.tags(given)) if "tags" in given else before.tags,
        queue_type,
        before.is_protected_from_deletion if is_protected is None else is_protected,
    )
    metadata.check()
    return metadata


def delete(request: Request) -> Answer:
    try:
        request.broker.delete_vhost(request.vhost.name)
    except ProtectedFromDeletion as error:
        raise Refusal(412, "precondition_failed", str(error)) from None
    return NO_CONTENT


def start(request: Request) -> Answer:
    """A vhost that has failed would be started again. Ours do not fail."""
    request.vhost  # noqa: B018 # it must be there
    if request.path["node"] != request.broker.node:
        raise bad_request(f"Request to node {request.path['node']} failed with nodedown")
    return NO_CONTENT


def protect(request: Request) -> Answer:
    vhost = request.vhost
    vhost.set_metadata(replace(vhost.metadata, is_protected_from_deletion=True))
    return NO_CONTENT


def unprotect(request: Request) -> Answer:
    vhost = request.vhost
    vhost.set_metadata(replace(vhost.metadata, is_protected_from_deletion=False))
    return NO_CONTENT


RESOURCES = (
    Resource("/api/vhosts", MANAGEMENT, {"GET": vhosts}),
    Resource("/api/vhosts/{vhost}", ADMINISTRATOR, {"GET": one, "PUT": put, "DELETE": delete}),
    Resource("/api/vhosts/{vhost}/start/{node}", ADMINISTRATOR, {"POST": start}),
    Resource("/api/vhosts/{vhost}/deletion/protection", ADMINISTRATOR, {"POST": protect, "DELETE": unprotect}),
)
