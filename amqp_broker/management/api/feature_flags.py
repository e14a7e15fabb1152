"""Feature flags and deprecated features, which clients check; some refuse to start without.

Source: rabbit_core_ff.erl and rabbit_depr_ff_extra.erl of 4.2.
"""

from __future__ import annotations

from typing import Any, Final

from amqp_broker.management.http.answers import NO_CONTENT, Answer, bad_request
from amqp_broker.management.http.auth import ADMINISTRATOR, MANAGEMENT, require_tag
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.listing import ListQuery, listed_rows
from amqp_broker.management.http.request import Request

endpoints = Endpoints()

# Names and descriptions of the flags of every node.
FLAGS: Final = {
    "classic_mirrored_queue_version": "Support setting version for classic mirrored queues",
    "classic_queue_type_delivery_support": "Bug fix for classic queue deliveries using mixed versions",
    "detailed_queues_endpoint": "Add a detailed queues HTTP API endpoint.",
    "direct_exchange_routing_v2": "v2 direct exchange routing implementation",
    "drop_unroutable_metric": "Count unroutable publishes to be dropped in stats",
    "empty_basic_get_metric": "Count AMQP `basic.get` on empty queues in stats",
    "feature_flags_v2": "Feature flags subsystem V2",
    "implicit_default_bindings": "Default bindings are now implicit, instead of being stored in the database",
    "maintenance_mode_status": "Maintenance mode status",
    "message_containers": "Message containers.",
    "quorum_queue": "Support queues of type `quorum`",
    "restart_streams": "Support for restarting streams with optional preferred next leader argument.",
    "stream_filtering": "Support for stream filtering.",
    "stream_queue": "Support queues of type `stream`",
    "stream_single_active_consumer": "Single active consumer for streams",
    "user_limits": "Configure connection and channel limits for a user",
    "virtual_host_metadata": "Virtual host metadata (description, tags, etc)",
}
URLS: Final = {
    "quorum_queue": "https://www.rabbitmq.com/docs/quorum-queues",
    "stream_queue": "https://www.rabbitmq.com/docs/streams",
}
# Name to description and documentation.
DEPRECATED: Final = {
    "global_qos": ("", "https://blog.rabbitmq.com/posts/2021/08/4.0-deprecation-announcements/#removal-of-global-qos"),
    "queue_master_locator": ("", "https://www.rabbitmq.com/docs/clustering#replica-placement"),
    "transient_nonexcl_queues": (
        "",
        "https://blog.rabbitmq.com/posts/2021/08/4.0-deprecation-announcements/#removal-of-transient-non-exclusive-queues",
    ),
}


@endpoints.on("GET /api/feature-flags", tag=MANAGEMENT, query=ListQuery)
def flags(request: Request) -> Any:
    """List feature flags."""
    if request.broker.profile.release < (4, 0):
        require_tag(request.user, ADMINISTRATOR)
    return listed_rows(
        request,
        [
            {
                "name": name,
                "desc": text,
                "doc_url": URLS.get(name, ""),
                "state": "enabled",
                "stability": "required",
                "provided_by": "rabbit",
            }
            for name, text in FLAGS.items()
        ],
    )


@endpoints.on("PUT /api/feature-flags/{name}/enable", tag=ADMINISTRATOR, statuses=(204,))
def enable(request: Request) -> Answer:
    """Do nothing: all feature flags are enabled."""
    request.json()
    if request.path["name"] not in FLAGS:
        raise bad_request("unsupported")
    return NO_CONTENT


def _is_permitted(request: Request, name: str) -> bool:
    profile = request.broker.profile
    return {
        "global_qos": profile.has_global_prefetch,
        "queue_master_locator": profile.has_master_locator,
        "transient_nonexcl_queues": profile.has_transient_queues,
    }[name]


def _is_used(request: Request, name: str) -> bool:
    queues = [queue for vhost in request.broker.vhosts.values() for queue in vhost.queues.values()]
    if name == "transient_nonexcl_queues":
        return any(not queue.is_durable and queue.owner is None for queue in queues)
    if name == "queue_master_locator":
        return any("x-queue-master-locator" in queue.arguments for queue in queues)
    return False


def _deprecated_row(request: Request, name: str) -> dict[str, Any]:
    text, url = DEPRECATED[name]
    is_permitted = _is_permitted(request, name)
    return {
        "name": name,
        "desc": text,
        "doc_url": url,
        "deprecation_phase": "permitted_by_default" if is_permitted else "denied_by_default",
        "state": "permitted" if is_permitted else "denied",
        "provided_by": "rabbit",
    }


@endpoints.on("GET /api/deprecated-features", tag=ADMINISTRATOR, query=ListQuery)
def deprecated(request: Request) -> Any:
    """List deprecated features, and whether they are permitted."""
    return listed_rows(request, [_deprecated_row(request, name) for name in DEPRECATED])


@endpoints.on("GET /api/deprecated-features/used", tag=ADMINISTRATOR, query=ListQuery)
def deprecated_and_used(request: Request) -> Any:
    """List the deprecated features in use."""
    return listed_rows(request, [_deprecated_row(request, name) for name in DEPRECATED if _is_used(request, name)])
