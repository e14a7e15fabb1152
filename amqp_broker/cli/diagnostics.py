"""Commands that tell how the node is, and health checks."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from amqp_broker.cli.columns import Atom
from amqp_broker.cli.command import BOTH, CTL, DIAGNOSTICS, QUEUES, Call, Command, Failure, failed
from amqp_broker.cli.printing import erlang, heading
from amqp_broker.cli.tool import Report

CHECKS = "Monitoring, observability and health checks"
CONFIGURATION = "Configuration and Environment"
TIMEOUT = "[--timeout <timeout>]"
ONLY = (DIAGNOSTICS,)
# Listeners by their protocol, and what RabbitMQ says they are for.
PURPOSES = {
    "amqp": "AMQP 0-9-1 and AMQP 1.0",
    "amqp/ssl": "AMQP 0-9-1 and AMQP 1.0 over TLS",
    "http": "HTTP API",
    "https": "HTTP API over TLS (HTTPS)",
    "http/prometheus": "Prometheus exporter API over HTTP",
    "https/prometheus": "Prometheus exporter API over TLS (HTTPS)",
}
PROTOCOLS = {
    "amqp091": "amqp",
    "amqp0.9.1": "amqp",
    "amqp0-9-1": "amqp",
    "amqps": "amqp/ssl",
    "amqp/tls": "amqp/ssl",
    "http-api": "http",
    "management": "http",
    "prometheus": "http/prometheus",
}
CONNECT_TIMEOUT_S = 5.0
GB = 1e9
NOT_CRITICAL = "Node {node} seems to be the only one in a single node cluster, the check does not apply"
NOT_RUNNING = "RabbitMQ on node {node} is not running or has not fully booted yet (check with is_booting)"


def status_of(call: Call) -> dict[str, Any]:
    """All that the node tells of itself."""
    found: dict[str, Any] = call.get("/_broker/status")
    return found


def listener_lines(listeners: Sequence[dict[str, Any]], prefix: str = "") -> list[str]:
    return [
        f"{prefix or 'I'}nterface: {interface_of(item)}, port: {item['port']}, protocol: {item['protocol']}, "
        f"purpose: {PURPOSES.get(item['protocol'], item['protocol'])}"
        for item in listeners
    ]


def interface_of(listener: dict[str, Any]) -> str:
    host: str = listener["host"]
    return f"[{host}]" if ":" in host else host


def shown_listeners(call: Call, listeners: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "interface": interface_of(item),
            "node": call.node,
            "port": item["port"],
            "protocol": item["protocol"],
            "purpose": PURPOSES.get(item["protocol"], item["protocol"]),
        }
        for item in listeners
    ]


def section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([heading(title), "", *(lines or ["(none)"]), ""])


def alarm_lines(call: Call, found: dict[str, Any]) -> list[str]:
    names = {"memory": "Memory alarm", "disk": "Free disk space alarm"}
    return [f"{names.get(name, name)} on node {call.node}" for name in found["alarms"]]


# Reports


def ping(call: Call) -> str:
    try:
        call.node  # noqa: B018
    except Failure as failure:
        name = failure.text.partition("'")[2].partition("'")[0]
        timeout_ms = round((call.timeout_s or 0) * 1000)
        announce_ping(call, name)
        raise failed(f"Failed to connect and authenticate to {name} in {timeout_ms} ms") from None
    announce_ping(call, call.node)
    return "Ping succeeded"


def announce_ping(call: Call, name: str) -> None:
    if not call.is_quiet:
        timeout_ms = round((call.timeout_s or 0) * 1000)
        print(
            f"Will ping {name}. This only checks if the OS process is running and registered with epmd. "
            f"Timeout: {timeout_ms} ms.",
            flush=True,
        )


def version(call: Call) -> str:
    from amqp_broker.compat import DEFAULT, PROFILES

    try:
        return str(call.state()["version"])
    except Failure:
        return PROFILES[DEFAULT].version


def status(call: Call) -> Report:
    found = status_of(call)
    gb = f"{found['memory_used'] / GB:.4f} gb"
    text = "\n".join(
        [
            section(
                "Runtime",
                [
                    f"OS PID: {found['pid']}",
                    f"OS: {found['os']}",
                    f"Uptime (seconds): {found['uptime_s']}",
                    "Is under maintenance?: false",
                    f"RabbitMQ version: {found['version']}",
                    f"Node name: {call.node}",
                    f"Python: {found['python']}",
                ],
            ),
            section("Plugins", ["Enabled plugin file: (none)", "Enabled plugins:"]),
            section("Data directory", [f"Node data directory: {found['data_folder'] or '(none)'}"]),
            section("Config files", []),
            section("Log file(s)", [" * <stdout>"]),
            section("Alarms", alarm_lines(call, found)),
            section(
                "Memory",
                [
                    f"Total memory used: {gb}",
                    "Calculation strategy: rss",
                    f"Memory high watermark setting: {found['memory_setting']} of available memory, "
                    f"computed to: {found['memory_limit'] / GB:.4f} gb",
                ],
            ),
            section("File Descriptors", [f"Total: {found['descriptors_used']}, limit: {found['descriptors_limit']}"]),
            section(
                "Free Disk Space",
                [
                    f"Low free disk space watermark: {found['disk_free_limit'] / GB:.4f} gb",
                    f"Free disk space: {found['disk_free'] / GB:.4f} gb",
                ],
            ),
            section(
                "Totals",
                [
                    f"Connection count: {found['connections']}",
                    f"Queue count: {found['queues']}",
                    f"Virtual host count: {found['vhosts']}",
                ],
            ),
            section("Listeners", listener_lines(found["listeners"])).rstrip("\n"),
        ]
    )
    return Report(text, status_value(call, found))


def status_value(call: Call, found: dict[str, Any]) -> dict[str, Any]:
    """What `status --formatter json` has, with RabbitMQ's names."""
    return {
        "active_plugins": [],
        "alarms": alarm_lines(call, found),
        "data_directory": found["data_folder"],
        "disk_free": found["disk_free"],
        "disk_free_limit": found["disk_free_limit"],
        "file_descriptors": {"total_limit": found["descriptors_limit"], "total_used": found["descriptors_used"]},
        "is_under_maintenance": False,
        "listeners": shown_listeners(call, found["listeners"]),
        "memory": {"strategy": "rss", "total": {"rss": found["memory_used"]}},
        "os": found["os"],
        "pid": found["pid"],
        "rabbitmq_version": found["version"],
        "totals": {
            "virtual_host_count": found["vhosts"],
            "connection_count": found["connections"],
            "queue_count": found["queues"],
        },
        "uptime": found["uptime_s"],
        "vm_memory_high_watermark_limit": found["memory_limit"],
    }


