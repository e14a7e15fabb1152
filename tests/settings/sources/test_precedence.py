from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from amqp_broker.settings.settings import SETTINGS, Settings, SettingsError
from amqp_broker.settings.sources.conf_keys import Notice
from amqp_broker.settings.sources.precedence import BOTH_FORMATS, load

ERL_ARGS = "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"


def settings(given: dict[str, Any], environment: dict[str, str]) -> Settings:
    return load(given, environment).settings


def write(path: Path, text: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    return str(path)


def test_without_settings_the_defaults_hold() -> None:
    loaded = load({}, {})
    assert (loaded.settings, loaded.places, loaded.notices) == (Settings(), {}, [])


# Which comes first


def test_the_command_line_comes_before_the_environment() -> None:
    assert settings({"port": 1}, {"AMQP_BROKER_PORT": "2"}).port == 1


def test_the_environment_counts_where_the_command_line_gives_nothing() -> None:
    assert settings({"port": None}, {"AMQP_BROKER_PORT": "2"}).port == 2


def test_a_falsy_value_on_the_command_line_is_a_value() -> None:
    assert settings({"port": 0}, {"AMQP_BROKER_PORT": "2"}).port == 0


def test_a_variable_of_this_broker_comes_before_rabbitmqs() -> None:
    assert settings({}, {"RABBITMQ_NODE_PORT": "3", "AMQP_BROKER_PORT": "2"}).port == 2


def test_the_environment_comes_before_files(tmp_path: Path) -> None:
    file = write(tmp_path / "x.conf", "heartbeat = 5\nchannel_max = 6")
    loaded = load({"config_file": file}, {"AMQP_BROKER_HEARTBEAT_S": "7"})
    assert (loaded.settings.heartbeat_s, loaded.settings.channel_max) == (7, 6)
    assert loaded.places == {
        "config_file": "--config",
        "heartbeat_s": "AMQP_BROKER_HEARTBEAT_S",
        "channel_max": f"{file}:2",
    }


def test_arguments_of_erlang_come_before_files_and_after_other_variables(tmp_path: Path) -> None:
    # RabbitMQ 3.10.8 has them before rabbitmq.conf, too.
    file = write(tmp_path / "x.conf", "heartbeat = 5\nchannel_max = 6\nframe_max = 8192")
    environment = {
        ERL_ARGS: "-rabbit heartbeat 8 channel_max 9",
        "AMQP_BROKER_CHANNEL_MAX": "10",
        "RABBITMQ_CONFIG_FILE": file,
    }
    loaded = settings({}, environment)
    assert (loaded.heartbeat_s, loaded.channel_max, loaded.frame_max) == (8, 10, 8192)


def test_further_files_override_the_main_one_in_the_order_of_their_names(tmp_path: Path) -> None:
    # As RabbitMQ 3.10.8 does, where the last counts.
    main = write(tmp_path / "rabbitmq.conf", "heartbeat = 5\nchannel_max = 5\nframe_max = 5000")
    write(tmp_path / "conf.d" / "20-b.conf", "heartbeat = 22")
    write(tmp_path / "conf.d" / "10-a.conf", "heartbeat = 11\nchannel_max = 10")
    write(tmp_path / "conf.d" / "30-c.conf.bak", "heartbeat = 33")
    folder = str(tmp_path / "conf.d")
    for further in (folder, f"{folder}/*.conf"):
        loaded = settings({}, {"RABBITMQ_CONFIG_FILE": main, "RABBITMQ_CONFIG_FILES": further})
        assert (loaded.heartbeat_s, loaded.channel_max, loaded.frame_max) == (22, 10, 5000)


def test_advanced_config_comes_before_rabbitmq_conf(tmp_path: Path) -> None:
    main = write(tmp_path / "rabbitmq.conf", "heartbeat = 5\nchannel_max = 5")
    advanced = write(tmp_path / "advanced.config", "[{rabbit, [{heartbeat, 6}]}].")
    for name in (advanced, advanced.removesuffix(".config")):
        loaded = settings({"config_file": main}, {"RABBITMQ_ADVANCED_CONFIG_FILE": name})
        assert (loaded.heartbeat_s, loaded.channel_max) == (6, 5)


def test_the_files_of_the_configuration_are_listed_in_rabbitmqs_order(tmp_path: Path) -> None:
    main, advanced = write(tmp_path / "rabbitmq.conf", ""), write(tmp_path / "advanced.config", "[].")
    (tmp_path / "conf.d").mkdir()
    first, second = (write(tmp_path / "conf.d" / name, "heartbeat = 7") for name in ("10.conf", "20.conf"))
    environment = {
        "RABBITMQ_CONFIG_FILE": main.removesuffix(".conf"),
        "RABBITMQ_CONFIG_FILES": str(tmp_path / "conf.d"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": advanced,
    }
    assert load({}, environment).files == (advanced, main, first, second)
    assert load({}, {"RABBITMQ_CONFIG_FILE": str(tmp_path / "missing")}).files == ()


def test_a_given_port_replaces_the_listeners_of_files(tmp_path: Path) -> None:
    file = write(tmp_path / "x.conf", "listeners.tcp.1 = 127.0.0.1:5672\nlisteners.tcp.2 = 127.0.0.1:5673")
    assert settings({"config_file": file}, {}).listeners == [("127.0.0.1", 5672), ("127.0.0.1", 5673)]
    assert settings({"config_file": file, "port": 0}, {}).listeners == [("127.0.0.1", 0)]


# The environment


def test_variables_of_other_programs_are_ignored() -> None:
    assert settings({}, {"PORT": "2", "AMQP_BROKER_UNKNOWN": "x", "RABBITMQ_ERLANG_COOKIE": "x"}) == Settings()


def test_every_setting_has_a_name_in_the_environment() -> None:
    for declared in SETTINGS:
        assert declared.environment[0] == f"AMQP_BROKER_{declared.name.upper()}"


@pytest.mark.parametrize(
    ("name", "text", "setting", "value"),
    [
        ("RABBITMQ_DEFAULT_USER", "anna", "default_user", "anna"),
        ("RABBITMQ_DEFAULT_PASS", "secret", "default_pass", "secret"),
        ("RABBITMQ_DEFAULT_VHOST", "test", "default_vhost", "test"),
        ("RABBITMQ_NODE_IP_ADDRESS", "::", "host", "::"),
        ("RABBITMQ_NODE_PORT", "5673", "port", 5673),
        ("RABBITMQ_NODE_PORT_NUMBER", "5673", "port", 5673),
        ("RABBITMQ_MANAGEMENT_PORT_NUMBER", "1", "management_port", 1),
        ("RABBITMQ_NODENAME", "a@b", "node_name", "a@b"),
        ("RABBITMQ_MNESIA_DIR", "/m", "data_dir", "/m"),
        ("RABBITMQ_VM_MEMORY_HIGH_WATERMARK", "40%", "vm_memory_high_watermark", "40%"),
        ("RABBITMQ_LOGS", "/x.log", "log_file", "/x.log"),
        ("RABBITMQ_LOGS", "-", "log_file", ""),
        ("RABBITMQ_LOG_BASE", "/logs", "log_dir", "/logs"),
        ("RABBITMQ_LOG", "debug", "log_level", "debug"),
        ("RABBITMQ_LOG", "connection=error,warning,+color", "log_level", "warning"),
        ("AMQP_BROKER_DEFINITIONS", '{"users": []}', "definitions", '{"users": []}'),
        ("AMQP_BROKER_DEFINITIONS", "/d.json", "definitions", "/d.json"),
        ("AMQP_BROKER_ALWAYS_CREATE_DEFAULT_USER", "1", "always_create_default_user", True),
        (ERL_ARGS, '-rabbitmq_management load_definitions "/d.json"', "definitions", "/d.json"),
        (ERL_ARGS, "-rabbit disk_free_limit 2147483648", "disk_free_limit", "2147483648B"),
        (ERL_ARGS, "-rabbit log_levels [{connection,error},{default,error}]", "log_level", "error"),
    ],
)
def test_variables_of_rabbitmq_and_of_its_images_work(name: str, text: str, setting: str, value: Any) -> None:
    loaded = load({}, {name: text})
    assert getattr(loaded.settings, setting) == value
    assert loaded.notices == []


@pytest.mark.parametrize(
    ("name", "text", "setting", "value"),
    [
        ("RABBITMQ_SSL_CACERTFILE", "/ca", "tls_ca_file", "/ca"),
        ("RABBITMQ_SSL_CERTFILE", "/c", "tls_cert_file", "/c"),
        ("RABBITMQ_SSL_KEYFILE", "/k", "tls_key_file", "/k"),
        ("RABBITMQ_SSL_VERIFY", "verify_peer", "tls_verify_peer", True),
        ("RABBITMQ_SSL_FAIL_IF_NO_PEER_CERT", "true", "tls_require_peer_cert", True),
        ("RABBITMQ_SSL_DEPTH", "1", "tls_port", None),
        ("RABBITMQ_MANAGEMENT_SSL_CERTFILE", "/c", "management_tls_cert_file", "/c"),
    ],
)
def test_variables_that_rabbitmqs_image_refuses_have_their_effect_and_a_warning(
    name: str, text: str, setting: str, value: Any
) -> None:
    loaded = load({}, {name: text})
    assert getattr(loaded.settings, setting) == value
    assert loaded.notices == [
        Notice(f"{name} has its effect here, but RabbitMQ's image refuses it: use rabbitmq.conf instead")
    ]


@pytest.mark.parametrize("name", ["RABBITMQ_DEFAULT_USER", "RABBITMQ_NODE_PORT", "RABBITMQ_CONFIG_FILE", ERL_ARGS])
def test_a_variable_of_rabbitmq_that_is_empty_is_not_set(name: str) -> None:
    assert settings({}, {name: ""}) == Settings()


def test_a_store_may_be_one_of_several_nodes_in_a_folder() -> None:
    assert settings({}, {"RABBITMQ_MNESIA_BASE": "/m", "RABBITMQ_NODENAME": "a@b"}).data_dir == "/m/a@b"
    assert settings({}, {"RABBITMQ_MNESIA_BASE": "/m", "RABBITMQ_MNESIA_DIR": "/n"}).data_dir == "/n"


def test_a_name_or_password_may_be_in_a_file(tmp_path: Path) -> None:
    environment = {
        "RABBITMQ_DEFAULT_USER_FILE": write(tmp_path / "user", "anna\n"),
        "RABBITMQ_DEFAULT_PASS_FILE": write(tmp_path / "pass", " se cret \n"),
    }
    loaded = settings({}, environment)
    assert (loaded.default_user, loaded.default_pass) == ("anna", " se cret ")


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("1", True), ("YES", True), ("false", False), ("0", False), ("no", False), ("", False)],
)
def test_a_switch_in_the_environment_has_several_spellings(text: str, value: bool) -> None:
    assert settings({}, {"AMQP_BROKER_REMOTE_GUEST": text}).remote_guest is value


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"RABBITMQ_NODE_PORT": "amqp"}, "RABBITMQ_NODE_PORT is 'amqp', which is not a whole number"),
        ({"AMQP_BROKER_CONNECTION_MAX": ""}, "AMQP_BROKER_CONNECTION_MAX is '', which is not a whole number"),
        ({"AMQP_BROKER_EPHEMERAL": "maybe"}, "AMQP_BROKER_EPHEMERAL is 'maybe', which is neither true nor false"),
        ({"AMQP_BROKER_PORT": "65536"}, "AMQP_BROKER_PORT is '65536', which is not between 0 and 65535"),
        ({"AMQP_BROKER_PORT": "-1"}, "AMQP_BROKER_PORT is '-1', which is not between 0 and 65535"),
        (
            {"RABBITMQ_VM_MEMORY_HIGH_WATERMARK": "much"},
            "RABBITMQ_VM_MEMORY_HIGH_WATERMARK is 'much', which is not an amount like 2GB",
        ),
        (
            {"AMQP_BROKER_LOG_LEVEL": "x"},
            "AMQP_BROKER_LOG_LEVEL is 'x', which is not one of debug, info, warning, error",
        ),
        ({"AMQP_BROKER_COMPAT": "5"}, "AMQP_BROKER_COMPAT is '5', which is not one of 3.13, 4.0, 4.2, 4.3"),
        (
            {"RABBITMQ_DEFAULT_PASS_FILE": "/no/such"},
            "RABBITMQ_DEFAULT_PASS_FILE: cannot read '/no/such': No such file or directory",
        ),
    ],
)
def test_an_invalid_value_is_refused_with_the_name_of_its_setting(environment: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load({}, environment)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"port": 70000}, "--port is '70000', which is not between 0 and 65535"),
        ({"log_level": "loud"}, "--log-level is 'loud', which is not one of debug, info, warning, error"),
    ],
)
def test_values_from_the_command_line_are_checked(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(given, {})
    assert str(caught.value) == message


# Files


def test_only_named_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "rabbitmq.conf", "heartbeat = 5")
    write(tmp_path / "enabled_plugins", "[].")
    monkeypatch.chdir(tmp_path)
    assert settings({}, {"HOME": str(tmp_path)}) == Settings()


