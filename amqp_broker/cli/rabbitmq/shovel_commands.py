"""Commands for shovels, which RabbitMQ's tools have when its shovel plugin is enabled.

Source: the commands of RabbitMQ 4.3.6.
"""

from __future__ import annotations

from typing import Any

from amqp_broker.cli.rabbitmq.command import BOTH, NO_VHOST, Call, Command
from amqp_broker.cli.rabbitmq.tool import Report, Rows

GROUP = "Shovels"
NOT_FOUND = "Shovel with the given name was not found on the target node"
# Columns by the keys of the HTTP API, in the order of RabbitMQ's.
COLUMNS = {
    "name": "name",
    "pending": "pending",
    "type": "type",
    "state": "state",
    "src_uri": "source",
    "dest_uri": "destination",
    "vhost": "vhost",
    "reason": "termination_reason",
    "dest_protocol": "destination_protocol",
    "src_protocol": "source_protocol",
    "timestamp": "last_changed",
    "src_queue": "source_queue",
    "src_exchange": "source_exchange",
    "src_exchange_key": "source_exchange_key",
    "dest_queue": "destination_queue",
    "dest_exchange": "destination_exchange",
    "dest_exchange_key": "destination_exchange_key",
    "remaining": "remaining",
    "remaining_unacked": "remaining_unacked",
    "forwarded": "forwarded",
}
# Columns that each shovel has; a static one has no vhost.
ALWAYS = ("name", "type", "state", "source", "destination", "termination_reason", "last_changed")


def status(call: Call) -> Rows | Report:
    """Return the state of all shovels; a shovel that does not run has few columns."""
    found = [_row(shovel) for shovel in call.get("/api/shovels")]
    if call.formatter == "json":
        return Report("", found)
    names = [name for name in COLUMNS.values() if name in ALWAYS or any(name in row for row in found)]
    return Rows(names, [[row.get(name, "") for name in names] for row in found])


def _row(shovel: dict[str, Any]) -> dict[str, Any]:
    row = {name: shovel[key] for key, name in COLUMNS.items() if key in shovel}
    if shovel["state"] != "running":
        row = {name: value for name, value in row.items() if name in (*ALWAYS, "vhost")} | {
            "source": "",
            "destination": "",
        }
    day, _, time = row["last_changed"].partition(" ")
    # The hour has two digits here, other than over HTTP.
    return {"termination_reason": "", **row, "last_changed": f"{day} {time:0>8}"}


COMMANDS = (
    Command(
        "shovel_status",
        "",
        "Displays status of Shovel on a node",
        GROUP,
        says="Shovel status on node {node}",
        run=status,
        tools=BOTH,
    ),
    Command(
        "restart_shovel",
        "[--vhost <vhost>] <name>",
        "Restarts a dynamic Shovel",
        GROUP,
        says="Restarting dynamic Shovel {0} in virtual host {vhost} on node {node}",
        asks=("DELETE", "/api/shovels/vhost/{vhost}/{0}/restart"),
        missing=(NO_VHOST,),
        otherwise=f"{NOT_FOUND} '{{node}}' and / or virtual host '{{vhost}}'",
    ),
    Command(
        "delete_shovel",
        "[--vhost <vhost>] [--force] <name>",
        "Deletes a Shovel",
        GROUP,
        says="Deleting shovel {0} in vhost {vhost}",
        asks=("DELETE", "/api/shovels/vhost/{vhost}/{0}"),
        missing=(NO_VHOST,),
        otherwise=f"{NOT_FOUND} '{{node}}' and/or virtual host '{{vhost}}'",
    ),
)
