"""Settings as variables of RabbitMQ's applications."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from amqp_broker.cli.rabbitmq.formatters import erlang
from amqp_broker.settings.settings import SETTINGS, Settings
from amqp_broker.settings.sources.conf_keys import settings_of
from amqp_broker.settings.sources.erlang_settings import from_config
from tests.cli.status_of_node import diagnose


def values(**changed: Any) -> dict[str, Any]:
    settings = replace(Settings(), **changed).resolved()
    return {one.name: getattr(settings, one.name) for one in SETTINGS if not one.is_secret}


def shown(**changed: Any) -> str:
    return diagnose("-q environment", settings=values(**changed))[0]


# As RabbitMQ 4.3.6 prints them.
@pytest.mark.parametrize(
    "term",
    [
        "{consumer_timeout,1800000}",
        "{heartbeat,60}",
        "{auth_mechanisms,['PLAIN','AMQPLAIN','ANONYMOUS']}",
        "{default_consumer_prefetch,{false,0}}",
        '{default_permissions,[<<".*">>,<<".*">>,<<".*">>]}',
        "{default_user_tags,[administrator]}",
        '{default_vhost,<<"/">>}',
        "{disk_free_limit,50000000}",
        '{loopback_users,[<<"guest">>]}',
        "{max_message_size,16777216}",
        "{ssl_cert_login_from,distinguished_name}",
        "{ssl_listeners,[]}",
        "{vm_memory_high_watermark,0.6}",
    ],
)
def test_the_environment_has_names_and_terms_of_rabbitmq(term: str) -> None:
    assert term in shown(compat="4.3")


@pytest.mark.parametrize("variable", ["default_queue_type", "default_limits", "default_policies"])
def test_the_environment_lacks_variables_that_rabbitmq_has_only_if_they_are_configured(variable: str) -> None:
    assert variable not in shown(compat="4.3")


# As RabbitMQ 4.3.6 prints them with these settings in rabbitmq.conf.
@pytest.mark.parametrize(
    ("changed", "term"),
    [
        ({"vm_memory_high_watermark": "2GB"}, '{vm_memory_high_watermark,{absolute,"2GB"}}'),
        ({"vm_memory_high_watermark": "0.3"}, "{vm_memory_high_watermark,0.3}"),
        ({"disk_free_limit": "60MB"}, '{disk_free_limit,"60MB"}'),
        ({"disk_free_limit": "1.5"}, "{disk_free_limit,{mem_relative,1.5}}"),
        ({"default_queue_type": "quorum"}, "{default_queue_type,rabbit_quorum_queue}"),
        (
            {"default_limits": '{"1": {"max_queues": 2, "pattern": "^h"}}'},
            '{default_limits,[{vhosts,[{<<"1">>,[{<<"max_queues">>,2},{<<"pattern">>,"^h"}]}]}]}',
        ),
        (
            {"default_policies": '{"a": {"expires": 5, "queue_pattern": "^q", "vhost_pattern": "^h"}}'},
            '{default_policies,[{operator,[{<<"a">>,[{<<"expires">>,5},{<<"queue_pattern">>,<<"^q">>},'
            '{<<"vhost_pattern">>,"^h"}]}]}]}',
        ),
        ({}, "{ssl_options,[]}"),
        ({"tls_versions": "tlsv1.3 tlsv1.2"}, "{ssl_options,[{versions,['tlsv1.2','tlsv1.3']}]}"),
        ({"tls_verify_peer": True}, "{ssl_options,[{verify,verify_peer}]}"),
        ({"cluster_name": "harbour"}, '{cluster_name,"harbour"}'),
        ({"management_path_prefix": "/mq"}, '{path_prefix,"/mq"}'),
    ],
)
def test_changed_settings_have_terms_of_rabbitmq(changed: dict[str, str], term: str) -> None:
    # Long terms are on several lines.
    assert term in "".join(shown(compat="4.3", **changed).split())


def test_settings_of_plugins_are_variables_of_their_applications() -> None:
    text = shown(management_host="127.0.0.1", management_port=15672)
    assert '{rabbitmq_management,[{tcp_config,[{ip,"127.0.0.1"},{port,15672}]}]}' in text
    assert "{return_per_object_metrics,false}" in text


def test_settings_that_rabbitmq_lacks_are_of_another_application() -> None:
    assert shown().startswith("[{amqp_broker,[{always_create_default_user,false},")


@pytest.mark.parametrize(
    "changed",
    [
        {"host": "127.0.0.1", "extra_listeners": "10.0.0.1:5673", "tls_port": 5671, "tls_cert_file": "/c.pem"},
        {"tls_verify_peer": True, "management_tls_port": 15671, "management_tls_key_file": "/k.pem"},
        {"tls_versions": "tlsv1.3 tlsv1.2", "management_tls_versions": "tlsv1.2", "management_tls_port": 15671},
        {"default_limits": '{"1.a": {"max_queues": 2, "pattern": "^h"}}'},
        {"default_policies": '{"a": {"expires": 5, "queue_pattern": "^q", "vhost_pattern": "^h"}}'},
        {"password_hashing_module": "rabbit_password_hashing_sha512"},
        {"default_permissions_configure": "c", "default_permissions_write": "w", "default_permissions_read": "r"},
        {"disk_free_limit": "1.5", "vm_memory_high_watermark": "2GB", "default_queue_type": "quorum"},
        {"loopback_users": "", "default_user_tags": "", "consumer_timeout_ms": 0, "connection_max": 7},
        {"log_level": "warning", "log_file": "/l.log", "management_path_prefix": "/x", "cluster_name": "corner"},
    ],
)
def test_the_environment_read_as_advanced_config_gives_the_same_settings(changed: dict[str, Any]) -> None:
    given, wrong = settings_of(from_config(shown(**changed), "environment")[0])
    assert [notice for notice in wrong if notice.is_wrong] == []
    assert {name: given[name].value for name in changed} == changed


def test_a_text_of_characters_is_no_binary() -> None:
    assert '{load_definitions,"/d.json"}' in shown(definitions="/d.json")
    assert erlang("") == "<<>>"
