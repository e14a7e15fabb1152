from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import amqp_broker
from amqp_broker.cli.rabbitmq.tool_main import commands_of, main
from amqp_broker.cli.rabbitmq.tool_names import TOOLS
from compat.brokers import free_port
from tests.cli.program import environment, serving

# Modules that take too long to import for a health check.
HEAVY = {"aiohttp", "asyncio", "click", "lmdb", "msgspec", "uvloop", "pamqp", "regex", "platformdirs", "tempfile"}
# All modules of the standard library that a health check imports, beside those that these import and an interpreter.
NEEDED: Final = (
    *("__future__", "contextlib", "encodings.idna", "importlib", "json", "os", "re", "socket", "stat", "sys", "time"),
    *("typing", "zlib"),
)


def test_every_tool_has_its_commands() -> None:
    assert {tool: len(commands_of(tool)) > 5 for tool in TOOLS.values()} == dict.fromkeys(TOOLS.values(), True)
    assert "list_queues" in commands_of("rabbitmq-diagnostics")
    assert "delete_queue" not in commands_of("rabbitmq-diagnostics")


@pytest.mark.parametrize("words", [["list_users"], ["-q", "list_users"], ["list_users", "-q"]])
def test_a_command_imports_the_module_of_its_own(words: list[str], tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from amqp_broker.cli.rabbitmq.tool_main import main\n"
        f"main('rabbitmqctl', {words!r})\n"
        "print(*(name for name in sys.modules if name.endswith('_commands')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(AMQP_BROKER_RUNTIME_DIR=str(tmp_path)),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stdout.split()[-1:] == ["amqp_broker.cli.rabbitmq.list_commands"]


@pytest.mark.parametrize("words", [["--help"], ["help"], ["list_usrs"]])
def test_help_and_errors_name_all_commands(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    main("rabbitmqctl", words)
    assert "list_users" in "".join(capfd.readouterr())


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


HEALTH_CHECK: Final = """
import sys
import {needed}
before = {{*sys.modules}}
sys.argv = ["amqp-broker", *{words!r}]
from amqp_broker.cli.main import main
try:
    main()
except SystemExit as end:
    assert end.code in (None, 0), end.code
print("imported", *sorted(name for name in {{*sys.modules}} - before if not name.startswith("amqp_broker")))
print("own", *sorted({{name for name in sys.modules if name.count(".") == 1 and name.startswith("amqp_broker.")}}))
"""


# The checks of Compose files, of the operator for Kubernetes, and of RabbitMQ's guide to monitoring.
@pytest.mark.parametrize(
    "words",
    [
        *("diagnostics ping", "diagnostics -q ping", "diagnostics check_running", "diagnostics check_local_alarms"),
        *("diagnostics check_port_connectivity", "diagnostics check_virtual_hosts"),
    ],
)
def test_a_health_check_imports_no_more_than_it_needs(words: str, tmp_path: Path) -> None:
    """The import of `pathlib` takes a tenth of its time. Without `site`, Python does not import it."""
    script = HEALTH_CHECK.format(needed=", ".join(NEEDED), words=words.split())
    folder = str(Path(amqp_broker.__file__).parents[1])
    with serving(tmp_path, AMQP_BROKER_RUNTIME_DIR=str(tmp_path)):
        done = subprocess.run(
            [sys.executable, "-S", "-c", script],
            env=environment(AMQP_BROKER_RUNTIME_DIR=str(tmp_path), PYTHONPATH=folder),
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")
    *_, imported, own = done.stdout.splitlines()
    assert imported == "imported"
    assert set(own.split()[1:]) == {f"amqp_broker.{name}" for name in ("amqp", "cli", "control", "exit_codes")}