def cluster_status(call: Call) -> Report:
    found, node = status_of(call), call.node
    flags = call.get("/api/feature-flags")
    name = call.get("/api/overview")["cluster_name"]
    lines = listener_lines(found["listeners"], f"Node: {node}, i")
    text = "\n".join(
        [
            section("Basics", [f"Cluster name: {name}"]),
            section("Disk Nodes", [node]),
            section("Running Nodes", [node]),
            section("Versions", [f"{node}: RabbitMQ {found['version']} on Python {found['python']}"]),
            section("Maintenance status", [f"Node: {node}, status: not under maintenance"]),
            section("Alarms", alarm_lines(call, found)),
            section("Network Partitions", []),
            section("Listeners", lines),
            section("Feature flags", [f"Flag: {flag['name']}, state: {flag['state']}" for flag in flags]).rstrip("\n"),
        ]
    )
    value = {
        "alarms": alarm_lines(call, found),
        "cluster_name": name,
        "disk_nodes": [node],
        "feature_flags": flags,
        "listeners": {node: shown_listeners(call, found["listeners"])},
        "maintenance_status": {node: "not under maintenance"},
        "partitions": {},
        "ram_nodes": [],
        "running_nodes": [node],
        "versions": {node: {"rabbitmq_name": "RabbitMQ", "rabbitmq_version": found["version"]}},
    }
    return Report(text, value)


def environment(call: Call) -> Report:
    settings = status_of(call)["settings"]
    terms = [(Atom(name), Atom("undefined") if value is None else value) for name, value in settings.items()]
    return Report(erlang([(Atom("rabbit"), terms)]), {"rabbit": settings})