def test_rabbitmqs_variable_may_omit_the_suffix(tmp_path: Path) -> None:
    write(tmp_path / "rabbitmq.conf", "heartbeat = 5")
    for name in ("rabbitmq", "rabbitmq.conf"):
        assert settings({}, {"RABBITMQ_CONFIG_FILE": str(tmp_path / name)}).heartbeat_s == 5


@pytest.mark.parametrize("name", ["settings", "settings.ini"])
@pytest.mark.parametrize("text", ["heartbeat = 5", "% old\n [{rabbit, [{heartbeat, 5}]}]."])
def test_a_file_with_another_suffix_may_have_either_format(tmp_path: Path, name: str, text: str) -> None:
    assert settings({}, {"RABBITMQ_CONFIG_FILE": write(tmp_path / name, text)}).heartbeat_s == 5


def test_a_file_of_the_old_format_replaces_that_of_the_new(tmp_path: Path) -> None:
    old = write(tmp_path / "rabbitmq.config", "[{rabbit, [{heartbeat, 5}]}].")
    further = write(tmp_path / "10.conf", "channel_max = 7\nheartbeat = 8")
    environment = {"RABBITMQ_CONFIG_FILE": str(tmp_path / "rabbitmq"), "RABBITMQ_CONFIG_FILES": further}
    new = write(tmp_path / "rabbitmq.conf", "heartbeat = 6\nframe_max = 8192")
    loaded = load({}, environment)
    assert (loaded.settings.heartbeat_s, loaded.settings.channel_max, loaded.settings.frame_max) == (5, 7, 131072)
    assert loaded.notices == [Notice(BOTH_FORMATS.format(old), is_wrong=False)]
    assert load({}, {"RABBITMQ_CONFIG_FILE": new}).settings.heartbeat_s == 6


