from __future__ import annotations

import json
from typing import Any

import pytest

from amqp_broker.settings.sources.conf_keys import Notice, settings_of
from amqp_broker.settings.sources.rabbitmq_conf import parse


def read(text: str) -> tuple[dict[str, Any], list[Notice]]:
    """Return the settings of a file called `f`, and the notices about them."""
    entries, wrong = parse(text, "f")
    assert wrong == []
    given, notices = settings_of(entries)
    return {name: value for name, (value, _) in given.items()}, notices


def only(text: str) -> dict[str, Any]:
    settings, notices = read(text)
    assert notices == []
    return settings


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("listeners.tcp.default = 5673", {"port": 5673}),
        ("listeners.tcp.1 = 127.0.0.1:5673", {"host": "127.0.0.1", "port": 5673}),
        ("listeners.tcp.local = ::1:5673", {"host": "::1", "port": 5673}),
        ("listeners.tcp.1 = [::1]:5673", {"host": "::1", "port": 5673}),
        (
            "listeners.tcp.1 = 127.0.0.1:5673\nlisteners.tcp.2 = ::1:5674\nlisteners.tcp.3 = 5675",
            {"host": "127.0.0.1", "port": 5673, "extra_listeners": "::1:5674 :5675"},
        ),
        ("listeners.tcp = none", {"tcp": False}),
        ("listeners.ssl.default = 5671", {"tls_port": 5671}),
        ("listeners.ssl.1 = 127.0.0.1:5671", {"tls_port": 5671}),
        ("listeners.ssl = none", {}),
        (
            "ssl_options.cacertfile = /ca\nssl_options.certfile = /c\nssl_options.keyfile = /k\n"
            "ssl_options.password = p\nssl_options.verify = verify_peer\nssl_options.fail_if_no_peer_cert = true",
            {
                "tls_ca_file": "/ca",
                "tls_cert_file": "/c",
                "tls_key_file": "/k",
                "tls_key_password": "p",
                "tls_verify_peer": True,
                "tls_require_peer_cert": True,
            },
        ),
        (
            "management.ssl.port = 15671\nmanagement.ssl.certfile = /c",
            {"management_tls_port": 15671, "management_tls_cert_file": "/c", "management_tcp": False},
        ),
        (
            "management.ssl.port = 15671\nmanagement.tcp.port = 15672",
            {"management_tls_port": 15671, "management_port": 15672},
        ),
        ("max_connections = 5\nmax_channels_per_connection = 6", {"connection_max": 5, "channel_max": 6}),
        ("max_channels_per_connection = 9\nchannel_max = 8", {"channel_max": 9}),
        ("frame_max = 0", {"frame_max": 2**31 - 1}),
        ("management.tcp.port = 1\nmanagement.tcp.ip = ::1", {"management_port": 1, "management_host": "::1"}),
        ("management.listener.port = 1\nmanagement.listener.ssl = false", {"management_port": 1}),
        ("management.listener.port = 1\nmanagement.listener.ssl = true", {"management_tls_port": 1}),
        ("prometheus.tcp.port = 1\nprometheus.tcp.ip = ::1", {"prometheus_port": 1, "prometheus_host": "::1"}),
        ("loopback_users.guest = false", {"loopback_users": ""}),
        ("loopback_users.guest = true", {"loopback_users": "guest"}),
        # Named users replace guest, as in RabbitMQ 3.10.8.
        ("loopback_users.anna = true", {"loopback_users": "anna"}),
        ("loopback_users = none", {"loopback_users": ""}),
        ("default_user_tags = none", {"default_user_tags": ""}),
        ("initial_frame_max = 0", {"initial_frame_max": 0}),
        (
            "default_user_tags.administrator = false\ndefault_user_tags.monitoring = true",
            {"default_user_tags": "monitoring"},
        ),
        # RabbitMQ 3.10.8, 4.0.5 and 4.3.6 confuse reading and writing.
        ("default_permissions.read = ^x", {"default_permissions_write": "^x"}),
        ("default_permissions.write = ^x", {"default_permissions_read": "^x"}),
        ("auth_mechanisms.1 = EXTERNAL\nauth_mechanisms.2 = PLAIN", {"auth_mechanisms": "EXTERNAL PLAIN"}),
        ("ssl_options.versions.1 = tlsv1.3\nssl_options.versions.2 = tlsv1.2", {"tls_versions": "tlsv1.3 tlsv1.2"}),
        ("management.ssl.versions.1 = tlsv1.3", {"management_tls_versions": "tlsv1.3", "management_tcp": False}),
        (
            "deprecated_features.permit.global_qos = false",
            {"denied_features": "global_qos", "permitted_features": ""},
        ),
        (
            "deprecated_features.permit.global_qos = true",
            {"permitted_features": "global_qos", "denied_features": ""},
        ),
        ("deprecated_features.permit.ram_node_type = false", {"denied_features": "", "permitted_features": ""}),
        ("load_definitions = /d.json", {"definitions": "/d.json"}),
        ("management.load_definitions = /d.json", {"definitions": "/d.json"}),
        ("definitions.import_backend = local_filesystem\ndefinitions.local.path = /d", {"definitions": "/d"}),
        ("vm_memory_high_watermark.relative = 0.4", {"vm_memory_high_watermark": "0.4"}),
        ("vm_memory_high_watermark.absolute = 1GB", {"vm_memory_high_watermark": "1GB"}),
        # The relative one counts, wherever it stands.
        ("disk_free_limit.relative = 2\ndisk_free_limit.absolute = 1GB", {"disk_free_limit": "2.0"}),
        ("disk_free_limit.absolute = 1GB\ndisk_free_limit.relative = 1.5", {"disk_free_limit": "1.5"}),
        ("log.console = false", {"log_console": False}),
        ("log.console.level = debug\nlog.default.level = error", {"log_level": "debug"}),
        ("log.default.level = error", {"log_level": "error"}),
        ("log.console.formatter = json", {"log_format": "json"}),
        ("log.file.formatter = plaintext", {"log_format": "text"}),
        ("log.file = false", {"log_file": ""}),
        # RabbitMQ writes to a file of this name.
        ("log.file = true", {"log_file": "true"}),
        (
            "log.file = rabbit.log\nlog.dir = /d\nlog.file.level = warning",
            {"log_file": "rabbit.log", "log_dir": "/d", "log_file_level": "warning"},
        ),
        ("default_queue_type = quorum", {"default_queue_type": "quorum"}),
        (
            "message_interceptors.incoming.set_header_timestamp.overwrite = true",
            {"publish_time_header": "overwrite"},
        ),
        (
            "message_interceptors.incoming.set_header_routing_node.overwrite = false",
            {"publish_node_header": "keep"},
        ),
        ("default_queue_type = rabbit_quorum_queue", {"default_queue_type": "quorum"}),
        ("connection_max = infinity", {"connection_max": None}),
        ("connection_max = 3", {"connection_max": 3}),
        ("handshake_timeout = infinity", {"handshake_timeout_ms": 10**12}),
        ("frame_max = 128KB", {"frame_max": 131072}),
        ("heartbeat = 5\nheartbeat = 6", {"heartbeat_s": 6}),
    ],
)
def test_a_key_is_a_setting(text: str, settings: dict[str, Any]) -> None:
    assert only(text) == settings


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("log.console = trues", "log.console is 'trues', which is neither true nor false"),
        ("loopback_users.guest = nope", "loopback_users.guest is 'nope', which is neither true nor false"),
        ("loopback_users = all", "loopback_users is 'all', which is not one of none"),
        (
            "listeners.tcp.default = amqp",
            "listeners.tcp.default is 'amqp', which is neither a port nor an address and a port",
        ),
        (
            "listeners.tcp.1 = ::1:70000",
            "listeners.tcp.1 is '::1:70000', which is neither a port nor an address and a port",
        ),
        (
            "listeners.tcp.1 = a b:5672",
            "listeners.tcp.1 is 'a b:5672', which is neither a port nor an address and a port",
        ),
        ("listeners.tcp.1 = ::1:1 ::1:2", "listeners.tcp.1 is '::1:1 ::1:2', which is more than one address"),
        ("listeners.ssl.1 = x", "listeners.ssl.1 is 'x', which is neither a port nor an address and a port"),
        ("management.tcp.port = 70000", "management.tcp.port is '70000', which is not between 0 and 65535"),
        ("consumer_timeout = 1h", "consumer_timeout is '1h', which is not a whole number"),
        (
            "vm_memory_high_watermark.relative = 1GB",
            "vm_memory_high_watermark.relative is '1GB', which is not a number",
        ),
        ("disk_free_limit.absolute = much", "disk_free_limit.absolute is 'much', which is not an amount like 2GB"),
        ("ssl_options.verify = yes", "ssl_options.verify is 'yes', which is not one of verify_peer, verify_none"),
        ("default_queue_type = lazy", "default_queue_type is 'lazy', which is not one of classic, quorum, stream"),
    ],
)
def test_an_invalid_value_is_reported_with_its_place_and_the_default_stays(line: str, said: str) -> None:
    settings, notices = read(f"# first line\n{line}")
    assert notices == [Notice(f"f:2: {said}")]
    assert {name for name in settings if settings[name]} == set()


