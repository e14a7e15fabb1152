"""The table names the commands of each module, and each once."""

from __future__ import annotations

import importlib

import pytest

from amqp_broker.cli.rabbitmq.command_modules import MODULES


@pytest.mark.parametrize("module", MODULES)
def test_the_table_has_the_commands_of_a_module(module: str) -> None:
    commands = importlib.import_module(f"amqp_broker.cli.rabbitmq.{module}").COMMANDS
    assert MODULES[module].split() == sorted({command.name for command in commands})


def test_a_command_is_in_one_module() -> None:
    names = [name for names in MODULES.values() for name in names.split()]
    assert len(names) == len(set(names))
