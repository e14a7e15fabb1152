from __future__ import annotations

import re

import pytest

from amqp_broker.cli.own.program import COMMANDS
from tests.cli.program import run


def test_help_lists_all_commands_in_short() -> None:
    text = run("--help").stdout
    for name in (*COMMANDS, "ctl", "diagnostics", "plugins", "queues", "admin", "run"):
        assert re.search(rf"^  {name} +\S", text, re.MULTILINE), name


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("name", ["run", "ctl", "diagnostics", "plugins", "queues", "admin", "install-shims"])
def test_each_command_has_help(name: str, flag: str) -> None:
    done = run(name, flag)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage" in done.stdout


@pytest.mark.parametrize(
    ("words", "completion"),
    [
        ("amqp-broker di", "diagnostics"),
        ("amqp-broker ctl list_ex", "list_exchanges"),
        ("amqp-broker serve --ephe", "--ephemeral"),
    ],
)
def test_bash_completes_commands_and_options(words: str, completion: str) -> None:
    done = run(
        _AMQP_BROKER_COMPLETE="bash_complete",
        COMP_WORDS=words,
        COMP_CWORD=str(len(words.split()) - 1),
    )
    assert f"plain,{completion}" in done.stdout.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_completion_script(shell: str) -> None:
    done = run(_AMQP_BROKER_COMPLETE=f"{shell}_source")
    assert done.returncode == 0
    assert "_AMQP_BROKER_COMPLETE" in done.stdout
