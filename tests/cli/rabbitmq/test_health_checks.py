from __future__ import annotations

import socket
from typing import Any

import pytest

from amqp_broker.cli.rabbitmq.health_checks import can_connect
from tests.cli.canned import NODE, run_without_node
from tests.cli.status_of_node import diagnose


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("ping", "Ping succeeded"),
        ("check_running", f"RabbitMQ on node {NODE} is fully booted and running"),
        ("check_local_alarms", f"Node {NODE} reported no local alarms"),
        ("check_alarms", f"Node {NODE} reported no alarms, local or clusterwide"),
        ("alarms", f"Node {NODE} reported no alarms, local or clusterwide"),
        ("check_virtual_hosts", f"Node {NODE} reported all vhosts as running"),
        ("check_port_listener 5672", f"A listener for port 5672 is running on node {NODE}."),
        ("check_protocol_listener amqp", f"A listener for protocol amqp is running on node {NODE}."),
        ("server_version", "4.2.1"),
    ],
)
def test_health_checks_of_a_healthy_node_succeed(line: str, output: str) -> None:
    assert diagnose(f"-q {line}") == (f"{output}\n", "", 0)


@pytest.mark.parametrize(
    ("line", "changed", "complaint"),
    [
        ("check_alarms", {"alarms": ["disk"]}, f"Free disk space alarm on node {NODE}\n"),
        (
            "check_running",
            {"state": "stopped"},
            f"Error:\nRabbitMQ on node {NODE} is not running or has not fully booted yet (check with is_booting)\n",
        ),
        (
            "check_port_listener 1",
            {},
            f"No listener for port 1 is active on node {NODE}. "
            "Found listeners that use the following ports: 5672, 15672\n",
        ),
        (
            "check_protocol_listener mqtt",
            {},
            f"Error:\nNo listener for protocol mqtt is active on node {NODE}. "
            "Found listeners for the following protocols: amqp, http\n",
        ),
    ],
)
def test_health_checks_of_an_unhealthy_node_have_exit_code_69(
    line: str, changed: dict[str, Any], complaint: str
) -> None:
    assert diagnose(f"-q {line}", **changed) == ("", complaint, 69)


def test_the_connectivity_check_connects_to_ports() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        here = [{"protocol": "amqp", "host": "127.0.0.1", "port": port}]
        done = diagnose("-q check_port_connectivity", listeners=here)
        assert done == (f"Successfully connected to ports {port} on node {NODE}.\n", "", 0)
        assert can_connect("0.0.0.0", port)
    _, complaint, code = diagnose("check_port_connectivity", listeners=here)
    assert code == 69
    assert f"Interface: 127.0.0.1, port: {port}, protocol: amqp, purpose: AMQP 0-9-1" in complaint


def test_a_ping_of_a_node_that_is_down_has_its_name() -> None:
    assert run_without_node("rabbitmq-diagnostics ping") == (
        f"Will ping {NODE}. This only checks if the OS process is running and registered with epmd. "
        "Timeout: 60000 ms.\n",
        f"Error:\nFailed to connect and authenticate to {NODE} in 60000 ms\n",
        69,
    )


@pytest.mark.parametrize("line", ["check_port_listener ²", "resolve_hostname a..b"])
def test_invalid_ports_and_hosts_are_reported(line: str) -> None:
    output, complaint, code = diagnose(f"-q {line}")
    assert (output, code) == ("", 69)
    assert complaint.startswith(("No listener for port ² is active", "Error:\nFailed to resolve hostname a..b"))
