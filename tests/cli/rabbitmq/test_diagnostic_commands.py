from __future__ import annotations

from amqp_broker.cli.rabbitmq.diagnostic_commands import COMMANDS
from tests.cli.canned import NODE
from tests.cli.status_of_node import diagnose


def test_each_command_of_diagnostics_is_declared_once() -> None:
    names = [command.name for command in COMMANDS]
    assert len(set(names)) == len(names)


def test_the_critical_check_of_a_single_node_succeeds() -> None:
    output, complaint, code = diagnose("-q check_if_node_is_quorum_critical")
    assert (complaint, code) == ("", 0)
    assert output.startswith(f"Node {NODE} seems to be the only one")
