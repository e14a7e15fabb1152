"""Vhosts and their metadata.

Source: rabbit_mgmt_wm_vhost.erl, rabbit_mgmt_wm_vhost_deletion_protection.erl, rabbit_vhost.erl (put_vhost, info).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final

from msgspec import UNSET, Struct, UnsetType

from amqp_broker.amqp.errors import ProtectedFromDeletion
from amqp_broker.broker.admin.access import Permission
from amqp_broker.broker.admin.metadata import Metadata
from amqp_broker.broker.counting.history import LENGTHS
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.broker.vhost import VHost
from amqp_broker.management.api.statistics import Statistics
from amqp_broker.management.http.answers import CREATED, NO_CONTENT, Answer, Refusal, bad_request
from amqp_broker.management.http.auth import ADMINISTRATOR, MANAGEMENT, has_tag
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.listing import ListQuery, listed
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import Flag, OptionalFlag, Reader, read_by, tags, text
from amqp_broker.management.node.totals import queue_totals

endpoints = Endpoints()

QUEUE_TYPES: Final = ("classic", "quorum", "stream")


def _or_null(reader: Reader) -> Reader:
    return lambda name, value: None if value is None else reader(name, value)


def _queue_type(name: str, value: Any) -> str | None:
    if value in ("undefined", "", None):
        return None
    if not isinstance(value, str):
        raise bad_request(f"Unsupported default queue type: {value!r}")
    return value


class VHostSettings(Struct):
    """Metadata of a vhost, and whether its messages are traced."""

    default_queue_type: Annotated[
        str | UnsetType | None, read_by(_queue_type, enum=["classic", "quorum", "stream"])
    ] = UNSET
    protected_from_deletion: OptionalFlag = None
    description: Annotated[str | None, read_by(_or_null(text))] = None
    tags: Annotated[list[str] | None, read_by(_or_null(tags), description="a list, or one text with commas")] = None
    tracing: Flag | None = None


def seen_vhosts(request: Request) -> list[VHost]:
    """Return the vhosts that the user may open; an administrator sees all."""
    user, vhosts = request.user, sorted(request.broker.vhosts.items())
    return [vhost for name, vhost in vhosts if has_tag(user, ADMINISTRATOR) or user.can_open(name)]


def named_vhosts(request: Request) -> list[VHost]:
    """Return the vhost in the path; for a path without one, all vhosts that the user sees."""
    return [request.vhost] if "vhost" in request.path else seen_vhosts(request)


def changed_vhost(request: Request) -> VHost:
    """Return the vhost in the path of a change. Raise Refusal, in RabbitMQ's words for a change."""
    if request.path["vhost"] not in request.broker.vhosts:
        raise Refusal(404, "not_found", "vhost_not_found")
    return request.vhost


def basic_row(vhost: VHost) -> Steps[dict[str, Any]]:
    """Return the row of a vhost without statistics, in steps."""
    metadata = vhost.metadata
    queue_type = vhost.default_queue_type
    row: dict[str, Any] = {
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
        "tracing": vhost.tracing.is_on,
        "cluster_state": {vhost.broker.node: "running"},
    }
    if vhost.queues or vhost.broker.profile.release < (4, 0):
        row |= yield from queue_totals([vhost])
    return row


def vhost_row(vhost: VHost, statistics: Statistics) -> Steps[dict[str, Any]]:
    """Return the row of a vhost with its counters, if any, in steps."""
    row = yield from basic_row(vhost)
    if statistics.has_samples("lengths"):
        # RabbitMQ adds their details only then.
        lengths = {name: row.get(name, 0) for name in LENGTHS}
        row.update(statistics.of(vhost.counts, "lengths", lengths))
    if stats := statistics.of(vhost.counts, "message_stats", vhost.counts.message_stats()):
        row["message_stats"] = stats
    return row


@endpoints.on("GET /api/vhosts", tag=MANAGEMENT, query=ListQuery)
def vhosts(request: Request) -> Any:
    """List vhosts."""
    if not request.wants_stats:
        return listed(request, seen_vhosts(request), basic_row)
    statistics = Statistics(request)
    return listed(request, seen_vhosts(request), lambda vhost: vhost_row(vhost, statistics))


