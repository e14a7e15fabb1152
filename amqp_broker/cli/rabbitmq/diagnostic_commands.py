"""Commands about the state of the node, and health checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amqp_broker.cli.rabbitmq import health_checks, node_status
from amqp_broker.cli.rabbitmq.command import BOTH, CTL, DIAGNOSTICS, PLUGINS, QUEUES, Call, Command, Former

CHECKS = "Monitoring, observability and health checks"
CONFIGURATION = "Configuration and Environment"
TIMEOUT = "[--timeout <timeout>]"
ONLY = (DIAGNOSTICS,)
NOT_CRITICAL = "Node {node} seems to be the only one in a single node cluster, the check does not apply"


def says_only(text: str) -> Callable[[Call], str]:
    """Return a function with the same answer for every node."""
    return lambda call: call.fill(text)


def check(
    name: str, about: str, says: str, run: Callable[[Call], Any], usage: str = TIMEOUT, **further: Any
) -> Command:
    return Command(name, usage, about, says=says, run=run, **{"group": CHECKS, "tools": ONLY, **further})


def nothing(call: Call) -> None:
    """Do nothing, as RabbitMQ does."""


ASKS_ALARMS = "Asking node {node} to report any local resource alarms ..."
EXITS = "Health check that exits with a non-zero code if"

COMMANDS = (
    check(
        "ping",
        "Checks that the node OS process is up, registered with EPMD and CLI tools can authenticate with it",
        "",
        health_checks.ping,
        tools=BOTH,
        is_for_stopped=True,
    ),
    check(
        "status",
        "Displays status of a node",
        "Status of node {node} ...",
        node_status.status,
        "[--unit <unit>] " + TIMEOUT,
        tools=BOTH,
    ),
    Command(
        "cluster_status",
        TIMEOUT,
        "Displays all the nodes in the cluster grouped by node type, together with the currently running nodes",
        "Cluster",
        says="Cluster status of node {node} ...",
        run=node_status.cluster_status,
        tools=BOTH,
    ),
    Command(
        "environment",
        "",
        "Displays the name and value of each variable in the application environment for each running application",
        CONFIGURATION,
        says="Application environment of node {node} ...",
        run=node_status.environment,
        tools=BOTH,
    ),
    check(
        "report",
        "Generate a server status report containing a concatenation of all server status information for support"
        " purposes",
        "",
        node_status.report,
        "",
        tools=BOTH,
    ),
    Command(
        "version",
        "",
        "Displays CLI tools version",
        "Help",
        run=node_status.version,
        tools=(CTL, DIAGNOSTICS, PLUGINS),
        is_for_stopped=True,
    ),
    check(
        "check_running",
        f"{EXITS} the RabbitMQ app on the target node is not running",
        "Checking if RabbitMQ is running on node {node} ...",
        health_checks.check_running,
        is_for_stopped=True,
    ),
    check(
        "is_running",
        "Checks if RabbitMQ is fully booted and running on the target node",
        "Asking node {node} for its status ...",
        health_checks.is_running,
        is_for_stopped=True,
    ),
    check(
        "is_booting",
        "Checks if RabbitMQ is still booting on the target node",
        "Asking node {node} for its boot status ...",
        health_checks.is_booting,
        is_for_stopped=True,
    ),
    check(
        "alarms",
        "Lists resource alarms (local or cluster-wide) in effect on the target node",
        "Asking node {node} to report any known resource alarms ...",
        health_checks.alarms,
    ),
    check(
        "check_alarms",
        f"{EXITS} the target node reports any alarms, local or cluster-wide.",
        ASKS_ALARMS,
        health_checks.check_alarms,
    ),
    check(
        "check_local_alarms",
        "DEPRECATED. This command is a no-op. Local alarms have been removed. See https://www.rabbitmq.com/alarms.html",
        "This command is DEPRECATED and is a no-op. It will be removed in a future version.",
        says_only("Node {node} reported no local alarms"),
        group="Deprecated",
        former=Former((4, 3), {"says": ASKS_ALARMS, "run": health_checks.check_local_alarms}),
    ),
    check(
        "check_port_connectivity",
        "Basic TCP connectivity health check for each listener's port on the target node",
        "Testing TCP connections to all active listeners on node {node} ...",
        health_checks.check_port_connectivity,
    ),
    check(
        "check_port_listener",
        f"{EXITS} target node does not have an active listener for given port",
        "Asking node {node} if there's an active listener on port {0} ...",
        health_checks.check_port_listener,
        "<port> " + TIMEOUT,
    ),
    check(
        "check_protocol_listener",
        f"{EXITS} target node does not have an active listener for given protocol",
        "Asking node {node} if there's an active listener for protocol {0} ...",
        health_checks.check_protocol_listener,
        "<protocol> " + TIMEOUT,
    ),
    check(
        "check_virtual_hosts",
        "Health check that checks if all vhosts are running in the target node",
        "Checking if all vhosts are running on node {node} ...",
        health_checks.check_virtual_hosts,
    ),
    check(
        "check_certificate_expiration",
        "Checks the expiration date on the certificates for every listener configured to use TLS",
        "Checking certificate expiration on node {node} ...",
        health_checks.check_certificate_expiration,
        "[--within <period>] [--unit <unit>]",
    ),
    check(
        "check_if_node_is_quorum_critical",
        f"{EXITS} there are queues/streams with minimum online quorum (queues/streams that will lose their quorum if"
        " the target node shuts down)",
        "Checking if node {node} is critical for quorum of any queues/streams ...",
        says_only(NOT_CRITICAL),
        tools=(DIAGNOSTICS, QUEUES),
        former=Former((4, 0), {"says": "Checking if node {node} is critical for quorum of any quorum queues ..."}),
    ),
    check(
        "check_if_node_is_mirror_sync_critical",
        "DEPRECATED. Mirrored queues were removed in RabbitMQ 4.0. This command is a no-op.",
        "This command is DEPRECATED and is a no-op. It will be removed in a future version.",
        says_only("ok"),
        tools=(DIAGNOSTICS, QUEUES),
        group="Deprecated",
        former=Former(
            (4, 0),
            {
                "says": "Checking if node {node} is critical for data safety of any classic mirrored queues ...",
                "run": says_only(NOT_CRITICAL),
            },
        ),
    ),
    check(
        "listeners",
        "Lists active connection listeners (bound interface, port, protocol) on the target node",
        "Asking node {node} to report its protocol listeners ...",
        node_status.listeners,
    ),
    check(
        "server_version",
        "Displays server version on the target node",
        "Asking node {node} for its RabbitMQ version...",
        lambda call: call.state()["version"],
    ),
    check(
        "memory_breakdown",
        "Provides a memory usage breakdown on the target node.",
        "Reporting memory breakdown on node {node}...",
        node_status.memory_breakdown,
        "[--unit <unit>] " + TIMEOUT,
    ),
    Command(
        "node_health_check",
        TIMEOUT,
        "DEPRECATED. This command is a no-op. See https://www.rabbitmq.com/monitoring.html#health-checks",
        "Deprecated",
        says="This command is DEPRECATED and is a no-op. It will be removed in a future version. \n"
        "Use one of the options covered in https://www.rabbitmq.com/monitoring.html#health-checks instead.",
        run=nothing,
        tools=BOTH,
        timeout_s=70.0,
        former=Former(
            (4, 0),
            {
                "says": "This command is DEPRECATED and will be removed in a future version.\n"
                "It performs intrusive, opinionated health checks and requires a fully booted node.\n"
                "Use one of the options covered in https://www.rabbitmq.com/monitoring.html#health-checks instead.\n"
                "Timeout: 70 seconds ...\n"
                "Checking health of node {node} ...",
                "run": health_checks.node_health_check,
            },
        ),
    ),
    Command(
        "resolve_hostname",
        "<hostname> [--address-family <ipv4 | ipv6>]",
        "Resolves a hostname to a set of addresses.",
        CONFIGURATION,
        says="Asking node {node} to resolve hostname {0} to IPv4 addresses...",
        run=health_checks.resolve_hostname,
        tools=ONLY,
    ),
    Command(
        "log_location",
        "[--all|-a] " + TIMEOUT,
        "Shows log file location(s) on target node",
        CONFIGURATION,
        says="Log file location(s) on node {node} ...",
        run=node_status.log_location,
        tools=ONLY,
    ),
    Command(
        "os_env",
        TIMEOUT,
        "Lists RabbitMQ-specific environment variables of the command line",
        CONFIGURATION,
        says="Listing RabbitMQ-specific environment variables defined on node {node}...",
        run=node_status.os_env,
        tools=ONLY,
    ),
)
