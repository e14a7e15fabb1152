"""Each command has an example on the page of the command line; tests/docs/test_pages.py runs them."""

from __future__ import annotations

import re

import pytest

from amqp_broker.cli.admin import main as admin
from amqp_broker.cli.main import TOOLS
from amqp_broker.cli.program import COMMANDS
from amqp_broker.cli.tools import commands_of
from tests.docs.blocks import PROJECT, blocks_of, steps_of

PAGE = PROJECT / "docs" / "command-line.md"
TYPED = [step.command for block in blocks_of(PAGE) if block.language in ("sh", "console") for step in steps_of(block)]


def is_shown(words: str) -> bool:
    return any(re.search(rf"amqp-broker {words}\b", typed) for typed in TYPED)


def test_every_command_of_rabbitmqs_tools_has_an_example() -> None:
    # What several tools have is shown once. `help` and `version` are in the text.
    missing = set()
    for name, tool in TOOLS.items():
        for command in commands_of(tool):
            missing.add((name, command)) if not any(is_shown(f"{one} (-q )?{command}") for one in TOOLS) else None
    assert {command for _, command in missing} == {"help"}


def test_every_command_of_the_broker_has_an_example() -> None:
    assert [name for name in COMMANDS if not is_shown(name)] == []
    store_and_definitions = ("store info", "store verify", "store compact", "store backup")
    assert [name for name in (*store_and_definitions, "definitions check") if not is_shown(name)] == []


def test_every_verb_of_rabbitmqadmin_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    admin(["--help"])
    verbs = set(re.findall(r"^  ([a-z_]+) ", capsys.readouterr().out, re.MULTILINE))
    assert {"list", "declare", "health_check"} <= verbs
    assert {verb for verb in verbs if not is_shown(f"admin {verb}")} == {"close"}