def test_beside_a_file_of_the_old_format_advanced_config_is_not_read(tmp_path: Path) -> None:
    old = write(tmp_path / "rabbitmq.config", "[{rabbit, [{heartbeat, 5}]}].")
    advanced = write(tmp_path / "advanced.config", "[{rabbit, [{channel_max, 7}]}].")
    for name in (old, old.removesuffix(".config")):
        loaded = load({}, {"RABBITMQ_CONFIG_FILE": name, "RABBITMQ_ADVANCED_CONFIG_FILE": advanced})
        assert (loaded.settings.heartbeat_s, loaded.settings.channel_max) == (5, 2047)
        assert loaded.notices == [Notice(f"{advanced} is not read, because {old} has its format", is_wrong=False)]


def test_a_folder_stands_for_the_files_in_it(tmp_path: Path) -> None:
    write(tmp_path / "a.conf", "heartbeat = 5")
    write(tmp_path / "b.conf", "channel_max = 6")
    loaded = settings({"config_file": str(tmp_path)}, {})
    assert (loaded.heartbeat_s, loaded.channel_max) == (5, 6)


def test_a_file_of_erlang_terms_is_recognised(tmp_path: Path) -> None:
    file = write(tmp_path / "rabbitmq.config", "[{rabbit, [{heartbeat, 5}]}].")
    assert settings({"config_file": file}, {}).heartbeat_s == 5


