from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from amqp_broker.cli.main import TOOLS
from amqp_broker.cli.tools import commands_of
from tests.cli.program import environment

# What takes longer to import than a health check has.
HEAVY = {"aiohttp", "asyncio", "click", "lmdb", "msgspec", "uvloop", "pamqp", "regex", "platformdirs", "tempfile"}


def test_every_tool_has_its_commands() -> None:
    assert {tool: len(commands_of(tool)) > 5 for tool in TOOLS.values()} == dict.fromkeys(TOOLS.values(), True)
    assert "list_queues" in commands_of("rabbitmq-diagnostics")
    assert "delete_queue" not in commands_of("rabbitmq-diagnostics")


@pytest.mark.parametrize("words", [["diagnostics", "-q", "ping"], ["ctl", "list_queues"], ["admin", "list", "queues"]])
def test_a_command_imports_only_what_is_light(words: list[str], tmp_path: Path) -> None:
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
        text=True,
        check=True,
    )
    modules = {word for line in done.stdout.splitlines() if line.startswith("modules") for word in line.split()}
    assert "json" in modules
    assert modules & {*HEAVY, "server"} == set()
