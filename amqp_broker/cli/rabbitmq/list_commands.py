"""Commands that list objects."""

from __future__ import annotations

from typing import Any

from amqp_broker.cli.rabbitmq import columns
from amqp_broker.cli.rabbitmq.command import BOTH, NO_SUCH_USER, NO_VHOST, Call, Command, Former
from amqp_broker.cli.rabbitmq.tool import Rows, list_of

MONITORING = "Monitoring, observability and health checks"
ACCESS = "Access Control"
NO_HEADERS = "[--no-table-headers]"
TIMEOUT = "[--timeout <timeout>]"


def whole(call: Call) -> Rows:
    """Return a list that RabbitMQ prints as a whole."""
    return list_of(call)._replace(is_whole=True)


def boxed(call: Call) -> Rows:
    """Return a list that RabbitMQ prints with lines between its cells."""
    if not call.formatter:
        call.options["formatter"] = "pretty_table"
    return whole(call)


def name_features(call: Call) -> None:
    """Set the words that `list_deprecated_features --used` adds."""
    is_used = call.options.get("used")
    call.options["what"], call.options["where"] = (" in use", "/used") if is_used else ("", "")


def headless(call: Call) -> Rows:
    """Return a list that RabbitMQ prints without a header."""
    call.options["no_table_headers"] = True
    return list_of(call)


def queues(call: Call) -> Rows:
    # RabbitMQ 4 adds the default type to the arguments.
    default = {} if call.is_before(4, 0) else {"x-queue-type": "classic"}

    def completed(queue: dict[str, Any]) -> dict[str, Any]:
        if queue.get("type") != "classic" or "arguments" not in queue:
            return queue
        return {**queue, "arguments": {**queue["arguments"], **default}}

    found = list_of(call, completed)
    # All queues are on this node, which is online.
    return found._replace(rows=[]) if call.options.get("offline") else found


def parameters(call: Call) -> Rows:
    """Return the parameters of one vhost."""
    call.get(call.fill("/api/vhosts/{vhost}", is_path=True))
    names = call.command.shown.split()
    items = [item for item in call.get("/api/parameters") if item.get("vhost") == call.vhost]
    rows = [[call.command.columns[name].read(item, "") for name in names] for item in items]
    return Rows(names, rows, is_whole=True)


