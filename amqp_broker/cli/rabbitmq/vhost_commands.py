"""Commands for virtual hosts and their firehose."""

from __future__ import annotations

from typing import Any

from amqp_broker.cli.rabbitmq.command import NO_VHOST, Call, Command, Missing
from amqp_broker.exit_codes import EX_DATAERR

VHOSTS = "Virtual hosts"
NO_VHOST_NAMED = Missing("/api/vhosts/{0}", "Virtual host '{0}' does not exist", EX_DATAERR)


def add_vhost(call: Call) -> dict[str, Any]:
    given = {name: call.options.get(name) for name in ("description", "tags", "default_queue_type")}
    return {name: value for name, value in given.items() if value is not None}


def trace(call: Call, is_on: bool) -> str:
    """Start or stop the firehose of a vhost."""
    call.request("PUT" if is_on else "DELETE", call.fill("/_broker/trace/{vhost}", is_path=True))
    return f"Trace {'enabled' if is_on else 'disabled'} for vhost {call.vhost}"


COMMANDS = (
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
        asks=("DELETE", "/api/vhosts/{0}"),
        missing=(NO_VHOST_NAMED,),
    ),
    Command(
        "set_vhost_tags",
        "<vhost> <tag> [...]",
        "Sets virtual host tags",
        VHOSTS,
        says='Setting tags for virtual host "{0}" to [{rest}] ...',
        asks=("PUT", "/api/vhosts/{0}"),
        body=lambda call: {"tags": ",".join(call.arguments[1:])},
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
