"""Reports about the node, each as a text for people and a value for programs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from amqp_broker.cli.rabbitmq.columns import Atom
from amqp_broker.cli.rabbitmq.command import Call, Failure
from amqp_broker.cli.rabbitmq.formatters import erlang
from amqp_broker.cli.rabbitmq.tool import Report
from amqp_broker.cli.rabbitmq.words import Misuse, path_of

# RabbitMQ's descriptions of listeners, by protocol, without AMQP 1.0.
PURPOSES = {
    "amqp": "AMQP 0-9-1",
    "amqp/ssl": "AMQP 0-9-1 over TLS",
    "http": "HTTP API",
    "https": "HTTP API over TLS (HTTPS)",
    "http/prometheus": "Prometheus exporter API over HTTP",
    "https/prometheus": "Prometheus exporter API over TLS (HTTPS)",
}
GB = 1e9
UNITS = {"bytes": 1, "mb": 1e6, "gb": GB}


def status_of(call: Call) -> dict[str, Any]:
    """Return the status of the node."""
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


def sections(call: Call, *parts: tuple[str, Sequence[str]]) -> str:
    """Return a text of sections, each with a title and lines."""
    texts = ("\n".join([call.heading(title), "", *(lines or ["(none)"]), ""]) for title, lines in parts)
    return "\n".join(texts).rstrip("\n")


def alarm_lines(call: Call, found: dict[str, Any]) -> list[str]:
    names = {"memory": "Memory alarm", "disk": "Free disk space alarm"}
    return [f"{names.get(name, name)} on node {call.node}" for name in found["alarms"]]


def version(call: Call) -> str:
    from amqp_broker.settings.profiles import DEFAULT, PROFILES

    try:
        return str(call.state()["version"])
    except Failure:
        return PROFILES[DEFAULT].version


def status(call: Call) -> Report:
    found = status_of(call)
    text = sections(
        call,
        (
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
        (
            "Plugins",
            [
                f"Enabled plugin file: {found['settings']['enabled_plugins_file'] or '(none)'}",
                "Enabled plugins:",
                "",
                *(f" * {name}" for name in active_plugins(found)),
            ],
        ),
        ("Data directory", [f"Node data directory: {found['data_folder'] or '(none)'}"]),
        ("Config files", [f" * {file}" for file in found["config_files"]]),
        ("Log file(s)", [f" * {file}" for file in found["log_files"]]),
        ("Alarms", alarm_lines(call, found)),
        ("Memory", memory_lines(found)),
        ("File Descriptors", [f"Total: {found['descriptors_used']}, limit: {found['descriptors_limit']}"]),
        (
            "Free Disk Space",
            [
                f"Low free disk space watermark: {in_gb(found['disk_free_limit'])}",
                f"Free disk space: {in_gb(found['disk_free'])}",
            ],
        ),
        (
            "Totals",
            [
                f"Connection count: {found['connections']}",
                f"Queue count: {found['queues']}",
                f"Virtual host count: {found['vhosts']}",
            ],
        ),
        ("Listeners", listener_lines(found["listeners"])),
    )
    return Report(text, status_value(call, found))


def active_plugins(found: dict[str, Any]) -> list[str]:
    """Return the plugins that the node runs, with those that they require."""
    # Health checks start without the settings.
    from amqp_broker.settings.plugins import BUILT_IN, with_needed

    return [name for name in with_needed(found["plugins"]) if name in BUILT_IN]


def memory_lines(found: dict[str, Any]) -> list[str]:
    share, limit = share_of_memory(found), in_gb(found["memory_limit"])
    return [
        f"Total memory used: {in_gb(found['memory_used'])}",
        "Calculation strategy: rss",
        f"Memory high watermark setting: {limit if share is None else f'{share} of available memory'}, "
        f"computed to: {limit}",
    ]


def in_gb(octets: int) -> str:
    return f"{round(octets / GB, 4)} gb"


def share_of_memory(found: dict[str, Any]) -> float | None:
    """Return the memory limit as the share that it was set to, or None if it was set as an amount."""
    text: str = found["memory_setting"]
    if text.endswith("%"):
        return float(text[:-1]) / 100
    try:
        share = float(text)
    except ValueError:
        return None
    return share if share <= 1 or "." in text else None


def status_value(call: Call, found: dict[str, Any]) -> dict[str, Any]:
    """Return the value of `status --formatter json`, with RabbitMQ's names."""
    share = share_of_memory(found)
    return {
        "active_plugins": active_plugins(found),
        "alarms": alarm_lines(call, found),
        "config_files": found["config_files"],
        "data_directory": found["data_folder"],
        "disk_free": found["disk_free"],
        "disk_free_limit": found["disk_free_limit"],
        "enabled_plugin_file": found["settings"]["enabled_plugins_file"],
        "file_descriptors": {"total_limit": found["descriptors_limit"], "total_used": found["descriptors_used"]},
        "is_under_maintenance": False,
        "listeners": shown_listeners(call, found["listeners"]),
        "log_files": found["log_files"],
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
        "vm_memory_high_watermark_setting": (
            {"absolute": found["memory_limit"]} if share is None else {"relative": share}
        ),
    }


