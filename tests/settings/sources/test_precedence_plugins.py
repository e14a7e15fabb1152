"""Plugins of a file or of the environment, which decide what is served."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from amqp_broker.settings.settings import Settings
from amqp_broker.settings.sources.conf_keys import Notice
from amqp_broker.settings.sources.precedence import load


def settings(given: dict[str, Any], environment: dict[str, str]) -> Settings:
    return load(given, environment).settings


def write(path: Path, text: str) -> str:
    path.write_text(text, "utf-8")
    return str(path)


# Plugins


@pytest.mark.parametrize(
    ("text", "management", "prometheus"),
    [
        ("[rabbitmq_management,rabbitmq_prometheus].", True, True),
        ("[rabbitmq_management].", True, False),
        ("[rabbitmq_prometheus].", False, True),
        ("[].", False, False),
        ("[rabbitmq_management_agent].", False, False),
        ("[rabbitmq_shovel_management].", True, False),
    ],
)
def test_a_file_of_plugins_selects_what_is_served(
    tmp_path: Path, text: str, management: bool, prometheus: bool
) -> None:
    file = write(tmp_path / "enabled_plugins", text)
    for given, environment in (({"enabled_plugins_file": file}, {}), ({}, {"RABBITMQ_ENABLED_PLUGINS_FILE": file})):
        loaded = load(given, environment)
        assert (loaded.settings.management, loaded.settings.prometheus) == (management, prometheus)
        assert loaded.notices == []
    assert settings({"enabled_plugins_file": file, "management": not management}, {}).management is not management


def test_without_a_file_of_plugins_everything_is_served(tmp_path: Path) -> None:
    loaded = load({}, {"RABBITMQ_ENABLED_PLUGINS_FILE": str(tmp_path / "none")})
    assert (loaded.settings.management, loaded.settings.prometheus) == (True, True)
    assert loaded.notices == []


@pytest.mark.parametrize(
    ("text", "management", "prometheus"),
    [("rabbitmq_management,rabbitmq_shovel", True, False), ("rabbitmq_prometheus", False, True), ("ALL", True, True)],
)
def test_a_list_of_plugins_in_the_environment_overrides_the_file(
    tmp_path: Path, text: str, management: bool, prometheus: bool
) -> None:
    file = write(tmp_path / "enabled_plugins", "[].")
    found = settings({"enabled_plugins_file": file}, {"RABBITMQ_ENABLED_PLUGINS": text})
    assert (found.management, found.prometheus) == (management, prometheus)


def test_unavailable_plugins_are_reported_in_one_line(tmp_path: Path) -> None:
    file = write(tmp_path / "enabled_plugins", "[rabbitmq_stream,rabbitmq_management,rabbitmq_mqtt].")
    assert load({"enabled_plugins_file": file}, {}).notices == [
        Notice(
            f"{file}: these plugins are not available: rabbitmq_mqtt, rabbitmq_stream, rabbitmq_stream_common",
            is_wrong=False,
        )
    ]


def test_a_broken_file_of_plugins_changes_nothing(tmp_path: Path) -> None:
    file = write(tmp_path / "enabled_plugins", "[rabbitmq_prometheus")
    loaded = load({"enabled_plugins_file": file}, {})
    assert (loaded.settings.management, loaded.settings.prometheus) == (True, True)
    assert loaded.wrong == [f"{file}: line 1: this is not an Erlang term"]
