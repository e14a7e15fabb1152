"""Each command has an example in the documentation, which tests/docs/test_pages.py runs."""

from __future__ import annotations

import re

import click

from amqp_broker.cli.own.program import COMMANDS, cli
from amqp_broker.cli.rabbitmq.rabbitmqadmin import VERBS
from amqp_broker.cli.rabbitmq.tool_main import commands_of
from amqp_broker.cli.rabbitmq.tool_names import TOOLS
from tests.docs.blocks import PROJECT, blocks_of, steps_of

PAGES = [PROJECT / "docs" / f"{name}.md" for name in ("command-line", "rabbitmqctl", "rabbitmq-tools")]
BLOCKS = [block for page in PAGES for block in blocks_of(page) if block.language in ("sh", "console")]
TYPED = [step.command for block in BLOCKS for step in steps_of(block)]
ANYWHERE = [page.read_text("utf-8") for page in (PROJECT / "docs").glob("*.md")]


def is_shown(words: str, examples: list[str] = TYPED) -> bool:
    return any(re.search(rf"amqp-broker {words}\b", line) for line in examples)


def test_every_command_of_rabbitmqs_tools_has_an_example() -> None:
    # A command that belongs to several tools needs one example.
    names = {name for tool in TOOLS.values() for name in commands_of(tool)}
    assert {name for name in names if not any(is_shown(f"{tool} (-q )?{name}") for tool in TOOLS)} == {"help"}


def test_every_own_command_and_subcommand_has_an_example() -> None:
    assert [name for name in COMMANDS if not is_shown(name)] == []
    context = click.Context(cli)
    groups = {name: group for name in COMMANDS if isinstance(group := cli.get_command(context, name), click.Group)}
    subcommands = [f"{name} {subcommand}" for name, group in groups.items() for subcommand in group.commands]
    assert "store verify" in subcommands
    assert [words for words in subcommands if not is_shown(words, ANYWHERE)] == []


def test_every_verb_of_rabbitmqadmin_has_an_example() -> None:
    assert {verb for verb in VERBS if not is_shown(f"admin {verb}")} == {"close"}
