from __future__ import annotations

import pytest

from amqp_broker.settings.sources.conf_keys import is_ignored
from amqp_broker.settings.sources.erlang_settings import from_arguments, from_config, plugins
from amqp_broker.settings.sources.erlang_terms import TermError
from amqp_broker.settings.sources.rabbitmq_conf import parts

LOOSE = "ERL_ARGS: a word behind no flag has no effect here"
ODD = "E: -rabbit has a key without a value"


def pairs(text: str) -> dict[str, str]:
    """Return the entries of rabbitmq.conf for settings of the application rabbit, which must be valid."""
    entries, wrong = from_config(f"[{{rabbit, [{text}]}}].", "f")
    assert wrong == []
    assert {entry.place for entry in entries} <= {"f"}
    return {".".join(parts(entry.key)): entry.value for entry in entries}


@pytest.mark.parametrize(
    ("term", "settings"),
    [
        ("{heartbeat, 30}", {"heartbeat": "30"}),
        ("{consumer_timeout, 5000}", {"consumer_timeout": "5000"}),
        # RabbitMQ's documented way to have none.
        ("{consumer_timeout, undefined}", {"consumer_timeout": "0"}),
        ("{consumer_timeout, false}", {"consumer_timeout": "0"}),
        ("{consumer_timeout, infinity}", {"consumer_timeout": "0"}),
        ('{default_user, <<"anna">>}', {"default_user": "anna"}),
        ("{tcp_listeners, [5673]}", {"listeners.tcp.0": "5673"}),
        (
            '{tcp_listeners, [{"127.0.0.1", 5672}, {"::1", 5673}]}',
            {"listeners.tcp.0": "127.0.0.1:5672", "listeners.tcp.1": "::1:5673"},
        ),
        ("{tcp_listeners, []}", {"listeners.tcp": "none"}),
        ("{ssl_listeners, [5671]}", {"listeners.ssl.0": "5671"}),
        (
            '{ssl_options, [{cacertfile, "/ca.pem"}, {verify, verify_peer}]}',
            {"ssl_options.cacertfile": "/ca.pem", "ssl_options.verify": "verify_peer"},
        ),
        ("{loopback_users, []}", {"loopback_users": "none"}),
        ('{loopback_users, [<<"anna.b">>]}', {"loopback_users.anna.b": "true"}),
        ("{default_user_tags, [monitoring]}", {"default_user_tags.monitoring": "true"}),
        (
            '{default_permissions, [<<".*">>, <<"^x">>, <<"y">>]}',
            {
                "default_permissions.configure": ".*",
                "default_permissions.read": "^x",
                "default_permissions.write": "y",
            },
        ),
        ("{auth_mechanisms, ['PLAIN', 'EXTERNAL']}", {"auth_mechanisms.0": "PLAIN", "auth_mechanisms.1": "EXTERNAL"}),
        ("{ssl_options, [{versions, ['tlsv1.3']}]}", {"ssl_options.versions.0": "tlsv1.3"}),
        (
            "{auth_backends, [rabbit_auth_backend_ldap, rabbit_auth_backend_internal]}",
            {"auth_backends.0": "rabbit_auth_backend_ldap", "auth_backends.1": "rabbit_auth_backend_internal"},
        ),
        (
            "{permit_deprecated_features, #{global_qos => false, transient_nonexcl_queues => true}}",
            {
                "deprecated_features.permit.global_qos": "false",
                "deprecated_features.permit.transient_nonexcl_queues": "true",
            },
        ),
        ("{log, [{file, [{enabled, true}, {level, info}]}]}", {"log.file.level": "info"}),
        ("{msg_store_credit_disc_bound, {4000, 800}}", {"msg_store_credit_disc_bound": ""}),
        ("{vm_memory_high_watermark, 0.4}", {"vm_memory_high_watermark.relative": "0.4"}),
        ("{vm_memory_high_watermark, {absolute, 1000000}}", {"vm_memory_high_watermark.absolute": "1000000"}),
        ("{disk_free_limit, 2147483648}", {"disk_free_limit.absolute": "2147483648"}),
        ("{disk_free_limit, {mem_relative, 1.5}}", {"disk_free_limit.relative": "1.5"}),
        ("{default_consumer_prefetch, {false, 250}}", {"default_consumer_prefetch": "250"}),
        (
            "{log, [{console, [{enabled, true}, {level, debug}]}]}",
            {"log.console": "true", "log.console.level": "debug"},
        ),
        ('{log, [{file, [{file, "/x.log"}]}]}', {"log.file": "/x.log"}),
        ("{log_levels, [{default, error}]}", {"log.default.level": "error"}),
    ],
)
def test_a_term_becomes_an_entry_of_rabbitmq_conf(term: str, settings: dict[str, str]) -> None:
    assert pairs(term) == settings