def test_a_valid_value_counts_beside_an_invalid_one() -> None:
    settings, notices = read("listeners.tcp.1 = x\nlisteners.tcp.2 = 5673\nheartbeat = x\nchannel_max = 7")
    assert settings == {"port": 5673, "channel_max": 7}
    assert len(notices) == 2


@pytest.mark.parametrize("key", ["heartbaet", "log.consle", "loopback", "listeners.foo", "log.console.foo", "x"])
def test_an_unknown_key_is_reported(key: str) -> None:
    assert read(f"{key} = secret") == ({}, [Notice(f"f:1: unknown key '{key}'")])


def test_default_users_are_one_setting() -> None:
    text = "default_users.anna.password = x\ndefault_users.b\\.c.configure = ^a\ndefault_users.anna.tags = monitoring"
    users = {"anna": {"password": "x", "tags": "monitoring"}, "b.c": {"configure": "^a"}}
    assert json.loads(only(text)["default_users"]) == users


def test_default_policies_are_one_setting() -> None:
    first, second = "default_policies.operator.a", "default_policies.operator.b"
    text = f"{first}.vhost_pattern = ^v\n{first}.classic_queues.ha_params = 2\n{second}.expires = 1h"
    policies = {"a": {"vhost_pattern": "^v", "ha_params": 2}, "b": {"expires": 3_600_000}}
    assert json.loads(only(text)["default_policies"]) == policies