def report(call: Call) -> str:
    """Everything that says how the node is, for a bug report."""
    from amqp_broker.cli.lists import COMMANDS as LISTS
    from amqp_broker.cli.tool import list_of, show

    print(f"Reporting server status of node {call.node} ...\n")
    for title, part in (
        ("Status", status),
        ("Cluster status", cluster_status),
        ("Application environment", environment),
    ):
        print(f"{title} of node {call.node} ...\n{part(call).text}\n")
    vhosts = [vhost["name"] for vhost in call.get("/api/vhosts")]
    for command in LISTS:
        if not command.asks or "<username>" in command.usage or "feature" in command.name:
            continue
        for vhost in vhosts if "--vhost" in command.usage else ["/"]:
            one = Call(call.tool, command, [], call.find)
            one.options["vhost"] = vhost
            print(one.fill(command.says))
            show(one, list_of(one))
            print()
    return "End of server status report"


# Health checks


def check_running(call: Call) -> str:
    if call.state()["state"] != "running":
        raise failed(call.fill(NOT_RUNNING))
    return f"RabbitMQ on node {call.node} is fully booted and running"


def is_running(call: Call) -> str:
    if call.state()["state"] != "running":
        return call.fill(NOT_RUNNING)
    return f"RabbitMQ on node {call.node} is fully booted and running"


def is_booting(call: Call) -> str:
    if call.state()["state"] == "starting":
        return f"RabbitMQ on node {call.node} is booting"
    return (
        f"RabbitMQ on node {call.node} is fully booted (check with is_running), stopped or has not started booting yet"
    )


def alarms(call: Call) -> str:
    lines = alarm_lines(call, status_of(call))
    return "\n".join(lines) if lines else f"Node {call.node} reported no alarms, local or clusterwide"


def check_alarms(call: Call) -> str:
    lines = alarm_lines(call, status_of(call))
    if lines:
        raise Failure("\n".join(lines), 69)
    return f"Node {call.node} reported no alarms, local or clusterwide"


def check_local_alarms(call: Call) -> str:
    lines = alarm_lines(call, status_of(call))
    if lines:
        raise failed("\n".join(lines))
    return f"Node {call.node} reported no local alarms"


def listeners(call: Call) -> Report:
    found = status_of(call)["listeners"]
    value = {"node": call.node, "listeners": shown_listeners(call, found), "result": "ok"}
    return Report("\n".join(listener_lines(found)), value)


def check_port_listener(call: Call) -> str:
    ports = sorted(item["port"] for item in status_of(call)["listeners"])
    port = call.arguments[0]
    if not port.isdigit() or int(port) not in ports:
        raise Failure(
            f"No listener for port {port} is active on node {call.node}. "
            f"Found listeners that use the following ports: {', '.join(map(str, ports))}",
            69,
        )
    return f"A listener for port {port} is running on node {call.node}."


def check_protocol_listener(call: Call) -> str:
    given = call.arguments[0]
    protocols = sorted({item["protocol"] for item in status_of(call)["listeners"]})
    if PROTOCOLS.get(given.lower(), given) not in protocols:
        raise failed(
            f"No listener for protocol {given} is active on node {call.node}. "
            f"Found listeners for the following protocols: {', '.join(protocols)}"
        )
    return f"A listener for protocol {given} is running on node {call.node}."


def check_port_connectivity(call: Call) -> str:
    found = status_of(call)["listeners"]
    # A suspended node has ports that it would listen on, and does not.
    if call.state()["state"] != "running":
        raise failed(f"Node {call.node} has no listeners now")
    closed = [item for item in found if not can_connect(item["host"], item["port"])]
    if closed:
        lines = "\n".join(listener_lines(closed))
        raise failed(f"Connection to ports of the following listeners on node {call.node} failed: \n{lines}")
    ports = ", ".join(str(port) for port in sorted({item["port"] for item in found}))
    return f"Successfully connected to ports {ports} on node {call.node}."


def can_connect(host: str, port: int) -> bool:
    places = {"::": ("::1", "127.0.0.1"), "0.0.0.0": ("127.0.0.1",)}.get(host, (host,))
    for place in places:
        try:
            socket.create_connection((place, port), CONNECT_TIMEOUT_S).close()
        except OSError:
            continue
        return True
    return False


