"""Feature flags and deprecated features, which clients check; some refuse to start without.

Source: the answers of RabbitMQ 4.0.5 and 4.3.6; rabbit_core_ff.erl, rabbit_depr_ff_extra.erl.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

from amqp_broker.management.http.answers import NO_CONTENT, Answer, bad_request
from amqp_broker.management.http.auth import ADMINISTRATOR, MANAGEMENT, require_tag
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.listing import ListQuery, listed_rows
from amqp_broker.management.http.request import Request
from amqp_broker.settings.profiles import DEPRECATED as SETTABLE

endpoints = Endpoints()

Release: TypeAlias = tuple[int, int]
ISSUES: Final = "https://github.com/rabbitmq/rabbitmq-server/issues"
STREAMS: Final = "https://www.rabbitmq.com/docs/stream"
ANNOUNCED: Final = "https://blog.rabbitmq.com/posts/2021/08/4.0-deprecation-announcements/"


class Flag(NamedTuple):
    """A feature flag, which is required since the release `required`, except in the first releases that have it."""

    desc: str
    since: Release = (3, 13)
    required: Release | None = (3, 13)
    url: str = ""
    provider: str = "rabbit"
    # RabbitMQ 4.3 lists the requirement level and the callbacks, too.
    level: str = "hard"
    callbacks: tuple[str, ...] = ()


_WITH_POST: Final = ("enable", "post_enable")
FLAGS: Final = {
    "classic_mirrored_queue_version": Flag("Support setting version for classic mirrored queues"),
    "classic_queue_type_delivery_support": Flag(
        "Bug fix for classic queue deliveries using mixed versions", url=f"{ISSUES}/5931"
    ),
    "detailed_queues_endpoint": Flag(
        "Add a detailed queues HTTP API endpoint. Reduce number of metrics in the default endpoint.",
        required=(4, 3),
        provider="rabbitmq_management",
        level="soft",
    ),
    "direct_exchange_routing_v2": Flag("v2 direct exchange routing implementation"),
    "drop_unroutable_metric": Flag(
        "Count unroutable publishes to be dropped in stats", provider="rabbitmq_management_agent"
    ),
    "empty_basic_get_metric": Flag(
        "Count AMQP `basic.get` on empty queues in stats", provider="rabbitmq_management_agent"
    ),
    "feature_flags_v2": Flag("Feature flags subsystem V2"),
    "implicit_default_bindings": Flag("Default bindings are now implicit, instead of being stored in the database"),
    "khepri_db": Flag(
        "New Raft-based metadata store.",
        (4, 0),
        (4, 3),
        "https://www.rabbitmq.com/docs/next/metadata-store",
        level="soft",
        callbacks=_WITH_POST,
    ),
    "listener_records_in_ets": Flag("Store listener records in ETS instead of Mnesia"),
    "maintenance_mode_status": Flag("Maintenance mode status"),
    "message_containers": Flag("Message containers."),
    "message_containers_deaths_v2": Flag(
        "Bug fix for dead letter cycle detection", (4, 0), (4, 3), f"{ISSUES}/11159", level="soft"
    ),
    "quorum_queue": Flag("Support queues of type `quorum`", url="https://www.rabbitmq.com/docs/quorum-queues"),
    "quorum_queue_non_voters": Flag(
        "Allows new quorum queue members to be added as non voters initially.", (4, 0), (4, 3), level="soft"
    ),
    "rabbit_exchange_type_local_random": Flag("Local random exchange", (4, 0), (4, 3), level="soft"),
    "rabbitmq_4.0.0": Flag("Allows rolling upgrades from 3.13.x to 4.0.x", (4, 0), (4, 3), level="soft"),
    "rabbitmq_4.1.0": Flag("Allows rolling upgrades to 4.1.x", (4, 1), (4, 3), level="soft"),
    "rabbitmq_4.2.0": Flag("Allows rolling upgrades to 4.2.x", (4, 2), (4, 3), level="soft", callbacks=("enable",)),
    "rabbitmq_4.3.0": Flag("Allows rolling upgrades to 4.3.x", (4, 3), None, level="none"),
    "restart_streams": Flag(
        # RabbitMQ's text has no space here.
        "Support for restarting streams with optional preferred next leader argument."
        "Used to implement stream leader rebalancing"
    ),
    "stream_filtering": Flag("Support for stream filtering."),
    "stream_queue": Flag("Support queues of type `stream`", url=STREAMS),
    "stream_sac_coordinator_unblock_group": Flag(
        "Bug fix to unblock a group of consumers in a super stream partition", url=f"{ISSUES}/7743"
    ),
    "stream_single_active_consumer": Flag("Single active consumer for streams", url=STREAMS),
    "stream_update_config_command": Flag("A new internal command that is used to update streams as part of a policy."),
    "tie_binding_to_dest_with_keep_while_cond": Flag(
        "Use keep_while condition to tie a binding record lifetime to its destination record in Khepri",
        (4, 3),
        None,
        level="none",
        callbacks=("enable",),
    ),
    "topic_binding_projection_v4": Flag(
        "Enable the topic binding Khepri projection v4", (4, 3), None, level="none", callbacks=_WITH_POST
    ),
    "topic_binding_projection_v5": Flag(
        "Enable the topic binding Khepri projection v5", (4, 3), None, level="none", callbacks=_WITH_POST
    ),
    "track_qq_members_uids": Flag("Track queue members UIDs in the metadata store", (4, 3), None, level="none"),
    "tracking_records_in_ets": Flag("Store tracking records in ETS instead of Mnesia"),
    "user_limits": Flag("Configure connection and channel limits for a user"),
    "virtual_host_metadata": Flag("Virtual host metadata (description, tags, etc)"),
}


class Feature(NamedTuple):
    """A deprecated feature: the releases that deny it by default and that have removed it."""

    url: str = ""
    since: Release = (3, 13)
    denied: Release | None = None
    removed: Release | None = None
    provider: str = "rabbit"


DEPRECATED: Final = {
    "amqp_address_v1": Feature("https://www.rabbitmq.com/docs/amqp#addresses", (4, 0), (4, 3)),
    "amqp_filter_set_bug": Feature(
        "https://docs.oasis-open.org/amqp/core/v1.0/os/amqp-core-messaging-v1.0-os.html#type-filter-set", (4, 1), (4, 3)
    ),
    "classic_queue_mirroring": Feature(f"{ANNOUNCED}#removal-of-classic-queue-mirroring", removed=(4, 0)),
    "global_qos": Feature(f"{ANNOUNCED}#removal-of-global-qos", denied=(4, 3)),
    "management_metrics_collection": Feature(
        f"{ANNOUNCED}#disable-metrics-delivery-via-the-management-api--ui", provider="rabbitmq_management_agent"
    ),
    "queue_master_locator": Feature(denied=(4, 3)),
    "ram_node_type": Feature(f"{ANNOUNCED}#removal-of-ram-nodes", removed=(4, 3)),
    "transient_nonexcl_queues": Feature(f"{ANNOUNCED}#removal-of-transient-non-exclusive-queues", denied=(4, 3)),
}


def _require_tag(request: Request) -> None:
    if request.broker.profile.release < (4, 0):
        require_tag(request.user, ADMINISTRATOR)


def _flags(release: Release) -> dict[str, Flag]:
    """Return the flags of a release."""
    return {name: flag for name, flag in FLAGS.items() if flag.since <= release}


def _flag_row(name: str, flag: Flag, request: Request) -> dict[str, Any]:
    release = request.broker.profile.release
    is_required = flag.required is not None and flag.required <= release
    row: dict[str, Any] = {
        "name": name,
        "desc": flag.desc,
        "doc_url": flag.url,
        "state": "enabled",
        "stability": "required" if is_required else "stable",
        "provided_by": flag.provider,
    }
    if release >= (4, 3):
        row |= {"require_level": flag.level, "experiment_level": "supported", "callbacks": list(flag.callbacks)}
    elif name == "khepri_db":
        desc = f"{flag.desc} Fully supported as of RabbitMQ 4.0"
        state = "enabled" if name in request.broker.feature_flags else "disabled"
        row |= {"desc": desc, "state": state, "stability": "experimental"}
    return row


@endpoints.on("GET /api/feature-flags", tag=MANAGEMENT, query=ListQuery)
def flags(request: Request) -> Any:
    """List feature flags."""
    _require_tag(request)
    release = request.broker.profile.release
    return listed_rows(request, [_flag_row(name, flag, request) for name, flag in _flags(release).items()])


@endpoints.on("PUT /api/feature-flags/{name}/enable", tag=ADMINISTRATOR, statuses=(204,))
def enable(request: Request) -> Answer:
    """Show a feature flag as enabled; all but `khepri_db` always are, and it changes no store."""
    request.json()
    if request.path["name"] not in _flags(request.broker.profile.release):
        raise bad_request("unsupported")
    request.broker.enable_feature(request.path["name"])
    return NO_CONTENT


def _is_permitted(request: Request, name: str) -> bool:
    """Return whether the version, or the administrator, permits a deprecated feature."""
    profile, feature = request.broker.profile, DEPRECATED[name]
    if name in SETTABLE:
        permitted: bool = getattr(profile, SETTABLE[name])
        return permitted
    return all(last is None or profile.release < last for last in (feature.denied, feature.removed))


def _is_used(request: Request, name: str) -> bool:
    queues = [queue for vhost in request.broker.vhosts.values() for queue in vhost.queues.values()]
    if name == "transient_nonexcl_queues":
        return any(not queue.is_durable and queue.owner is None for queue in queues)
    if name == "queue_master_locator":
        return any("x-queue-master-locator" in queue.arguments for queue in queues)
    return False


def _deprecated_row(request: Request, name: str) -> dict[str, Any]:
    release, feature = request.broker.profile.release, DEPRECATED[name]
    phase = "permitted_by_default"
    if feature.removed is not None and feature.removed <= release:
        phase = "removed"
    elif feature.denied is not None and feature.denied <= release:
        phase = "denied_by_default"
    return {
        "name": name,
        "desc": "",
        "doc_url": feature.url,
        "deprecation_phase": phase,
        "state": "permitted" if _is_permitted(request, name) else "denied",
        "provided_by": feature.provider,
    }


def _deprecated(request: Request) -> list[str]:
    """Return the names of the features that are deprecated in the release. Raise Refusal."""
    _require_tag(request)
    return [name for name, feature in DEPRECATED.items() if feature.since <= request.broker.profile.release]


@endpoints.on("GET /api/deprecated-features", tag=MANAGEMENT, query=ListQuery)
def deprecated(request: Request) -> Any:
    """List deprecated features, and whether they are permitted."""
    return listed_rows(request, [_deprecated_row(request, name) for name in _deprecated(request)])


@endpoints.on("GET /api/deprecated-features/used", tag=MANAGEMENT, query=ListQuery)
def deprecated_and_used(request: Request) -> Any:
    """List the deprecated features in use."""
    used = [name for name in _deprecated(request) if _is_used(request, name)]
    return listed_rows(request, [_deprecated_row(request, name) for name in used])
