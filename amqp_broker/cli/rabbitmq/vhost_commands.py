"""Commands for virtual hosts and their firehose."""

from __future__ import annotations

from typing import Any

from amqp_broker.cli.rabbitmq.command import NO_VHOST, Call, Command, Missing, failed
from amqp_broker.cli.rabbitmq.node_commands import nothing
from amqp_broker.cli.rabbitmq.words import Misuse
from amqp_broker.exit_codes import EX_DATAERR

VHOSTS = "Virtual hosts"
QUEUE_TYPES = ("quorum", "stream", "classic")
PROTECTED = (
    "Cannot delete this virtual host: it is protected from deletion. To lift the protection, inspect and update its"
    " metadata"
)
NO_VHOST_NAMED = Missing("/api/vhosts/{0}", "Virtual host '{0}' does not exist", EX_DATAERR)


def add_vhost(call: Call) -> dict[str, Any]:
    given = {name: call.options.get(name) for name in ("description", "tags", "default_queue_type")}
    return {name: value for name, value in given.items() if value is not None}


def trace(call: Call, is_on: bool) -> str:
    """Start or stop the firehose of a vhost."""
    call.request("PUT" if is_on else "DELETE", call.fill("/_broker/firehose/{vhost}", is_path=True))
    return f"Trace {'enabled' if is_on else 'disabled'} for vhost {call.vhost}"


def delete_vhost(call: Call) -> None:
    target = call.fill("/api/vhosts/{0}", is_path=True)
    if call.get(target).get("protected_from_deletion"):
        raise failed(PROTECTED, EX_DATAERR)
    call.request("DELETE", target)


def check_metadata(call: Call) -> None:
    if not metadata(call):
        raise Misuse("not enough arguments.")
    kind = call.options.get("default_queue_type")
    if kind not in (None, *QUEUE_TYPES):
        raise Misuse(
            f"Bad argument: Default queue type must be one of: {', '.join(QUEUE_TYPES)}. Provided: {kind}", EX_DATAERR
        )


def metadata(call: Call) -> dict[str, Any]:
    """Return the given options of a vhost."""
    protected = call.options.get("protected_from_deletion")
    return add_vhost(call) | ({} if protected is None else {"protected_from_deletion": protected == "true"})


def update(call: Call, changed: dict[str, Any]) -> None:
    """Change some metadata of an existing vhost; the others stay.

    Before 4.2, the API keeps a default queue type that the body lacks, and shows that of the node for a vhost without.
    """
    target = call.fill("/api/vhosts/{0}", is_path=True)
    there = call.get(target)
    names = ("description", "tags") if call.is_before(4, 2) else ("description", "tags", "default_queue_type")
    kept = {name: there[name] for name in names if name in there}
    call.request("PUT", target, kept | changed)


def protection(name: str, is_protected: bool, about: str, says: str) -> Command:
    return Command(
        name,
        "<vhost>",
        about,
        VHOSTS,
        says=says,
        run=lambda call: update(call, {"protected_from_deletion": is_protected}),
        missing=(NO_VHOST_NAMED,),
    )


COMMANDS = (
    protection(
        "enable_vhost_deletion_protection",
        True,
        "Protects a virtual host from deletion (until the protection is removed)",
        'Protecting virtual host "{0}" from removal by updating its metadata...',
    ),
    protection(
        "disable_vhost_deletion_protection",
        False,
        "Removes deletion protection from a virtual host (so that it can be deleted)",
        'Removing deletion protection from virtual host "{0}" by updating its metadata...',
    ),
    Command(
        "update_vhost_metadata",
        '<vhost> [--description=<description>] [--tags="<tag1>,<tag2>,<...>"] '
        "[--default-queue-type=<quorum|classic|stream>] [--protected-from-deletion=<true|false>]",
        "Updates metadata (tags, description, default queue type, protection from deletion) a virtual host",
        VHOSTS,
        says='Updating metadata of vhost "{0}" ...',
        check=check_metadata,
        run=lambda call: update(call, metadata(call)),
        missing=(NO_VHOST_NAMED,),
        counts=(1, 1),
    ),
    Command(
        "reconcile_vhosts",
        "[--timeout <timeout>]",
        "Makes sure all virtual hosts were initialized on all reachable cluster nodes",
        VHOSTS,
        says="Will try to initiate virtual host reconciliation on all reachable cluster nodes...",
        run=nothing,
    ),
    Command(
        "add_vhost",
        '<vhost> [--description <description> --tags "<tag1>,<tag2>,<...>" --default-queue-type '
        "<quorum|classic|stream>]",
        "Creates a virtual host",
        VHOSTS,
        says='Adding vhost "{0}" ...',
        asks=("PUT", "/api/vhosts/{0}"),
        body=add_vhost,
        counts=(1, 1),
    ),
    Command(
        "delete_vhost",
        "<vhost>",
        "Deletes a virtual host",
        VHOSTS,
        says='Deleting vhost "{0}" ...',
        run=delete_vhost,
        missing=(NO_VHOST_NAMED,),
    ),
    Command(
        "set_vhost_tags",
        "<vhost> <tag> [...]",
        "Sets virtual host tags",
        VHOSTS,
        says='Setting tags for virtual host "{0}" to [{rest}] ...',
        run=lambda call: update(call, {"tags": call.arguments[1:]}),
        missing=(NO_VHOST_NAMED,),
        counts=(1, 1000),
    ),
    Command(
        "restart_vhost",
        "[--vhost <vhost>] [--timeout <timeout>]",
        "Restarts a failed vhost data stores and queues",
        VHOSTS,
        says="Trying to restart vhost '{vhost}' on node '{node}' ...",
        run=lambda call: (
            f"Vhost '{call.vhost}' is already running on node '{call.node}'"
            if call.get(call.fill("/api/vhosts/{vhost}", is_path=True))
            else None
        ),
        missing=(NO_VHOST,),
    ),
    Command(
        "trace_on",
        "[--vhost <vhost>]",
        "Starts tracing: messages are also published to amq.rabbitmq.trace",
        VHOSTS,
        says='Starting tracing for vhost "{vhost}" ...',
        missing=(NO_VHOST,),
        run=lambda call: trace(call, True),
        counts=(0, 1),
    ),
    Command(
        "trace_off",
        "[--vhost <vhost>]",
        "Stops tracing",
        VHOSTS,
        says='Stopping tracing for vhost "{vhost}" ...',
        missing=(NO_VHOST,),
        run=lambda call: trace(call, False),
        counts=(0, 1),
    ),
)