def check_virtual_hosts(call: Call) -> str:
    # Only a node that answers gets here, and here a vhost that is there runs.
    call.get("/_broker/node")
    return f"Node {call.node} reported all vhosts as running"


def check_certificate_expiration(call: Call) -> str:
    unit, within = call.options.get("unit", "weeks"), call.options.get("within", 4)
    answer = call.ask("GET", f"/api/health/checks/certificate-expiration/{within}/{unit}")
    if not answer.is_ok:
        raise failed(answer.reason)
    return f"No certificates are expiring within {within} {unit}."


def node_health_check(call: Call) -> str:
    check_running(call)
    check_local_alarms(call)
    return "Health check passed"


def memory_breakdown(call: Call) -> Report:
    used = status_of(call)["memory_used"]
    return Report(f"total: {used / GB:.4f} gb (100.0%)\n", {"total": {"bytes": used, "percentage": 100.0}})


def resolve_hostname(call: Call) -> str:
    family = socket.AF_INET6 if call.options.get("address_family") == "ipv6" else socket.AF_INET
    try:
        found = socket.getaddrinfo(call.arguments[0], None, family, socket.SOCK_STREAM)
    except OSError:
        raise failed(f"Failed to resolve hostname {call.arguments[0]}") from None
    return "\n".join(dict.fromkeys(str(item[4][0]) for item in found))


def os_env(call: Call) -> str:
    import os

    names = sorted(name for name in os.environ if name.startswith(("RABBITMQ_", "AMQP_BROKER_")))
    return "\n".join(f"{name}={os.environ[name]}" for name in names if "PASS" not in name)


def nothing_to_list(text: str) -> Any:
    return lambda call: call.fill(text)


def check(name: str, about: str, says: str, run: Any, usage: str = TIMEOUT, **further: Any) -> Command:
    return Command(name, usage, about, CHECKS, says=says, run=run, **{"tools": ONLY, **further})


ASKS_ALARMS = "Asking node {node} to report any local resource alarms ..."
EXITS = "Health check that exits with a non-zero code if"

