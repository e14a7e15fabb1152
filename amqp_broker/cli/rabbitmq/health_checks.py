"""Health checks: each returns a sentence, or raises Failure if it fails."""

from __future__ import annotations

import socket

from amqp_broker.cli.rabbitmq.command import Call, Failure, failed
from amqp_broker.cli.rabbitmq.node_status import alarm_lines, listener_lines, status_of
from amqp_broker.exit_codes import EX_UNAVAILABLE

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
NOT_RUNNING = "RabbitMQ on node {node} is not running or has not fully booted yet (check with is_booting)"


def ping(call: Call) -> str:
    try:
        call.node  # noqa: B018
    except Failure as failure:
        if failure.exit_code != EX_UNAVAILABLE:
            # Several brokers run here.
            raise
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
        raise Failure("\n".join(lines), EX_UNAVAILABLE)
    return f"Node {call.node} reported no alarms, local or clusterwide"


def check_local_alarms(call: Call) -> str:
    lines = alarm_lines(call, status_of(call))
    if lines:
        raise failed("\n".join(lines))
    return f"Node {call.node} reported no local alarms"


def check_port_listener(call: Call) -> str:
    ports = sorted(item["port"] for item in status_of(call)["listeners"])
    port = call.arguments[0]
    if not port.isdecimal() or int(port) not in ports:
        raise Failure(
            f"No listener for port {port} is active on node {call.node}. "
            f"Found listeners that use the following ports: {', '.join(map(str, ports))}",
            EX_UNAVAILABLE,
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
    # A suspended node has ports, but does not listen.
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
    # Every vhost of a node that answers is running.
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


def resolve_hostname(call: Call) -> str:
    family = socket.AF_INET6 if call.options.get("address_family") == "ipv6" else socket.AF_INET
    try:
        found = socket.getaddrinfo(call.arguments[0], None, family, socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise failed(f"Failed to resolve hostname {call.arguments[0]}") from None
    return "\n".join(dict.fromkeys(str(item[4][0]) for item in found))