@endpoints.on("GET /api/vhosts/{vhost}", tag=ADMINISTRATOR)
def one(request: Request) -> Steps[dict[str, Any]]:
    """Return a vhost."""
    return vhost_row(request.vhost, Statistics(request)) if request.wants_stats else basic_row(request.vhost)


@endpoints.on("PUT /api/vhosts/{vhost}", tag=ADMINISTRATOR, body=VHostSettings)
def put(request: Request) -> Answer:
    """Create a vhost, with all permissions for its creator, or set its metadata."""
    broker, name = request.broker, request.path["vhost"]
    given = request.read(VHostSettings)
    vhost = broker.vhosts.get(name)
    before = vhost.metadata if vhost is not None else Metadata()
    if request.broker.profile.release >= (4, 0):
        # Fields that the body lacks are as in a new vhost; only later versions reset the default type of queues.
        kept_type = None if broker.profile.notes_queue_type else before.default_queue_type
        before = Metadata("", (), kept_type, before.is_protected_from_deletion)
        if given.default_queue_type not in (UNSET, None, *QUEUE_TYPES):
            raise bad_request(f"{given.default_queue_type} is not a valid queue type")
    metadata = _metadata(given, before)
    answer = NO_CONTENT
    if vhost is None:
        vhost = broker.add_vhost(name, metadata)
        if request.user.name in broker.users:
            broker.users.set_permission(broker.users[request.user.name], name, Permission())
        answer = CREATED
    else:
        vhost.set_metadata(metadata)
    if given.tracing is not None and given.tracing is not vhost.tracing.is_on:
        vhost.tracing.start() if given.tracing else vhost.tracing.stop()
    return answer


def _metadata(given: VHostSettings, before: Metadata) -> Metadata:
    """Return the metadata of a body; absent values stay as they are. Raise InvalidParameter."""
    queue_type, is_protected = given.default_queue_type, given.protected_from_deletion
    metadata = Metadata(
        before.description if given.description is None else given.description,
        before.tags if given.tags is None else tuple(given.tags),
        before.default_queue_type if queue_type is UNSET else queue_type,
        before.is_protected_from_deletion if is_protected is None else is_protected,
    )
    metadata.check()
    return metadata


@endpoints.on("DELETE /api/vhosts/{vhost}", tag=ADMINISTRATOR)
def delete(request: Request) -> Steps[Answer]:
    """Delete a vhost with everything in it."""
    try:
        yield from request.broker.deleting_vhost(request.vhost.name)
    except ProtectedFromDeletion as error:
        raise Refusal(412, "precondition_failed", str(error)) from None
    return NO_CONTENT


@endpoints.on("POST /api/vhosts/{vhost}/start/{node}", tag=ADMINISTRATOR)
def start(request: Request) -> Answer:
    """Do nothing: vhosts are always running."""
    request.vhost  # noqa: B018 # raises unless it exists
    if request.path["node"] != request.broker.node:
        node = request.path["node"]
        is_known_reason = request.broker.profile.release >= (4, 3)
        raise bad_request(
            f"Unknown node: {node}" if is_known_reason else f"Request to node {node} failed with nodedown"
        )
    return NO_CONTENT


@endpoints.on("GET /api/vhosts/{vhost}/deletion/protection", tag=ADMINISTRATOR)
def protection(request: Request) -> dict[str, bool]:
    """Return whether a vhost is protected from deletion; RabbitMQ 4.3 fails here."""
    return {"protected_from_deletion": request.vhost.metadata.is_protected_from_deletion}


@endpoints.on("POST /api/vhosts/{vhost}/deletion/protection", tag=ADMINISTRATOR)
def protect(request: Request) -> Answer:
    """Protect a vhost from deletion."""
    vhost = request.vhost
    vhost.set_metadata(replace(vhost.metadata, is_protected_from_deletion=True))
    return NO_CONTENT


@endpoints.on("DELETE /api/vhosts/{vhost}/deletion/protection", tag=ADMINISTRATOR)
def unprotect(request: Request) -> Answer:
    """Allow the deletion of a vhost again."""
    vhost = request.vhost
    vhost.set_metadata(replace(vhost.metadata, is_protected_from_deletion=False))
    return NO_CONTENT
