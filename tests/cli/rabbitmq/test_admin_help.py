from __future__ import annotations

import shutil
import subprocess

import pytest

from amqp_broker.cli.rabbitmq.admin_help import completion, help_text, subcommands
from amqp_broker.cli.rabbitmq.rabbitmqadmin import VERBS


def test_the_help_names_kinds_commands_and_options() -> None:
    text = help_text(VERBS)
    assert "operator_policy" in text
    assert "  -H, --host HOST " in text
    assert "\n  rebalance\n" in text


@pytest.mark.parametrize(
    "line",
    [
        "list operator_policies [COLUMN...]",
        "declare queue name=... [auto_delete=... durable=... arguments=... node=... type=...]",
        "declare user name=... password=... | password_hash=... [tags=... hashing_algorithm=...]",
        "delete binding source=... destination_type=... destination=...",
        "delete connection name=...",
    ],
)
def test_the_help_on_subcommands_names_the_arguments_of_each_kind(line: str) -> None:
    assert line in subcommands().splitlines()


def test_the_completion_script_knows_every_command() -> None:
    script = completion(VERBS)
    assert "complete -F" in script
    assert " ".join(VERBS) in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_a_kind() -> None:
    words = "COMP_WORDS=(rabbitmqadmin declare perm); COMP_CWORD=2; _rabbitmqadmin; echo ${COMPREPLY[@]}"
    done = subprocess.run(
        ["bash", "-c", f"{completion(VERBS)}\n{words}"], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout == "permission permissions\n"
