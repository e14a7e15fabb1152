from __future__ import annotations

from amqp_broker.cli.rabbitmq.diagnostic_commands import COMMANDS
from tests.cli.canned import NODE
from tests.cli.status_of_node import diagnose


def test_each_command_of_diagnostics_is_declared_once() -> None:
    names = [command.name for command in COMMANDS]
    assert len(set(names)) == len(names)


def test_critical_checks_of_a_single_node_succeed() -> None:
    for name in ("check_if_node_is_quorum_critical", "check_if_node_is_mirror_sync_critical"):
        output, complaint, code = diagnose(f"-q {name}")
        assert (complaint, code) == ("", 0)
        assert output.startswith(f"Node {NODE} seems to be the only one")
