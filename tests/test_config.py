from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from amqp_broker.config import Config, ConfigError, octets


def environment_names() -> list[str]:
    return [name for field in fields(Config) for name in (f"AMQP_BROKER_{field.name.upper()}", *field.metadata["env"])]


def test_the_defaults_are_valid() -> None:
    Config().check()


def test_the_defaults_are_what_clients_of_rabbitmq_expect() -> None:
    config = Config()
    assert (config.port, config.default_user, config.default_pass, config.default_vhost) == (
        5672,
        "guest",
        "guest",
        "/",
    )
    assert (config.channel_max, config.frame_max, config.heartbeat_s) == (2047, 131072, 60)


def test_without_settings_the_defaults_hold() -> None:
    assert Config.load({}, {}) == Config()


def test_the_command_line_comes_before_the_environment() -> None:
    assert Config.load({"port": 1}, {"AMQP_BROKER_PORT": "2"}).port == 1


def test_what_the_command_line_leaves_open_the_environment_decides() -> None:
    assert Config.load({"port": None}, {"AMQP_BROKER_PORT": "2"}).port == 2


def test_a_falsy_value_on_the_command_line_is_a_value() -> None:
    assert Config.load({"port": 0}, {"AMQP_BROKER_PORT": "2"}).port == 0


def test_our_own_name_in_the_environment_comes_before_rabbitmqs() -> None:
    assert Config.load({}, {"RABBITMQ_NODE_PORT": "3", "AMQP_BROKER_PORT": "2"}).port == 2


def test_variables_of_others_are_ignored() -> None:
    assert Config.load({}, {"PORT": "2", "AMQP_BROKER_UNKNOWN": "x"}) == Config()


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("RABBITMQ_DEFAULT_USER", "default_user", "anna"),
        ("RABBITMQ_DEFAULT_PASS", "default_pass", "secret"),
        ("RABBITMQ_DEFAULT_VHOST", "default_vhost", "test"),
        ("RABBITMQ_NODE_IP_ADDRESS", "host", "::"),
        ("RABBITMQ_NODE_PORT", "port", "5673"),
        ("RABBITMQ_VM_MEMORY_HIGH_WATERMARK", "vm_memory_high_watermark", "0.4"),
    ],
)
def test_variables_of_rabbitmqs_docker_image_work(name: str, setting: str, value: str) -> None:
    assert str(getattr(Config.load({}, {name: value}), setting)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("1", True), ("YES", True), ("false", False), ("0", False), ("no", False), ("", False)],
)
def test_a_switch_in_the_environment_has_several_spellings(text: str, value: bool) -> None:
    assert Config.load({}, {"AMQP_BROKER_REMOTE_GUEST": text}).remote_guest is value


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"RABBITMQ_NODE_PORT": "amqp"}, "RABBITMQ_NODE_PORT is 'amqp', which is not a whole number"),
        ({"AMQP_BROKER_CONNECTION_MAX": ""}, "AMQP_BROKER_CONNECTION_MAX is '', which is not a whole number"),
        ({"AMQP_BROKER_EPHEMERAL": "maybe"}, "AMQP_BROKER_EPHEMERAL is 'maybe', which is neither true nor false"),
        ({"AMQP_BROKER_PORT": "65536"}, "port 65536 is not between 0 and 65535"),
        ({"AMQP_BROKER_PORT": "-1"}, "port -1 is not between 0 and 65535"),
        (
            {"RABBITMQ_VM_MEMORY_HIGH_WATERMARK": "much"},
            "vm_memory_high_watermark is 'much', which is not an amount like 2GB",
        ),
        ({"AMQP_BROKER_DISK_FREE_LIMIT": "-1"}, "disk_free_limit is '-1', which is not an amount like 2GB"),
        ({"AMQP_BROKER_STORE_BYTES_MAX": "2 XB"}, "store_bytes_max is '2 XB', which is not an amount like 2GB"),
        ({"AMQP_BROKER_LOG_LEVEL": "loud"}, "log level 'loud' is none of debug, info, warning, error"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(environment: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.load({}, environment)
    assert str(caught.value) == message


@pytest.mark.parametrize("given", [{"port": 70000}, {"log_level": "loud"}])
def test_values_from_the_command_line_are_checked_too(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Config.load(given, {})


def test_each_setting_has_a_sentence_of_help() -> None:
    for field in fields(Config):
        assert field.metadata["help"].endswith("."), field.name


def test_no_two_settings_share_a_name_in_the_environment() -> None:
    names = environment_names()
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("0.6", 600_000),
        ("1", 1_000_000),
        ("1.5", 1_500_000),
        ("2", 2),
        ("50000000", 50_000_000),
        ("50MB", 50_000_000),
        ("50mb", 50_000_000),
        ("2kB", 2000),
        ("2KiB", 2048),
        ("2k", 2048),
        ("3M", 3 << 20),
        ("3MiB", 3 << 20),
        ("2G", 2 << 30),
        ("1.5GB", 1_500_000_000),
    ],
)
def test_an_amount_is_octets_with_rabbitmqs_units_or_a_share_of_what_there_is(text: str, amount: int) -> None:
    assert octets(text, 1_000_000) == amount


@pytest.mark.parametrize(("version", "watermark"), [("3.13", "0.4"), ("4.2", "0.6")])
def test_the_watermark_is_that_of_the_version_unless_one_is_given(version: str, watermark: str) -> None:
    assert Config(compat=version).resolved().vm_memory_high_watermark == watermark
    assert Config(compat=version, vm_memory_high_watermark="0").resolved().vm_memory_high_watermark == "0"
