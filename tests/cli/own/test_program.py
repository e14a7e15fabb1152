from __future__ import annotations

import re

import pytest

from amqp_broker.cli.own.program import COLUMNS_MAX, COMMANDS, GROUPS
from amqp_broker.cli.rabbitmq.tool_names import TOOLS
from tests.cli.program import run


def test_help_lists_all_commands_in_short() -> None:
    text = run("--help").stdout
    for name in (*COMMANDS, "ctl", "diagnostics", "plugins", "queues", "admin", "run"):
        assert re.search(rf"^  {name} +\S", text, re.MULTILINE), name


def test_each_command_is_in_one_group_of_the_help() -> None:
    names = [name for group in GROUPS.values() for name in group]
    assert sorted(names) == sorted([*COMMANDS, *TOOLS, "admin", "run"])


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_help_is_not_cut_at_any_width_of_the_terminal(columns: int) -> None:
    text = run("--help", COLUMNS=str(columns)).stdout
    assert "..." not in text.partition("[ARGS]...")[2]
    widest = max(map(len, text.splitlines()))
    assert widest <= min(columns, COLUMNS_MAX)
    assert columns < 200 or widest > 80


@pytest.mark.parametrize(
    ("word", "question"),
    [
        ("srve", " Did you mean 'serve'?"),
        ("fault", " Did you mean 'faults'?"),
        ("diagnostic", " Did you mean 'di"),
        ("list_queues", " Did you mean 'amqp-broker ctl list_queues'?"),
        ("check_alarms", " Did you mean 'amqp-broker diagnostics check_alarms'?"),
        ("x", ""),
    ],
)
def test_an_unknown_command_leads_to_a_similar_one(word: str, question: str) -> None:
    done = run(word)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith(f"amqp-broker: No such command '{word}'.{question}")


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
