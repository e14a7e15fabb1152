from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from amqp_broker.cli.rabbitmq.tool_main import commands_of
from amqp_broker.cli.rabbitmq.tool_names import TOOLS
from compat.brokers import free_port
from tests.cli.program import environment

# Modules that take too long to import for a health check.
HEAVY = {"aiohttp", "asyncio", "click", "lmdb", "msgspec", "uvloop", "pamqp", "regex", "platformdirs", "tempfile"}


def test_every_tool_has_its_commands() -> None:
    assert {tool: len(commands_of(tool)) > 5 for tool in TOOLS.values()} == dict.fromkeys(TOOLS.values(), True)
    assert "list_queues" in commands_of("rabbitmq-diagnostics")
    assert "delete_queue" not in commands_of("rabbitmq-diagnostics")


# No broker runs where these commands look for one; a port of one's own, since others may listen on the usual one.
@pytest.mark.parametrize(
    "words",
    [["diagnostics", "-q", "ping"], ["ctl", "list_queues"], ["admin", "--port", str(free_port()), "list", "queues"]],
    ids=["diagnostics", "ctl", "admin"],
)
def test_a_command_imports_only_light_modules(words: list[str], tmp_path: Path) -> None:
    script = (
        "import sys\n"
        f"sys.argv = ['amqp-broker', *{words!r}]\n"
        "from amqp_broker.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('modules', *{name.partition('.')[0] for name in sys.modules})\n"
        "print('modules', *{'server' for name in sys.modules if 'amqp_broker.server' in name})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(AMQP_BROKER_RUNTIME_DIR=str(tmp_path)),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    modules = {word for line in done.stdout.splitlines() if line.startswith("modules") for word in line.split()}
    assert "json" in modules
    assert modules & {*HEAVY, "server"} == set()