def cluster_status(call: Call) -> Report:
    found, node = status_of(call), call.node
    flags = call.get("/api/feature-flags")
    name = call.get("/api/overview")["cluster_name"]
    lines = listener_lines(found["listeners"], f"Node: {node}, i")
    text = sections(
        call,
        ("Basics", [f"Cluster name: {name}"]),
        ("Disk Nodes", [node]),
        ("Running Nodes", [node]),
        ("Versions", [f"{node}: RabbitMQ {found['version']} on Python {found['python']}"]),
        ("Maintenance status", [f"Node: {node}, status: not under maintenance"]),
        ("Alarms", alarm_lines(call, found)),
        ("Network Partitions", []),
        ("Listeners", lines),
        ("Feature flags", [f"Flag: {flag['name']}, state: {flag['state']}" for flag in flags]),
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


def log_location(call: Call) -> Report:
    files = status_of(call)["log_files"]
    paths = files if call.options.get("all") else files[:1]
    return Report("\n".join(paths), {"node_name": call.node, "paths": paths, "result": "ok"})


def environment(call: Call) -> Report:
    # Health checks start without the declarations of the settings.
    from amqp_broker.cli.rabbitmq import application_environment

    found = application_environment.of(status_of(call)["settings"])
    terms = [(Atom(name), application_environment.terms(keys)) for name, keys in sorted(found.items())]
    return Report(erlang(terms), found)


def report(call: Call) -> str:
    """Print all reports and lists, for a bug report."""
    from amqp_broker.cli.rabbitmq.list_commands import COMMANDS as LISTS
    from amqp_broker.cli.rabbitmq.tool import list_of, show

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
            one.options = {**call.options, "vhost": vhost}
            print(one.fill(command.says))
            show(one, list_of(one))
            print()
    return "End of server status report"


def memory_breakdown(call: Call) -> Report:
    unit = str(call.options.get("unit", "gb")).lower()
    if unit not in UNITS:
        raise Misuse(f"\"unit '{unit}' is not supported. Please use one of: {', '.join(UNITS)}\"")
    memory: dict[str, Any] = call.get(f"/api/nodes/{path_of(call.node)}/memory")["memory"]
    total = memory.pop("total")["rss"]
    memory.pop("strategy")
    shares = {
        name: {"bytes": octets, "percentage": round(100 * octets / total, 2) if total else 0.0}
        for name, octets in sorted(memory.items(), key=lambda item: -item[1])
    }
    lines = (
        f"{name}: {_in_unit(share['bytes'], unit)} {unit} ({share['percentage']}%)\n" for name, share in shares.items()
    )
    return Report("".join(lines), shares)


def _in_unit(octets: int, unit: str) -> float:
    return octets if unit == "bytes" else round(octets / UNITS[unit], 4)


def os_env(call: Call) -> str:
    names = sorted(name for name in os.environ if name.startswith(("RABBITMQ_", "AMQP_BROKER_")))
    return "\n".join(f"{name}={os.environ[name]}" for name in names if "PASS" not in name)


def listeners(call: Call) -> Report:
    found = status_of(call)["listeners"]
    value = {"node": call.node, "listeners": shown_listeners(call, found), "result": "ok"}
    return Report("\n".join(listener_lines(found)), value)