def test_default_limits_are_one_setting() -> None:
    text = "default_limits.vhosts.a.pattern = ^v\ndefault_limits.vhosts.a.max_queues = 2"
    assert json.loads(only(text)["default_limits"]) == {"a": {"pattern": "^v", "max_queues": 2}}


@pytest.mark.parametrize(
    ("line", "notice"),
    [
        ("default_users.anna.colour = red", "f:1: unknown key 'default_users.anna.colour'"),
        ("default_users.anna = x", "f:1: unknown key 'default_users.anna'"),
        ("default_users.anna.write = (", "f:1: default_users.anna.write is '(', which is not a regular expression"),
        ("default_policies.operator.a.colour = 1", "f:1: unknown key 'default_policies.operator.a.colour'"),
        ("default_policies.user.a.expires = 1h", "f:1: unknown key 'default_policies.user.a.expires'"),
        (
            "default_policies.operator.a.expires = 5",
            "f:1: default_policies.operator.a.expires is '5', which is not a duration like 1h30m",
        ),
        ("default_limits.max_queues = 1", "f:1: unknown key 'default_limits.max_queues'"),
        (
            "default_limits.vhosts.a.max_queues = -1",
            "f:1: default_limits.vhosts.a.max_queues is '-1', which is not a whole number",
        ),
    ],
)
def test_a_wrong_key_of_a_named_object_is_reported(line: str, notice: str) -> None:
    assert read(line) == ({}, [Notice(notice)])


@pytest.mark.parametrize(
    "key",
    [
        *("mqtt.allow_anonymous", "auth_ldap.servers.1", "ssl_options.depth", "management.cors.max_age"),
        # Keys of RabbitMQ 4.
        *("http_dispatch.access_log_dir", "tracing.dir", "log.user.level"),
        *("amqp_client.ssl_options.verify", "queue_types.stream.enabled", "listeners.startup_delay", "node_tags.rack"),
    ],
)
def test_a_key_that_users_may_rely_on_is_reported_as_having_no_effect(key: str) -> None:
    assert read(f"{key} = secret") == ({}, [Notice(f"f:1: {key} has no effect here", is_wrong=False)])


def test_other_backends_of_users_are_reported_as_having_no_effect() -> None:
    assert only("auth_backends.1 = internal") == {}
    assert read("auth_backends.1 = ldap")[1] == [Notice("f:1: auth_backends.1 has no effect here", is_wrong=False)]


@pytest.mark.parametrize(
    ("lines", "chain"),
    [
        ("auth_backends.1 = internal\nauth_backends.2 = http", "internal http"),
        ("auth_backends.2 = rabbit_auth_backend_http\nauth_backends.1 = cache", "cache http"),
        ("auth_backends.1.authn = internal\nauth_backends.1.authz = http", "internal|http"),
        (
            "auth_backends.1.authn = http\nauth_backends.1.authz.1 = http\nauth_backends.1.authz.2 = internal",
            "http|http+internal",
        ),
        ("auth_backends.1.authn = http\nauth_backends.2 = internal", "http internal"),
        ("auth_backends.1.authz = http", "http"),
    ],
)
def test_backends_of_users_are_a_chain(lines: str, chain: str) -> None:
    assert only(lines) == {"auth_backends": chain}


