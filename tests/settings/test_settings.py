from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.settings import readers
from amqp_broker.settings.settings import SETTINGS, Settings, SettingsError


def environment_names() -> list[str]:
    return [name for declared in SETTINGS for name in declared.environment]


def test_the_defaults_are_valid() -> None:
    Settings().check()


def test_the_defaults_are_what_clients_of_rabbitmq_expect() -> None:
    settings = Settings()
    assert (settings.port, settings.default_user, settings.default_pass, settings.default_vhost) == (
        5672,
        "guest",
        "guest",
        "/",
    )
    assert (settings.channel_max, settings.frame_max, settings.heartbeat_s) == (2047, 131072, 60)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"port": 70000}, "port is '70000', which is not between 0 and 65535"),
        ({"management_port": -1}, "management_port is '-1', which is not between 0 and 65535"),
        ({"compat": "5.0"}, "compat is '5.0', which is not one of 3.13, 4.0, 4.2, 4.3"),
        ({"disk_free_limit": "-1"}, "disk_free_limit is '-1', which is not an amount like 2GB"),
    ],
)
def test_an_invalid_value_is_refused_with_the_name_of_its_setting(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings(**given).check()
    assert str(caught.value) == message


def test_an_invalid_secret_is_not_shown() -> None:
    secret = next(declared for declared in SETTINGS if declared.is_secret)._replace(reader=readers.number)
    with pytest.raises(SettingsError) as caught:
        secret.read("default_pass", "Xyzzy42")
    assert str(caught.value) == "default_pass is a secret, which is not a whole number"


def test_the_help_of_each_setting_is_a_sentence() -> None:
    for declared in SETTINGS:
        assert declared.help.endswith("."), declared.name


@pytest.mark.parametrize("settings", [{"tls": "auto"}, {"tls_port": 0}, {"tls_cert_file": "x"}, {"tls_key_file": "x"}])
def test_each_of_these_turns_tls_on(settings: dict[str, Any]) -> None:
    assert Settings(**settings).has_tls
    assert not Settings().has_tls


def test_no_two_settings_share_a_name_in_the_environment() -> None:
    names = environment_names()
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("version", "watermark"), [("3.13", "0.4"), ("4.2", "0.6")])
def test_the_default_watermark_is_that_of_the_version(version: str, watermark: str) -> None:
    assert Settings(compat=version).resolved().vm_memory_high_watermark == watermark
    assert Settings(compat=version, vm_memory_high_watermark="0").resolved().vm_memory_high_watermark == "0"


def test_listeners_follow_from_host_port_and_further_addresses() -> None:
    assert Settings().listeners == [("localhost", 5672)]
    assert Settings(tcp=False).listeners == []
    settings = Settings(host="::", port=1, extra_listeners="127.0.0.1:2 ::1:3 :4")
    assert settings.listeners == [("::", 1), ("127.0.0.1", 2), ("::1", 3), ("::", 4)]


def test_guest_is_a_local_user_unless_it_may_log_in_from_elsewhere() -> None:
    assert Settings().local_users == {"guest"}
    assert Settings(remote_guest=True, loopback_users="guest anna").local_users == {"anna"}
    assert Settings(loopback_users="").local_users == set()


def test_anonymous_is_not_offered_without_a_user_for_it() -> None:
    assert Settings().resolved().auth_mechanisms == "PLAIN AMQPLAIN ANONYMOUS"
    assert Settings(anonymous_login_user="none").resolved().auth_mechanisms == "PLAIN AMQPLAIN"


def test_the_profile_lacks_refused_features() -> None:
    assert Settings().profile.has_global_prefetch
    assert not Settings(denied_features="global_qos").profile.has_global_prefetch
    assert Settings(denied_features="unknown").profile == Settings().profile


def test_the_profile_has_features_that_are_permitted_again() -> None:
    assert not Settings(compat="4.3").profile.has_global_prefetch
    assert Settings(compat="4.3", permitted_features="global_qos").profile.has_global_prefetch
    assert Settings(compat="4.3", permitted_features="unknown").profile == Settings(compat="4.3").profile


def test_the_representation_of_settings_has_no_secrets() -> None:
    assert "Xyzzy42" not in repr(Settings(default_pass="Xyzzy42"))