COMMANDS = (
    check(
        "ping",
        "Checks that the node OS process is up, registered with EPMD and CLI tools can authenticate with it",
        "",
        ping,
        tools=BOTH,
        is_for_stopped=True,
    ),
    check(
        "status",
        "Displays status of a node",
        "Status of node {node} ...",
        status,
        "[--unit <unit>] " + TIMEOUT,
        tools=BOTH,
    ),
    Command(
        "cluster_status",
        TIMEOUT,
        "Displays all the nodes in the cluster grouped by node type, together with the currently running nodes",
        "Cluster",
        says="Cluster status of node {node} ...",
        run=cluster_status,
        tools=BOTH,
    ),
    Command(
        "environment",
        "",
        "Displays the name and value of each variable in the application environment for each running application",
        CONFIGURATION,
        says="Application environment of node {node} ...",
        run=environment,
        tools=BOTH,
    ),
    check(
        "report",
        "Generate a server status report containing a concatenation of all server status information for support"
        " purposes",
        "",
        report,
        "",
        tools=BOTH,
    ),
    Command(
        "version",
        "",
        "Displays CLI tools version",
        "Help",
        run=version,
        tools=(CTL, DIAGNOSTICS, "rabbitmq-plugins"),
        is_for_stopped=True,
    ),
    check(
        "check_running",
        f"{EXITS} the RabbitMQ app on the target node is not running",
        "Checking if RabbitMQ is running on node {node} ...",
        check_running,
        is_for_stopped=True,
    ),
    check(
        "is_running",
        "Checks if RabbitMQ is fully booted and running on the target node",
        "Asking node {node} for its status ...",
        is_running,
        is_for_stopped=True,
    ),
    check(
        "is_booting",
        "Checks if RabbitMQ is still booting on the target node",
        "Asking node {node} for its boot status ...",
        is_booting,
        is_for_stopped=True,
    ),
    check(
        "alarms",
        "Lists resource alarms (local or cluster-wide) in effect on the target node",
        "Asking node {node} to report any known resource alarms ...",
        alarms,
    ),
    check(
        "check_alarms",
        f"{EXITS} the target node reports any alarms, local or cluster-wide.",
        ASKS_ALARMS,
        check_alarms,
    ),
    check("check_local_alarms", f"{EXITS} the target node reports any local alarms", ASKS_ALARMS, check_local_alarms),
    check(
        "check_port_connectivity",
        "Basic TCP connectivity health check for each listener's port on the target node",
        "Testing TCP connections to all active listeners on node {node} ...",
        check_port_connectivity,
    ),
    check(
        "check_port_listener",
        f"{EXITS} target node does not have an active listener for given port",
        "Asking node {node} if there's an active listener on port {0} ...",
        check_port_listener,
        "<port> " + TIMEOUT,
    ),
    check(
        "check_protocol_listener",
        f"{EXITS} target node does not have an active listener for given protocol",
        "Asking node {node} if there's an active listener for protocol {0} ...",
        check_protocol_listener,
        "<protocol> " + TIMEOUT,
    ),
    check(
        "check_virtual_hosts",
        "Health check that checks if all vhosts are running in the target node",
        "Checking if all vhosts are running on node {node} ...",
        check_virtual_hosts,
    ),
    check(
        "check_certificate_expiration",
        "Checks the expiration date on the certificates for every listener configured to use TLS",
        "Checking certificate expiration on node {node} ...",
        check_certificate_expiration,
        "[--within <period>] [--unit <unit>]",
    ),
    check(
        "check_if_node_is_quorum_critical",
        f"{EXITS} there are queues with minimum online quorum (queues that would lose their quorum if the target"
        " node is shut down)",
        "Checking if node {node} is critical for quorum of any quorum queues ...",
        nothing_to_list(NOT_CRITICAL),
        tools=(DIAGNOSTICS, QUEUES),
    ),
    check(
        "check_if_node_is_mirror_sync_critical",
        f"{EXITS} there are classic mirrored queues without online synchronised mirrors (queues that would"
        " potentially lose data if the target node is shut down)",
        "Checking if node {node} is critical for data safety of any classic mirrored queues ...",
        nothing_to_list(NOT_CRITICAL),
        tools=(DIAGNOSTICS, QUEUES),
    ),
    check(
        "listeners",
        "Lists active connection listeners (bound interface, port, protocol) on the target node",
        "Asking node {node} to report its protocol listeners ...",
        listeners,
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
        memory_breakdown,
        "[--unit <unit>] " + TIMEOUT,
    ),
    check(
        "list_node_auth_attempt_stats",
        "Lists authentication attempts on the target node",
        'Listing authentication\n attempts for node "{node}" ...',
        nothing_to_list("Node {node} reported no authentication attempt stats"),
        "[--by-source]",
        tools=BOTH,
    ),
    Command(
        "node_health_check",
        TIMEOUT,
        "DEPRECATED. Performs intrusive, opinionated health checks on a fully booted node. "
        "See https://www.rabbitmq.com/monitoring.html#health-checks instead",
        "Deprecated",
        says="This command is DEPRECATED and will be removed in a future version.\n"
        "It performs intrusive, opinionated health checks and requires a fully booted node.\n"
        "Use one of the options covered in https://www.rabbitmq.com/monitoring.html#health-checks instead.\n"
        "Timeout: 70 seconds ...\n"
        "Checking health of node {node} ...",
        run=node_health_check,
        tools=BOTH,
        timeout_s=70.0,
    ),
    Command(
        "resolve_hostname",
        "<hostname> [--address-family <ipv4 | ipv6>]",
        "Resolves a hostname to a set of addresses.",
        CONFIGURATION,
        says="Asking node {node} to resolve hostname {0} to IPv4 addresses...",
        run=resolve_hostname,
        tools=ONLY,
    ),
    Command(
        "log_location",
        "[--all|-a] " + TIMEOUT,
        "Shows log file location(s) on target node",
        CONFIGURATION,
        says="Log file location(s) on node {node} ...",
        run=lambda call: "<stdout>",
        tools=ONLY,
    ),
    Command(
        "os_env",
        TIMEOUT,
        "Lists RabbitMQ-specific environment variables of the command line",
        CONFIGURATION,
        says="Listing RabbitMQ-specific environment variables defined on node {node}...",
        run=os_env,
        tools=ONLY,
    ),
)
