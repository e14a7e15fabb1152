from __future__ import annotations

from typing import Any

import click
from click.testing import CliRunner

from amqp_broker.cli.own.setting_options import settings_as_options
from amqp_broker.settings.settings import SETTINGS


def given(*arguments: str) -> dict[str, Any]:
    """Return the arguments of a command with an option for each setting."""
    taken: dict[str, Any] = {}

    @click.command()
    @settings_as_options
    def command(**values: Any) -> None:
        taken.update(values)

    assert CliRunner().invoke(command, arguments).exit_code == 0
    return taken


def test_each_setting_with_a_flag_is_an_option_that_need_not_be_given() -> None:
    assert given() == {declared.name: None for declared in SETTINGS if declared.options}


def test_options_have_the_types_of_their_settings() -> None:
    taken = given("--port", "1", "--management-port", "2", "--data-dir", "d", "--no-management", "--ephemeral")
    assert {name: value for name, value in taken.items() if value is not None} == {
        "port": 1,
        "management_port": 2,
        "data_dir": "d",
        "management": False,
        "ephemeral": True,
    }


def test_a_file_of_settings_has_a_short_option() -> None:
    assert given("-c", "x.conf")["config_file"] == given("--config", "x.conf")["config_file"] == "x.conf"


def test_no_secret_is_an_option() -> None:
    assert not [name for name in given() if "pass" in name]