def test_a_file_of_the_command_line_must_exist(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"^--config: there is no file '/no/such\.conf'$"):
        load({"config_file": "/no/such.conf"}, {})


@pytest.mark.parametrize("name", ["RABBITMQ_CONFIG_FILE", "RABBITMQ_CONFIG_FILES", "RABBITMQ_ADVANCED_CONFIG_FILE"])
def test_a_file_of_rabbitmqs_variables_need_not_exist(name: str) -> None:
    loaded = load({}, {name: "/no/such"})
    assert loaded.notices == [Notice(f"{name}: there is no file '/no/such'", is_wrong=False)]


def test_variables_that_mean_nothing_here_are_named() -> None:
    notice = Notice("RABBITMQ_ERLANG_COOKIE has no effect here", is_wrong=False)
    assert load({}, {"RABBITMQ_ERLANG_COOKIE": "x", "RABBITMQ_DIST_PORT": ""}).notices == [notice]


def test_an_impossible_file_name_is_refused() -> None:
    name = "x" * 300
    with pytest.raises(SettingsError, match=f"^--config: cannot read '{name}': File name too long$"):
        load({"config_file": name}, {})


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.conf"
    file.write_bytes(b"a = \xff\n")
    with pytest.raises(SettingsError, match=f"^--config: '{file}' is not a text file in UTF-8$"):
        load({"config_file": str(file)}, {})