COMMANDS = (
    Command(
        "list_queues",
        f"[--vhost <vhost>] [--online] [--offline] [--local] {NO_HEADERS} [<column>, ...] {TIMEOUT}",
        "Lists queues and their properties",
        MONITORING,
        says="Listing queues for vhost {vhost} ...",
        asks=("GET", "/api/queues/{vhost}"),
        columns=columns.QUEUES,
        shown="name messages",
        run=queues,
        announces_timeout=True,
        tools=BOTH,
    ),
    Command(
        "list_unresponsive_queues",
        f"[--local] [--queue-timeout <milliseconds>] [<column> ...] {NO_HEADERS} {TIMEOUT}",
        "Tests queues to respond within timeout. Lists those which did not respond",
        MONITORING,
        says="Listing unresponsive queues for vhost {vhost} ...",
        run=lambda call: Rows(call.arguments or ["name"], []),
        columns=columns.QUEUES,
        tools=BOTH,
    ),
    Command(
        "list_exchanges",
        f"[--vhost <vhost>] {NO_HEADERS} [<column> ...] {TIMEOUT}",
        "Lists exchanges",
        MONITORING,
        says="Listing exchanges for vhost {vhost} ...",
        asks=("GET", "/api/exchanges/{vhost}"),
        columns=columns.EXCHANGES,
        shown="name type",
        tools=BOTH,
    ),
    Command(
        "list_bindings",
        f"[--vhost <vhost>] {NO_HEADERS} [<column> ...] {TIMEOUT}",
        "Lists all bindings on a vhost",
        MONITORING,
        says="Listing bindings for vhost {vhost}...",
        asks=("GET", "/api/bindings/{vhost}"),
        columns=columns.BINDINGS,
        shown="source_name source_kind destination_name destination_kind routing_key arguments",
        tools=BOTH,
    ),
    Command(
        "list_connections",
        f"{NO_HEADERS} [<column> ...] {TIMEOUT}",
        "Lists AMQP 0.9.1 connections for the node",
        MONITORING,
        says="Listing connections ...",
        asks=("GET", "/api/connections"),
        columns=columns.CONNECTIONS,
        shown="user peer_host peer_port state",
        tools=BOTH,
    ),
    Command(
        "list_channels",
        f"{NO_HEADERS} [<column> ...]",
        "Lists all channels in the node",
        MONITORING,
        says="Listing channels ...",
        asks=("GET", "/api/channels"),
        columns=columns.CHANNELS,
        shown="pid user consumer_count messages_unacknowledged",
        tools=BOTH,
    ),
    Command(
        "list_consumers",
        f"[--vhost <vhost>] {NO_HEADERS} [<column> ...] {TIMEOUT}",
        "Lists all consumers for a vhost",
        MONITORING,
        says="Listing consumers in vhost {vhost} ...",
        asks=("GET", "/api/consumers/{vhost}"),
        columns=columns.CONSUMERS,
        shown="queue_name channel_pid consumer_tag ack_required prefetch_count active arguments",
        tools=BOTH,
    ),
    Command(
        "list_vhosts",
        f"{NO_HEADERS} [<column> ...] {TIMEOUT}",
        "Lists virtual hosts",
        ACCESS,
        says="Listing vhosts ...",
        asks=("GET", "/api/vhosts"),
        columns=columns.VHOSTS,
        shown="name",
        tools=BOTH,
    ),
    Command(
        "list_users",
        f"{NO_HEADERS} {TIMEOUT}",
        "List user names and tags",
        "Users",
        says="Listing users ...",
        asks=("GET", "/api/users"),
        columns=columns.USERS,
        shown="user tags",
        tools=BOTH,
    ),
    Command(
        "list_permissions",
        f"[--vhost <vhost>] {NO_HEADERS} {TIMEOUT}",
        "Lists user permissions in a virtual host",
        ACCESS,
        says='Listing permissions for vhost "{vhost}" ...',
        asks=("GET", "/api/vhosts/{vhost}/permissions"),
        missing=(NO_VHOST,),
        columns=columns.PERMISSIONS,
        shown="user configure write read",
        tools=BOTH,
    ),
    Command(
        "list_user_permissions",
        f"{NO_HEADERS} <username> {TIMEOUT}",
        "Lists permissions of a user across all virtual hosts",
        ACCESS,
        says='Listing permissions for user "{0}" ...',
        asks=("GET", "/api/users/{0}/permissions"),
        missing=(NO_SUCH_USER,),
        columns=columns.PERMISSIONS,
        shown="vhost configure write read",
        tools=BOTH,
    ),
    Command(
        "list_topic_permissions",
        f"[--vhost <vhost>] {NO_HEADERS} {TIMEOUT}",
        "Lists topic permissions in a virtual host",
        ACCESS,
        says='Listing topic permissions for vhost "{vhost}" ...',
        asks=("GET", "/api/vhosts/{vhost}/topic-permissions"),
        missing=(NO_VHOST,),
        columns=columns.TOPIC_PERMISSIONS,
        shown="user exchange write read",
        tools=BOTH,
    ),
    Command(
        "list_user_topic_permissions",
        f"{NO_HEADERS} <username> {TIMEOUT}",
        "Lists user topic permissions",
        ACCESS,
        says='Listing topic permissions for user "{0}" ...',
        asks=("GET", "/api/users/{0}/topic-permissions"),
        missing=(NO_SUCH_USER,),
        run=headless,
        columns=columns.TOPIC_PERMISSIONS,
        shown="vhost exchange write read",
        tools=BOTH,
    ),
    Command(
        "list_policies",
        f"[--vhost <vhost>] {NO_HEADERS} {TIMEOUT}",
        "Lists all policies in a virtual host",
        "Policies",
        says='Listing policies for vhost "{vhost}" ...',
        asks=("GET", "/api/policies/{vhost}"),
        missing=(NO_VHOST,),
        run=whole,
        columns=columns.POLICIES,
        shown="vhost name pattern apply-to definition priority",
        tools=BOTH,
    ),
    Command(
        "list_operator_policies",
        f"[--vhost <vhost>] {NO_HEADERS} {TIMEOUT}",
        "Lists operator policy overrides for a virtual host",
        "Policies",
        says='Listing operator policy overrides for vhost "{vhost}" ...',
        asks=("GET", "/api/operator-policies/{vhost}"),
        missing=(NO_VHOST,),
        run=whole,
        columns=columns.POLICIES,
        shown="vhost name pattern apply-to definition priority",
        tools=BOTH,
    ),
    Command(
        "list_parameters",
        f"[--vhost <vhost>] {NO_HEADERS} {TIMEOUT}",
        "Lists runtime parameters for a virtual host",
        "Parameters",
        says='Listing runtime parameters for vhost "{vhost}" ...',
        missing=(NO_VHOST,),
        run=parameters,
        columns=columns.PARAMETERS,
        shown="component name value",
        tools=BOTH,
    ),
    Command(
        "list_global_parameters",
        f"{NO_HEADERS} {TIMEOUT}",
        "Lists global runtime parameters",
        "Parameters",
        says="Listing global runtime parameters ...",
        asks=("GET", "/api/global-parameters"),
        run=whole,
        columns=columns.PARAMETERS,
        shown="name value",
        tools=BOTH,
    ),
    Command(
        "list_feature_flags",
        f"[<column> ...] {TIMEOUT}",
        "Lists feature flags",
        "Feature flags",
        says="Listing feature flags ...",
        asks=("GET", "/api/feature-flags"),
        columns=columns.FEATURE_FLAGS,
        shown="name state",
        tools=BOTH,
    ),
    Command(
        "list_deprecated_features",
        f"[--used] [<column> ...] {TIMEOUT}",
        "Lists deprecated features",
        "Feature flags",
        says="Listing deprecated features{what} ...",
        check=name_features,
        asks=("GET", "/api/deprecated-features{where}"),
        run=boxed,
        columns=columns.DEPRECATED_FEATURES,
        shown="name deprecation_phase state",
        tools=BOTH,
        former=Former(
            (4, 0),
            {
                "says": "Listing deprecated features ...",
                "columns": columns.FORMER_DEPRECATED_FEATURES,
                "shown": "name phase",
                "run": None,
            },
        ),
    ),
)