@pytest.mark.parametrize("name", ["listener", "tcp_config"])
def test_the_port_of_the_http_api_is_in_a_table(name: str) -> None:
    entries, wrong = from_config(f"[{{rabbitmq_management, [{{{name}, [{{port, 1}}]}}]}}].", "f")
    assert [(entry.key, entry.value) for entry in entries] in (
        [("management.tcp.port", "1")],
        [("management.listener.port", "1")],
    )
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[{rabbit, [{heartbeat 30}]}].", "f: line 1: this is not an Erlang term"),
        ("{rabbit, []}.", "f: this is not a list of applications and their settings"),
        ("[rabbit].", "f: this is not a list of applications and their settings"),
        ("[{rabbit, true}].", "f: the settings of rabbit are not pairs"),
        ("[{kernel, [{x, 1}]}].", "f: settings of kernel have no effect here"),
        ("[{rabbit, [{default_vhost, {[a], b}}]}].", "f: default_vhost has no effect here"),
    ],
)
def test_terms_without_an_equivalent_are_reported(text: str, wrong: str) -> None:
    entries, [notice] = from_config(text, "f")
    assert (entries, notice.text) == ([], wrong)


def test_the_settings_of_other_applications_are_no_mistake() -> None:
    _, notices = from_config("[{kernel, []}, {rabbit, [{default_vhost, {[a], b}}]}].", "f")
    assert [notice.is_wrong for notice in notices] == [False, True]


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        ("-rabbit disk_free_limit 2147483648", {"disk_free_limit.absolute": "2147483648"}),
        ("-rabbit heartbeat 5 channel_max 7", {"heartbeat": "5", "channel_max": "7"}),
        (
            "-rabbit log_levels [{connection,error},{default,error}] -rabbit heartbeat 5",
            {"log.connection.level": "error", "log.default.level": "error", "heartbeat": "5"},
        ),
        # RabbitMQ's script expands the variable without quotation marks, so these are of the term.
        ('-rabbitmq_management load_definitions "/x.json"', {"management.load_definitions": "/x.json"}),
        ("-rabbitmq_management load_definitions '/x.json'", {"management.load_definitions": "/x.json"}),
        ('-rabbit default_user "anna" default_pass "Se#cret"', {"default_user": "anna", "default_pass": "Se#cret"}),
        ('-rabbit default_user <<"anna">>', {"default_user": "anna"}),
        ('-rabbit vm_memory_high_watermark {absolute,"2GB"}', {"vm_memory_high_watermark.absolute": "2GB"}),
        ("-rabbit log [{console,[{level,debug}]}]", {"log.console.level": "debug"}),
        (
            '-rabbitmq_management load_definitions "/x.json" -rabbit heartbeat 5\n\t-rabbitmq_management'
            " listener [{port,1}]",
            {"management.load_definitions": "/x.json", "heartbeat": "5", "management.listener.port": "1"},
        ),
        # Of two groups the first counts, and of two values in a group the last.
        ("-rabbit heartbeat 1 heartbeat 2 -rabbit heartbeat 3", {"heartbeat": "2"}),
        ("-rabbit heartbeat 5 -- channel_max 7", {"heartbeat": "5"}),
        ("-rabbit heartbeat 5 -extra -rabbit channel_max 7", {"heartbeat": "5"}),
    ],
)
def test_arguments_of_the_virtual_machine_become_entries(arguments: str, settings: dict[str, str]) -> None:
    entries, wrong = from_arguments(arguments, "ERL_ARGS")
    assert {entry.key: entry.value for entry in entries} == settings
    assert wrong == ([LOOSE] if " -- " in arguments else [])