def test_errors_in_files_are_reported_and_refused_only_with_strict_config(tmp_path: Path) -> None:
    file = write(tmp_path / "x.conf", "heartbeat = x\nnonsense\nfoo = 1\nmqtt.vhost = /\nchannel_max = 7")
    loaded = load({"config_file": file}, {})
    assert loaded.settings.channel_max == 7
    assert sorted(loaded.wrong) == [
        f"{file}:1: heartbeat is 'x', which is not a whole number",
        f"{file}:2: the line is not `key = value`",
        f"{file}:3: unknown key 'foo'",
    ]
    loaded.check_strict()
    strict = load({"config_file": file, "strict_config": True}, {})
    with pytest.raises(SettingsError) as caught:
        strict.check_strict()
    assert str(caught.value).splitlines() == loaded.wrong


def test_no_notice_shows_a_secret(tmp_path: Path) -> None:
    secret = "Xyzzy42"
    file = write(
        tmp_path / "x.conf",
        f"default_pass {secret}\ndefault_pas = {secret}\nssl_options.password = {secret}\n"
        f"anonymous_login_pass = {secret}\nauth_ldap.dn_lookup_bind.password = {secret}",
    )
    advanced = write(tmp_path / "a.config", f'[{{rabbit, [{{ldap, {{x, "{secret}"}}}}, {{default_pass, {secret}}}]}}].')
    environment = {
        "RABBITMQ_ADVANCED_CONFIG_FILE": advanced,
        ERL_ARGS: f"-setcookie {secret} -rabbit default_pass {secret}",
    }
    loaded = load({"config_file": file}, environment)
    assert len(loaded.notices) >= 5
    assert not any(secret in notice.text for notice in loaded.notices)


def test_options_are_named_after_their_settings_except_for_files() -> None:
    other = {
        declared.name: declared.options
        for declared in SETTINGS
        if declared.options and declared.options[-1].partition("/")[0] != f"--{declared.name.replace('_', '-')}"
    }
    assert other == {"config_file": ("-c", "--config"), "enabled_plugins_file": ("--enabled-plugins",)}


def test_random_files_give_valid_settings(tmp_path: Path) -> None:
    dice = random.Random(1)
    keys = [key.replace("*", "x") for declared in SETTINGS for key in declared.keys]
    texts = ["true", "none", "-1", "1.5", "9" * 30, "infinity", "5672", "::1:1", ":", "'", "1KB", "\\", "٣", "(", "#"]
    terms = ["[", "]", "{", "}", ",", ".", "<<", ">>", "rabbit", '"x"', "1", "log", "tcp_listeners", "[{port,1}]"]
    for _ in range(300):
        lines = [f"{dice.choice(keys)} = {dice.choice(texts)}" for _ in range(10)]
        inner = "".join(dice.choices(terms, k=6))
        advanced = dice.choice([inner, f"[{{rabbit,[{{{dice.choice(terms)},{inner}}}]}}]."])
        write(tmp_path / "x.conf", "\n".join(lines))
        write(tmp_path / "x.config", advanced)
        environment = {
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(tmp_path / "x.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(tmp_path / "x.config"),
            ERL_ARGS: " ".join(["-rabbit", *dice.choices(terms, k=4)]),
        }
        loaded = settings({"config_file": str(tmp_path / "x.conf")}, environment)
        loaded.check()
        assert loaded.listeners is not None


def test_a_value_of_a_file_may_refer_to_the_environment(tmp_path: Path) -> None:
    text = "default_user = $(SEED_USER)\ndefault_pass = $(SEED_PASSWORD)\nheartbeat = 7\n"
    file = write(tmp_path / "rabbitmq.conf", text)
    loaded = load({"config_file": file}, {"SEED_USER": "anna"})
    assert (loaded.settings.default_user, loaded.settings.heartbeat_s) == ("anna", 7)
    assert loaded.wrong == [
        f"{file}:2: default_pass refers to 'SEED_PASSWORD', which is neither a key nor a variable of the environment"
    ]


@pytest.mark.parametrize("name", ["RABBITMQ_USER", "RABBITMQ_USERNAME", "RABBITMQ_PASSWORD", "RABBITMQ_VHOST"])
def test_variables_of_clients_change_nothing(name: str) -> None:
    """Scripts set them for their clients, and RabbitMQ's image ignores them."""
    assert load({}, {name: "theirs"}) == load({}, {})
