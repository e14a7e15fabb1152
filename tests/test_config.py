from __future__ import annotations

from dataclasses import Field, field, fields
from typing import Any

import pytest

from amqp_broker import setting_values as values
from amqp_broker.config import Config, ConfigError, names_in_environment, read


def environment_names() -> list[str]:
    return [name for declared in fields(Config) for name in names_in_environment(declared)]


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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"port": 70000}, "port is '70000', which is not between 0 and 65535"),
        ({"management_port": -1}, "management_port is '-1', which is not between 0 and 65535"),
        ({"compat": "5.0"}, "compat is '5.0', which is none of 3.13, 4.2, 4.3"),
        ({"disk_free_limit": "-1"}, "disk_free_limit is '-1', which is not an amount like 2GB"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config(**given).check()
    assert str(caught.value) == message


def test_a_secret_that_cannot_be_is_not_told() -> None:
    declared = next(declared for declared in fields(Config) if declared.metadata["secret"])
    declared = replace_reader(declared)
    with pytest.raises(ConfigError) as caught:
        read(declared, "default_pass", "Xyzzy42")
    assert str(caught.value) == "default_pass is a secret, which is not a whole number"


def replace_reader(declared: Field[Any]) -> Field[Any]:
    """The same setting, of which only numbers are values."""
    changed = field(metadata={**declared.metadata, "reader": values.number})
    assert isinstance(changed, Field)
    return changed


def test_each_setting_has_a_sentence_of_help() -> None:
    for declared in fields(Config):
        assert declared.metadata["help"].endswith("."), declared.name


@pytest.mark.parametrize("settings", [{"tls": "auto"}, {"tls_port": 0}, {"tls_cert_file": "x"}, {"tls_key_file": "x"}])
def test_each_of_these_turns_tls_on(settings: dict[str, Any]) -> None:
    assert Config(**settings).has_tls
    assert not Config().has_tls


def test_no_two_settings_share_a_name_in_the_environment() -> None:
    names = environment_names()
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("version", "watermark"), [("3.13", "0.4"), ("4.2", "0.6")])
def test_the_watermark_is_that_of_the_version_unless_one_is_given(version: str, watermark: str) -> None:
    assert Config(compat=version).resolved().vm_memory_high_watermark == watermark
    assert Config(compat=version, vm_memory_high_watermark="0").resolved().vm_memory_high_watermark == "0"


def test_a_broker_listens_where_it_is_told_to() -> None:
    assert Config().listeners == [("localhost", 5672)]
    assert Config(tcp=False).listeners == []
    config = Config(host="::", port=1, extra_listeners="127.0.0.1:2 ::1:3 :4")
    assert config.listeners == [("::", 1), ("127.0.0.1", 2), ("::1", 3), ("::", 4)]


def test_guest_is_a_local_user_unless_it_may_come_from_elsewhere() -> None:
    assert Config().local_users == {"guest"}
    assert Config(remote_guest=True, loopback_users="guest anna").local_users == {"anna"}
    assert Config(loopback_users="").local_users == set()


def test_nobody_logs_in_without_a_name_where_there_is_no_user_for_that() -> None:
    assert Config().resolved().auth_mechanisms == "PLAIN AMQPLAIN ANONYMOUS"
    assert Config(anonymous_login_user="none").resolved().auth_mechanisms == "PLAIN AMQPLAIN"


def test_a_feature_that_is_not_permitted_is_not_in_the_profile() -> None:
    assert Config().profile.has_global_prefetch
    assert not Config(denied_features="global_qos").profile.has_global_prefetch
    assert Config(denied_features="unknown").profile == Config().profile


def test_settings_are_not_shown_with_their_secrets() -> None:
    assert "Xyzzy42" not in repr(Config(default_pass="Xyzzy42"))