def test_a_flag_of_the_emulator_amid_a_group_does_not_end_it() -> None:
    entries, wrong = from_arguments("-rabbit heartbeat 5 +S 1:1 channel_max 7 +sbwt none", "E")
    assert {entry.key: entry.value for entry in entries} == {"heartbeat": "5", "channel_max": "7"}
    assert wrong == ["E: +S has no effect here", "E: +sbwt has no effect here"]


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ("+S 2:2 -setcookie secret", ["E: +S has no effect here", "E: -setcookie has no effect here"]),
        ("-kernel inet_dist_listen_min 1", ["E: -kernel has no effect here"]),
        ("-rabbit heartbeat", ["E: -rabbit has a key without a value"]),
        ("-rabbit default_pass Se#cret", ["E: the value of default_pass is not an Erlang term"]),
        ("-rabbit 'x", ["E: -rabbit has a key without a value"]),
        ("-rabbit default_user 'x", ["E: the value of default_user is not an Erlang term"]),
        # At RabbitMQ, too, neither is a term: a backslash before a quotation mark, and a term with a space.
        ('-rabbit default_user \\"anna\\"', ["E: the value of default_user is not an Erlang term"]),
        ("-rabbit log [{console, [{level,debug}]}]", [ODD, "E: the value of log is not an Erlang term"]),
        ("-rabbit heartbeat 5.", ["E: the value of heartbeat is not an Erlang term"]),
        ("rabbit heartbeat 5", ["E: a word behind no flag has no effect here"]),
    ],
)
def test_other_arguments_are_reported_without_their_values(arguments: str, wrong: list[str]) -> None:
    assert from_arguments(arguments, "E") == ([], wrong)


def test_plugins_are_a_list_of_names() -> None:
    assert plugins("[rabbitmq_management,\n rabbitmq_shovel].\n") == ["rabbitmq_management", "rabbitmq_shovel"]


@pytest.mark.parametrize("text", ["rabbitmq_management.", "[1].", "[a", ""])
def test_other_terms_are_not_a_list_of_plugins(text: str) -> None:
    with pytest.raises(TermError):
        plugins(text)


def test_a_term_that_is_no_setting_does_not_lose_the_others() -> None:
    text = """[{rabbit, [
        {heartbeat, 16#1E}, {a, #{x => 1}}, {b, <<"\u00fc"/utf8>>}, {c, $a}, {d, [1|2]}, {e, fun m:f/2},
        {channel_max, 1_000}, {default_user, "an" "na"}
    ]}]."""
    entries, notices = from_config(text, "f")
    found = {entry.key: entry.value for entry in entries}
    assert (found["heartbeat"], found["channel_max"], found["default_user"]) == ("30", "1000", "anna")
    # They become keys without a value, which are reported like others without an effect.
    assert [key for key, value in found.items() if value == ""] == ["a", "d", "e"]
    assert notices == []


@pytest.mark.parametrize("key", ["num_tcp_acceptors", "fhc_read_buffering", "credit_flow_default_credit"])
def test_keys_that_only_terms_have_are_ignored(key: str) -> None:
    [entry], wrong = from_config(f"[{{rabbit, [{{{key}, {{1, 2}}}}]}}].", "f")
    assert wrong == []
    assert is_ignored(entry)


def test_defaults_of_static_shovels_are_ignored_as_in_rabbitmq() -> None:
    entries, wrong = from_config("[{rabbitmq_shovel, [{defaults, [{prefetch_count, 7}, {ack_mode, no_ack}]}]}].", "f")
    assert wrong == []
    assert all(is_ignored(entry) for entry in entries)
