"""All settings, each with its default, help, option, environment variables and keys of rabbitmq.conf.

`sources/precedence.py` finds the values: the command line overrides the environment, the environment overrides files.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from amqp_broker.settings import readers
from amqp_broker.settings.profiles import DEFAULT, DEPRECATED, PROFILES, Profile
from amqp_broker.settings.readers import Reader

# Readers of texts by the type of a field.
_READERS: Final[dict[str, Reader]] = {
    "str": readers.text,
    "int": readers.number,
    "int | None": readers.number_or_none,
    "bool": readers.switch,
}


class SettingsError(ValueError):
    """A setting has an invalid value; the text names both, one setting on each line."""


class Setting(NamedTuple):
    """The declaration of a setting. `help` is one sentence."""

    name: str
    # Type of the value, as in the annotation of the field.
    type: str
    default: Any
    help: str
    # RabbitMQ's variables; that of this broker is AMQP_BROKER_ and the name.
    env: tuple[str, ...]
    # Keys of rabbitmq.conf, the first in a file counts; a star stands for any name.
    keys: tuple[str, ...]
    # Options of the command line; () for none.
    options: tuple[str, ...]
    reader: Reader
    is_secret: bool

    @property
    def environment(self) -> tuple[str, ...]:
        """Names in the environment; the first that is set counts."""
        return (f"AMQP_BROKER_{self.name.upper()}", *self.env)

    def read(self, label: str, text: str) -> Any:
        """Return the value of a text. Raises SettingsError, which names the setting by its label."""
        try:
            return self.reader(text)
        except ValueError as error:
            shown = "is a secret" if self.is_secret else f"is '{text}'"
            raise SettingsError(f"{label} {shown}, which {error}") from None


# When a confirm is sent: after a flush of the disk, or once the operating system has the data.
# The usual port, from which those of other listeners keep their distance.
AMQP_PORT: Final = 5672

FULL: Final = "full"
OS: Final = "os"

# A header that the publisher has set is kept, or replaced, by an interceptor.
KEEP: Final = "keep"
OVERWRITE: Final = "overwrite"


def setting(
    default: Any,
    help_text: str,
    *,
    env: tuple[str, ...] = (),
    key: str | tuple[str, ...] = (),
    flag: bool = True,
    options: tuple[str, ...] = (),
    reader: Reader | None = None,
    is_secret: bool = False,
) -> Any:
    """Declare a field of Settings; see Setting.

    Its option is called like the field unless `options` are given or `flag` is False. `reader` is needed where the type
    of the field does not define the valid texts.
    """
    metadata = {
        "help": help_text,
        "env": env,
        "keys": (key,) if isinstance(key, str) else key,
        "options": options,
        "has_option": flag or bool(options),
        "reader": reader,
        "is_secret": is_secret,
    }
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, repr=False)  # some are secrets
class Settings:
    """All settings of a broker."""

    # Files

    config_file: str = setting(
        "",
        "Read settings from this file in the format of rabbitmq.conf, or from the files *.conf of this folder.",
        env=("RABBITMQ_CONFIG_FILE",),
        options=("-c", "--config"),
    )
    config_files: str = setting(
        "",
        "A folder or a pattern of further files, read in the order of their names.",
        env=("RABBITMQ_CONFIG_FILES",),
        flag=False,
    )
    advanced_config_file: str = setting(
        "",
        "An advanced.config, of which only simple pairs are read.",
        env=("RABBITMQ_ADVANCED_CONFIG_FILE",),
        flag=False,
    )
    enabled_plugins_file: str = setting(
        "",
        "File of enabled plugins, which decides whether the HTTP API and the metrics are served.",
        env=("RABBITMQ_ENABLED_PLUGINS_FILE",),
        options=("--enabled-plugins",),
    )
    plugins: str = setting(
        "",
        "Enabled plugins, separated by commas, instead of the file of plugins; ALL enables all, none enables none.",
        env=("RABBITMQ_ENABLED_PLUGINS",),
        flag=False,
    )
    strict_config: bool = setting(False, "Refuse to start if a file has an error or an unknown key.")
    static_shovels: str = setting(
        "",
        "Shovels of the configuration: the value of `shovels` in advanced.config, as JSON.",
        key="rabbitmq_shovel.shovels",
        flag=False,
        is_secret=True,
    )

    # Listeners

    host: str = setting(
        "localhost",
        "Address or name to listen on; '::' is every interface.",
        env=("RABBITMQ_NODE_IP_ADDRESS",),
        key="listeners.tcp.*",
    )
    port: int = setting(
        AMQP_PORT,
        "Port for AMQP; 0 takes a free one.",
        env=("RABBITMQ_NODE_PORT", "RABBITMQ_NODE_PORT_NUMBER"),
        key="listeners.tcp.*",
        reader=readers.port,
    )
    tcp: bool = setting(True, "Serve AMQP without TLS.", key="listeners.tcp", flag=False)
    extra_listeners: str = setting(
        "",
        "Further addresses for AMQP, such as 127.0.0.1:5673 ::1:5674.",
        key="listeners.tcp.*",
        flag=False,
        reader=readers.addresses,
    )
    tls: str = setting(
        "", "If auto, create certificates and serve AMQP with TLS as well.", reader=readers.one_of("", "auto")
    )
    tls_port: int | None = setting(
        None,
        "Port for AMQP with TLS: 5671 if there is a certificate.",
        key="listeners.ssl.*",
        reader=readers.port,
    )
    tls_ca_file: str = setting(
        "",
        "Certificates of the authorities that may certify clients (PEM).",
        env=("RABBITMQ_SSL_CACERTFILE",),
        key="ssl_options.cacertfile",
    )
    tls_cert_file: str = setting(
        "", "Certificate of the broker (PEM).", env=("RABBITMQ_SSL_CERTFILE",), key="ssl_options.certfile"
    )
    tls_key_file: str = setting(
        "", "Key of the certificate of the broker (PEM).", env=("RABBITMQ_SSL_KEYFILE",), key="ssl_options.keyfile"
    )
    tls_key_password: str = setting(
        "", "Password of the key of the broker.", key="ssl_options.password", flag=False, is_secret=True
    )
    tls_verify_peer: bool = setting(
        False,
        "Check certificates that clients present.",
        env=("RABBITMQ_SSL_VERIFY",),
        key="ssl_options.verify",
    )
    tls_require_peer_cert: bool = setting(
        False,
        "Refuse clients that present no certificate.",
        env=("RABBITMQ_SSL_FAIL_IF_NO_PEER_CERT",),
        key="ssl_options.fail_if_no_peer_cert",
    )
    tls_versions: str = setting(
        "",
        "Versions of TLS that clients may use, of tlsv1.2 and tlsv1.3: both by default.",
        key="ssl_options.versions.*",
        flag=False,
        reader=readers.tls_versions,
    )
    tls_login_from: str = setting(
        "distinguished_name",
        "Part of a client's certificate that is the name of its user (EXTERNAL).",
        key="ssl_cert_login_from",
        flag=False,
        reader=readers.one_of("distinguished_name", "common_name", "subject_alternative_name", "subject_alt_name"),
    )
    management: bool = setting(True, "Serve RabbitMQ's HTTP API and the web page.")
    management_host: str = setting(
        "",
        "Address of the HTTP API and the web page, if it differs from AMQP's.",
        key=("management.tcp.ip", "management.listener.ip", "management.ssl.ip"),
        flag=False,
    )
    management_hosts: str = setting(
        "",
        "Host names that requests to the HTTP API over a loopback address may have, besides localhost and the machine's"
        " own, separated by commas.",
    )
    management_port: int | None = setting(
        None,
        "Port of the HTTP API and the web page: 15672 by default, or a free one if the port for AMQP is 0.",
        env=("RABBITMQ_MANAGEMENT_PORT_NUMBER",),
        key=("management.tcp.port", "management.listener.port"),
        reader=readers.port,
    )
    management_path_prefix: str = setting(
        "",
        "Path before those of the HTTP API and the web page, such as /rabbitmq.",
        key="management.path_prefix",
        flag=False,
        reader=readers.path_prefix,
    )
    management_tcp: bool = setting(
        True,
        "Serve the HTTP API and the web page without TLS; keys `management.ssl.*` alone switch this off.",
        flag=False,
    )
    management_tls_port: int | None = setting(
        None,
        "Port of the HTTP API and the web page with TLS.",
        key="management.ssl.port",
        flag=False,
        reader=readers.port,
    )
    management_tls_ca_file: str = setting(
        "",
        "Like tls_ca_file, for the HTTP API.",
        env=("RABBITMQ_MANAGEMENT_SSL_CACERTFILE",),
        key=("management.ssl.cacertfile", "management.listener.ssl_opts.cacertfile"),
        flag=False,
    )
    management_tls_cert_file: str = setting(
        "",
        "Like tls_cert_file, for the HTTP API.",
        env=("RABBITMQ_MANAGEMENT_SSL_CERTFILE",),
        key=("management.ssl.certfile", "management.listener.ssl_opts.certfile"),
        flag=False,
    )
    management_tls_key_file: str = setting(
        "",
        "Like tls_key_file, for the HTTP API.",
        env=("RABBITMQ_MANAGEMENT_SSL_KEYFILE",),
        key=("management.ssl.keyfile", "management.listener.ssl_opts.keyfile"),
        flag=False,
    )
    management_tls_versions: str = setting(
        "",
        "Like tls_versions, for the HTTP API.",
        key=("management.ssl.versions.*", "management.listener.ssl_opts.versions.*"),
        flag=False,
        reader=readers.tls_versions,
    )
    prometheus: bool = setting(True, "Serve metrics for Prometheus.")
    prometheus_per_object: bool = setting(
        False,
        "Report each object in /metrics.",
        key="prometheus.return_per_object_metrics",
        flag=False,
    )
    prometheus_path: str = setting(
        "/metrics",
        "Path of the metrics; those of each object are below it at /per-object.",
        key="prometheus.path",
        flag=False,
        reader=readers.path_prefix,
    )
    prometheus_host: str = setting(
        "", "Address of the metrics, if it differs from AMQP's.", key="prometheus.tcp.ip", flag=False
    )
    prometheus_port: int | None = setting(
        None,
        "Port of the metrics: 15692 by default, or a free one if the port for AMQP is 0.",
        key="prometheus.tcp.port",
        reader=readers.port,
    )
    control: bool = setting(True, "Accept commands from the command line of the same user.")
    ports_file: str = setting(
        "", "Write the ports as JSON to this file once all of them accept connections. It is removed at the end."
    )

    # Identity and storage

    node_name: str = setting(
        "", "Name of the node: rabbit@ and the name of the machine by default.", env=("RABBITMQ_NODENAME",)
    )
    cluster_name: str = setting(
        "",
        "Name of the cluster that clients see: rabbit@ and the name of the machine by default.",
        key="cluster_name",
        flag=False,
    )
    compat: str = setting(
        DEFAULT, f"Version of RabbitMQ to imitate: {', '.join(PROFILES)}.", reader=readers.one_of(*PROFILES)
    )
    denied_features: str = setting(
        "",
        f"Deprecated features to refuse, of {', '.join(DEPRECATED)}.",
        key="deprecated_features.permit.*",
        flag=False,
    )
    permitted_features: str = setting(
        "",
        f"Deprecated features to permit where the version refuses them, of {', '.join(DEPRECATED)}.",
        key="deprecated_features.permit.*",
        flag=False,
    )
    data_dir: str = setting(
        "",
        "Folder of the store: the platform's folder for data by default.",
        env=("RABBITMQ_MNESIA_DIR", "RABBITMQ_MNESIA_BASE"),
    )
    ephemeral: bool = setting(False, "Keep everything in memory only; a restart loses it.")
    definitions: str = setting(
        "",
        "Import these definitions before clients are accepted: a file, a folder, or the JSON itself.",
        env=("RABBITMQ_DEFINITIONS_FILE",),
        key=("load_definitions", "management.load_definitions", "definitions.local.path"),
    )
    event_log: bool = setting(
        False, "Keep an event log of each vhost, which tests read at /_broker/messages; it slows the broker down."
    )
    always_create_default_user: bool = setting(
        False, "Create the first user even if definitions are imported; RabbitMQ does not.", flag=False
    )
    store_sync: str = setting(
        FULL,
        "When a confirm leaves: full, after the disk was flushed; os, as soon as a kill of the process loses nothing. A"
        " power loss may then lose the last moments (Linux only).",
        reader=readers.one_of(FULL, OS),
    )
    store_bytes_max: str = setting(
        "0",
        "Block publishers while the store is larger than this, such as 20GB; 0 is no limit.",
        reader=readers.amount,
    )
    disk_free_limit: str = setting(
        "50MB",
        "Block publishers while the disk of the store has less free space; 1.5 is 1.5 times the memory.",
        env=("RABBITMQ_DISK_FREE_ABSOLUTE_LIMIT",),
        key=("disk_free_limit.relative", "disk_free_limit.absolute"),
        reader=readers.amount,
    )
    vm_memory_high_watermark: str = setting(
        "",
        "Block publishers while more memory is used: a share of the total (0.6) or an amount (2GB).",
        env=("RABBITMQ_VM_MEMORY_HIGH_WATERMARK",),
        key=("vm_memory_high_watermark.relative", "vm_memory_high_watermark.absolute"),
        reader=readers.amount,
    )

    # Logs

    log_level: str = setting(
        "info",
        "Lowest level of logged messages: debug, info, warning or error.",
        env=("RABBITMQ_LOG",),
        key=("log.console.level", "log.default.level"),
        reader=readers.level,
    )
    log_format: str = setting(
        "auto",
        "Format of the log: text, json for one JSON object per line, or auto: text, and a short start at a terminal.",
        key=("log.console.formatter", "log.file.formatter"),
        reader=readers.one_of("auto", "text", "json"),
    )
    log_console: bool = setting(True, "Log to standard output.", key="log.console", flag=False)
    log_file: str = setting("", "Also log to this file.", env=("RABBITMQ_LOGS",), key="log.file")
    log_file_level: str = setting(
        "", "Like log_level, for the file.", key="log.file.level", flag=False, reader=readers.level_or_none
    )
    log_dir: str = setting(
        "",
        "Folder of log_file, if that is a name without a folder.",
        env=("RABBITMQ_LOG_BASE",),
        key="log.dir",
        flag=False,
    )

    # Users

    remote_guest: bool = setting(False, "Accept the user guest from other machines.")
    loopback_users: str = setting(
        "guest",
        "Users who may log in from this machine only.",
        key=("loopback_users", "loopback_users.*"),
        flag=False,
    )
    default_user: str = setting(
        "guest",
        "Name of the first user.",
        env=("RABBITMQ_DEFAULT_USER", "RABBITMQ_DEFAULT_USER_FILE"),
        key="default_user",
        flag=False,
    )
    default_pass: str = setting(
        "guest",
        "Password of the first user.",
        env=("RABBITMQ_DEFAULT_PASS", "RABBITMQ_DEFAULT_PASS_FILE"),
        key="default_pass",
        flag=False,
        is_secret=True,
    )
    default_vhost: str = setting(
        "/",
        "Name of the first vhost.",
        env=("RABBITMQ_DEFAULT_VHOST",),
        key="default_vhost",
        flag=False,
    )
    password_hashing_module: str = setting(
        "rabbit_password_hashing_sha256",
        "Algorithm of the hashes of new passwords.",
        key="password_hashing_module",
        flag=False,
        reader=readers.one_of(*(f"rabbit_password_hashing_{name}" for name in ("sha256", "sha512", "md5"))),
    )
    default_user_tags: str = setting(
        "administrator", "Tags of the first user.", key=("default_user_tags", "default_user_tags.*"), flag=False
    )
    default_permissions_configure: str = setting(
        ".*",
        "Pattern of the names that the first user may declare and delete.",
        key="default_permissions.configure",
        flag=False,
        reader=readers.pattern,
    )
    default_permissions_write: str = setting(
        ".*",
        "Pattern of the names that the first user may publish to. RabbitMQ confuses this key and the next, from 3.10 to"
        " 4.3.",
        key="default_permissions.read",
        flag=False,
        reader=readers.pattern,
    )
    default_permissions_read: str = setting(
        ".*",
        "Pattern of the names that the first user may consume from.",
        key="default_permissions.write",
        flag=False,
        reader=readers.pattern,
    )
    default_users: str = setting(
        "",
        "Users of new vhosts, by name, as JSON: password, tags, vhost_pattern, configure, write and read.",
        key="default_users.*",
        flag=False,
        reader=readers.json_object,
        is_secret=True,
    )
    default_policies: str = setting(
        "",
        "Operator policies of new vhosts, by name, as JSON: vhost_pattern, queue_pattern, apply_to, expires and so on.",
        key="default_policies.operator.*",
        flag=False,
        reader=readers.json_object,
    )
    default_limits: str = setting(
        "",
        "Limits of new vhosts, by name, as JSON: pattern, max_connections and max_queues; the first match counts.",
        key="default_limits.vhosts.*",
        flag=False,
        reader=readers.json_object,
    )
    auth_mechanisms: str = setting(
        "",
        "SASL mechanisms, instead of those of the imitated version; RABBIT-CR-DEMO is available, too.",
        key="auth_mechanisms.*",
        flag=False,
    )
    anonymous_login_user: str = setting(
        "guest",
        "User of clients that log in with ANONYMOUS; none refuses them.",
        key="anonymous_login_user",
        flag=False,
    )
    anonymous_login_pass: str = setting(
        "guest", "Password of the user for ANONYMOUS.", key="anonymous_login_pass", flag=False, is_secret=True
    )

    # Remote backends of logins and permissions

    auth_backends: str = setting(
        "",
        "Backends of logins in order: internal, http and cache, or AUTHN|AUTHZ+AUTHZ; by default internal alone.",
        key="auth_backends.*",
        flag=False,
        reader=readers.auth_backends,
    )
    auth_http_method: str = setting(
        "get",
        "Method of questions to the HTTP backend: get or post.",
        key="auth_http.http_method",
        flag=False,
        reader=readers.one_of("get", "post"),
    )
    auth_http_user_path: str = setting(
        "http://localhost:8000/auth/user",
        "URL of questions about logins.",
        key="auth_http.user_path",
        flag=False,
        reader=readers.http_url,
    )
    auth_http_vhost_path: str = setting(
        "http://localhost:8000/auth/vhost",
        "URL of questions about vhosts.",
        key="auth_http.vhost_path",
        flag=False,
        reader=readers.http_url,
    )
    auth_http_resource_path: str = setting(
        "http://localhost:8000/auth/resource",
        "URL of questions about queues and exchanges.",
        key="auth_http.resource_path",
        flag=False,
        reader=readers.http_url,
    )
    auth_http_topic_path: str = setting(
        "http://localhost:8000/auth/topic",
        "URL of questions about routing keys of topic exchanges.",
        key="auth_http.topic_path",
        flag=False,
        reader=readers.http_url,
    )
    auth_http_request_timeout_ms: int = setting(
        15_000,
        "Milliseconds until a question to the HTTP backend is given up.",
        key="auth_http.request_timeout",
        flag=False,
        reader=readers.positive,
    )
    auth_http_connection_timeout_ms: int = setting(
        15_000,
        "Milliseconds until a connection to the HTTP backend is given up.",
        key="auth_http.connection_timeout",
        flag=False,
        reader=readers.positive,
    )
    auth_http_cacertfile: str = setting(
        "",
        "File of CA certificates for the HTTP backend, instead of those of the system.",
        key="auth_http.ssl_options.cacertfile",
        flag=False,
    )
    auth_http_certfile: str = setting(
        "",
        "File of the certificate that the HTTP backend is shown.",
        key="auth_http.ssl_options.certfile",
        flag=False,
    )
    auth_http_keyfile: str = setting(
        "", "File of the key of that certificate.", key="auth_http.ssl_options.keyfile", flag=False
    )
    auth_http_key_password: str = setting(
        "", "Password of that key.", key="auth_http.ssl_options.password", flag=False, is_secret=True
    )
    auth_http_verify: bool = setting(
        True, "Verify the certificate of the HTTP backend.", key="auth_http.ssl_options.verify", flag=False
    )
    auth_cache_backend: str = setting(
        "",
        "The backend whose answers are cached: http, or AUTHN|AUTHZ.",
        key=("auth_cache.cached_backend", "auth_cache.cached_backend.*"),
        flag=False,
        reader=readers.auth_backends,
    )
    auth_cache_ttl_ms: int = setting(
        15_000,
        "Milliseconds for which answers are cached.",
        key="auth_cache.cache_ttl",
        flag=False,
    )
    auth_cache_refusals: bool = setting(False, "Cache refusals, too.", key="auth_cache.cache_refusals", flag=False)

    # Limits

    channel_max: int = setting(
        2047,
        "Channels that a connection may open; 0 is no limit.",
        key=("max_channels_per_connection", "channel_max"),
        flag=False,
        reader=readers.short,
    )
    channel_max_per_node: int | None = setting(
        None, "Channels that all connections together may open.", key="channel_max_per_node", flag=False
    )
    consumer_max_per_channel: int | None = setting(
        None, "Consumers that a channel may have.", key="consumer_max_per_channel", flag=False
    )
    connection_max: int | None = setting(
        None, "Connections that the broker accepts.", key=("max_connections", "connection_max"), flag=False
    )
    exchange_max: int | None = setting(
        None,
        "Exchanges in all vhosts together, including predeclared ones.",
        key="cluster_exchange_limit",
        flag=False,
    )
    frame_max: int = setting(
        131072,
        "Largest frame, in bytes; 0 is no limit.",
        key="frame_max",
        flag=False,
        reader=readers.frame_size_or_unlimited,
    )
    initial_frame_max: int = setting(
        0,
        "Largest frame before a connection is open, in bytes; 0 is the limit of the imitated version.",
        key="initial_frame_max",
        flag=False,
        reader=readers.frame_size_or_default,
    )
    message_bytes_max: int = setting(
        0, "Largest message body, in bytes; 0 is the limit of the imitated version.", key="max_message_size", flag=False
    )
    heartbeat_s: int = setting(
        60,
        "Heartbeat interval that the broker proposes, in seconds.",
        key="heartbeat",
        flag=False,
        reader=readers.short,
    )
    handshake_timeout_ms: int = setting(
        10_000, "Time in which a client must open its connection, in milliseconds.", key="handshake_timeout", flag=False
    )
    consumer_timeout_ms: int = setting(
        1_800_000,
        "Time in which a consumer must settle a message, in milliseconds; 0 is no limit.",
        key="consumer_timeout",
        flag=False,
    )
    default_consumer_prefetch: int = setting(
        0,
        "Prefetch count of consumers that set none; 0 is no limit.",
        key="default_consumer_prefetch",
        flag=False,
        reader=readers.short,
    )
    default_queue_type: str = setting(
        "classic",
        "Type of queues that are declared without one, if their other properties allow it.",
        key="default_queue_type",
        flag=False,
        reader=readers.one_of("classic", "quorum", "stream"),
    )
    publish_time_header: str = setting(
        "",
        "Note the time of a publish in the timestamp and the header `timestamp_in_ms` of its message: `keep` leaves "
        "those that the publisher has set, `overwrite` replaces them.",
        key="message_interceptors.incoming.set_header_timestamp.overwrite",
        flag=False,
        reader=readers.one_of("", KEEP, OVERWRITE),
    )
    publish_node_header: str = setting(
        "",
        "Note the name of the node in the header `x-routed-by` of each published message: `keep` leaves one that the "
        "publisher has set, `overwrite` replaces it.",
        key="message_interceptors.incoming.set_header_routing_node.overwrite",
        flag=False,
        reader=readers.one_of("", KEEP, OVERWRITE),
    )
    delivery_time_header: bool = setting(
        False,
        "Note the time of a delivery in the header `x-opt-rabbitmq-sent-time` of its message.",
        key="message_interceptors.outgoing.timestamp.enabled",
        flag=False,
    )

    def port_of(self, default: int, given: int | None) -> int:
        """Return the port of another listener: the given one, or its default; 0 takes a free one, as for AMQP."""
        if given is not None:
            return given
        return default if self.port else 0

    def nearby(self, default: int, given: int | None) -> tuple[int, ...]:
        """Return the ports that another listener takes if its default is in use.

        They are as far from it as that of AMQP is from its own, and any that is free. There is none while AMQP has its
        usual port, because another broker may be the mistake.
        """
        return () if given is not None or self.port in (0, AMQP_PORT) else (default + self.port - AMQP_PORT, 0)

    @property
    def frame_max_offered(self) -> int:
        """The limit of frames that clients see; 0 is none."""
        return 0 if self.frame_max == readers.FRAME_MAX_HIGHEST else self.frame_max

    @property
    def intercepts(self) -> bool:
        """True if published messages are changed."""
        return bool(self.publish_time_header or self.publish_node_header)

    @property
    def has_tls(self) -> bool:
        """True if AMQP is served with TLS."""
        return bool(self.tls or self.tls_cert_file or self.tls_key_file) or self.tls_port is not None

    @property
    def profile(self) -> Profile:
        """The imitated version of RabbitMQ, with the deprecated features that the settings permit or refuse."""
        return PROFILES[self.compat].with_features(self.permitted_features.split(), self.denied_features.split())

    @property
    def listeners(self) -> list[tuple[str, int]]:
        """Hosts and ports for AMQP without TLS."""
        if not self.tcp:
            return []
        extra = (listener.rpartition(":") for listener in self.extra_listeners.split())
        return [(self.host, self.port), *((host or self.host, int(port)) for host, _, port in extra)]

    @property
    def local_users(self) -> set[str]:
        """Users who may log in from this machine only."""
        return set(self.loopback_users.split()) - ({"guest"} if self.remote_guest else set())

    @property
    def store_path(self) -> Path | None:
        """Folder of the store; None if everything is kept in memory."""
        if self.ephemeral:
            return None
        if self.data_dir:
            return Path(self.data_dir)
        # Imported here because it takes a fiftieth of the start.
        import platformdirs

        return platformdirs.user_data_path("amqp-broker", appauthor=False)

    @property
    def log_path(self) -> Path | None:
        """Path of the log file; None without one."""
        return Path(self.log_dir, self.log_file) if self.log_file else None

    @property
    def log_files(self) -> list[str]:
        """Where the log is, as RabbitMQ lists it: the file, and the standard output."""
        return [*([str(self.log_path)] if self.log_file else []), *(["<stdout>"] if self.log_console else [])]

    def resolved(self) -> Settings:
        """Return these settings with the values of the imitated version where none is given."""
        return replace(
            self,
            auth_mechanisms=self._mechanisms(),
            initial_frame_max=self.initial_frame_max or self.profile.frame_max_lowest,
            message_bytes_max=self.message_bytes_max or self.profile.message_bytes_max,
            vm_memory_high_watermark=self.vm_memory_high_watermark or self.profile.memory_watermark,
        )

    def _mechanisms(self) -> str:
        names = (self.auth_mechanisms or self.profile.auth_mechanisms).split()
        return " ".join(name for name in names if name != "ANONYMOUS" or self.anonymous_login_user != "none")

    def check(self) -> None:
        """Raise SettingsError for an invalid value."""
        for declared in SETTINGS:
            value = getattr(self, declared.name)
            if value is not None and value != declared.default:
                declared.read(declared.name, str(value))


def _declarations() -> tuple[Setting, ...]:
    found = []
    for declared in fields(Settings):
        given = dict(declared.metadata)
        option = "--" + declared.name.replace("_", "-")
        usual = f"{option}/--no-{option[2:]}" if declared.default is True else option
        given["options"] = (given["options"] or (usual,)) if given.pop("has_option") else ()
        given["reader"] = given["reader"] or _READERS[str(declared.type)]
        found.append(Setting(declared.name, str(declared.type), declared.default, **given))
    return tuple(found)


SETTINGS: Final = _declarations()