def test_keys_of_the_http_backend_and_of_its_cache_are_settings() -> None:
    assert only(
        """
auth_http.http_method = post
auth_http.user_path = http://localhost:8000/user
auth_http.request_timeout = 20000
auth_http.ssl_options.verify = verify_none
auth_cache.cached_backend = rabbit_auth_backend_http
auth_cache.cache_ttl = 5000
auth_cache.cache_refusals = true
"""
    ) == {
        "auth_http_method": "post",
        "auth_http_user_path": "http://localhost:8000/user",
        "auth_http_request_timeout_ms": 20_000,
        "auth_http_verify": False,
        "auth_cache_backend": "http",
        "auth_cache_ttl_ms": 5000,
        "auth_cache_refusals": True,
    }
    halves = "auth_cache.cached_backend.authn = http\nauth_cache.cached_backend.authz = internal"
    assert only(halves) == {"auth_cache_backend": "http|internal"}


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("auth_http.http_method = put", "is 'put', which is not one of get, post"),
        ("auth_http.vhost_path = ftp://x", "is 'ftp://x', which is not a URL of HTTP or HTTPS"),
        ("auth_cache.cached_backend = ldap", "has a backend that is none of cache, http, internal"),
        ("auth_cache.cached_backend.other = http", "unknown key 'auth_cache.cached_backend.other'"),
        ("auth_backends.1.other = http", "unknown key 'auth_backends.1.other'"),
    ],
)
def test_wrong_backends_are_named(line: str, error: str) -> None:
    given, notices = read(line)
    assert given == {}
    assert [error in notice.text and notice.is_wrong for notice in notices] == [True]


@pytest.mark.parametrize(
    "line",
    [
        "cluster_formation.peer_discovery_backend = classic_config",
        "cluster_partition_handling = autoheal",
        "collect_statistics_interval = 30000",
        "management.rates_mode = none",
        "queue_master_locator = min-masters",
        "tcp_listen_options.backlog = 128",
        "tcp_listen_options.linger.on = true",
        "vm_memory_high_watermark_paging_ratio = 0.5",
        "log.connection.level = none",
    ],
)
def test_keys_that_tune_a_cluster_or_erlang_are_ignored(line: str) -> None:
    assert only(line) == {}


# Lines from public repositories, put together.
TYPICAL = """
## Networking
listeners.tcp.default = 5672
num_acceptors.tcp = 10
handshake_timeout = 10000
reverse_dns_lookups = false
tcp_listen_options.backlog = 128
tcp_listen_options.nodelay = true
tcp_listen_options.keepalive = true
heartbeat = 60
frame_max = 131072
channel_max = 2047
connection_max = infinity
## Who
loopback_users.guest = false   # also from other containers
default_vhost = /
default_user = admin
default_pass = 'pa#ss'
default_user_tags.administrator = true
default_permissions.configure = .*
default_permissions.read = .*
default_permissions.write = .*
password_hashing_module = rabbit_password_hashing_sha256
auth_mechanisms.1 = PLAIN
auth_mechanisms.2 = AMQPLAIN
auth_backends.1 = internal
## How much
vm_memory_high_watermark.relative = 0.7
vm_memory_high_watermark_paging_ratio = 0.5
total_memory_available_override_value = 2GB
disk_free_limit.absolute = 2GB
consumer_timeout = 864000000 # 10 days
max_message_size = 134217728
queue_index_embed_msgs_below = 0
default_queue_type = quorum
deprecated_features.permit.transient_nonexcl_queues = true
## Cluster
cluster_name = dev
cluster_partition_handling = ignore
cluster_formation.peer_discovery_backend = rabbit_peer_discovery_classic_config
cluster_formation.classic_config.nodes.1 = rabbit@rabbit1
cluster_keepalive_interval = 10000
queue_master_locator = min-masters
## Logs
log.dir = /var/log/rabbitmq
log.file = false
log.file.level = info
log.console = trues
log.console.level = warning
log.exchange = false
## Plugins
management.tcp.port = 15672
management.tcp.ip = 0.0.0.0
management.load_definitions = /etc/rabbitmq/definitions.json
management.rates_mode = basic
management_agent.disable_metrics_collector = true
prometheus.return_per_object_metrics = true
collect_statistics_interval = 10000
mqtt.listeners.tcp.default = 1883
stream.listeners.tcp.1 = 5552
web_stomp.tcp.port = 15674
"""


def test_a_typical_file_gives_warnings_for_its_errors_only() -> None:
    settings, notices = read(TYPICAL)
    assert TYPICAL.count(" = ") > 50
    assert [notice.text for notice in notices if notice.is_wrong] == [
        "f:48: log.console is 'trues', which is neither true nor false"
    ]
    assert [notice.text.split()[1] for notice in notices if not notice.is_wrong] == [
        "total_memory_available_override_value",
        "log.exchange",
        "mqtt.listeners.tcp.default",
        "stream.listeners.tcp.1",
        "web_stomp.tcp.port",
    ]
    assert settings["default_pass"] == "pa#ss"
    assert settings["consumer_timeout_ms"] == 864_000_000
    assert settings["auth_mechanisms"] == "PLAIN AMQPLAIN"
    assert settings["definitions"] == "/etc/rabbitmq/definitions.json"
