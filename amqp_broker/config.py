"""Settings: one declaration each, which gives the default, the option, the names in the environment, the keys of
rabbitmq.conf, the help and the line of docs/settings.md.

`loading.py` finds their values: the command line's before the environment's, these before those of files.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from amqp_broker import setting_values as values
from amqp_broker.compat import DEFAULT, DEPRECATED, PROFILES, Profile
from amqp_broker.setting_values import Reader
from amqp_broker.setting_values import octets as octets

# What the type of a field says of the values that a text may have.
_READERS: Final[dict[str, Reader]] = {
    "str": values.text,
    "int": values.number,
    "int | None": values.number_or_none,
    "bool": values.switch,
}


class ConfigError(ValueError):
    """A setting has a value that it cannot have; the text names the setting and the value, a line for each."""


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
    """Declare a setting.

    Its environment name is AMQP_BROKER_ and the field's name; `env` are further names, `key` is what rabbitmq.conf
    calls it (`loopback_users.*`: and any name). `options` are those of the command line, if they are not called as the
    field is; without `flag` there is none. `reader` checks a text, if the field's type does not say enough. What
    `is_secret` is never shown.
    """
    metadata = {
        "help": help_text,
        "env": env,
        "keys": (key,) if isinstance(key, str) else key,
        "flag": flag or bool(options),
        "options": options,
        "reader": reader,
        "secret": is_secret,
    }
    return field(default=default, metadata=metadata)


def reader_of(declared: Field[Any]) -> Reader:
    """What reads the text of a setting."""
    reader: Reader | None = declared.metadata["reader"]
    return reader or _READERS[str(declared.type)]


def read(declared: Field[Any], name: str, text: str) -> Any:
    """The value that a text stands for; `name` is what to call the setting. Raises ConfigError."""
    try:
        return reader_of(declared)(text)
    except ValueError as error:
        shown = "is a secret" if declared.metadata["secret"] else f"is '{text}'"
        raise ConfigError(f"{name} {shown}, which {error}") from None


@dataclass(frozen=True, repr=False)  # some are secrets
class Config:
    """All settings of a broker."""

    # Files

    config_file: str = setting(
        "",
        "Read settings from this file, or the files *.conf of this folder, in the format of rabbitmq.conf.",
        env=("RABBITMQ_CONFIG_FILE",),
        options=("-c", "--config"),
    )
    config_files: str = setting(
        "",
        "A folder, or a pattern, of further files, read in the order of their names.",
        env=("RABBITMQ_CONFIG_FILES",),
        flag=False,
    )
    advanced_config_file: str = setting(
        "", "An advanced.config, of which simple pairs are read.", env=("RABBITMQ_ADVANCED_CONFIG_FILE",), flag=False
    )
    enabled_plugins_file: str = setting(
        "",
        "If this file is there, it says whether the HTTP API and the metrics are served.",
        env=("RABBITMQ_ENABLED_PLUGINS_FILE",),
        options=("--enabled-plugins",),
    )
    plugins: str = setting(
        "",
        "The same as a list with commas, which counts before that file; ALL is all.",
        env=("RABBITMQ_ENABLED_PLUGINS",),
        flag=False,
    )
    strict_config: bool = setting(False, "Refuse to start where a file has what is wrong or unknown.")

    # Where clients come in

    host: str = setting(
        "localhost",
        "Address or name to listen on; '::' is every interface.",
        env=("RABBITMQ_NODE_IP_ADDRESS",),
        key="listeners.tcp.*",
    )
    port: int = setting(
        5672,
        "Port for AMQP; 0 takes a free one.",
        env=("RABBITMQ_NODE_PORT", "RABBITMQ_NODE_PORT_NUMBER"),
        key="listeners.tcp.*",
        reader=values.port,
    )
    tcp: bool = setting(True, "Serve AMQP without TLS.", key="listeners.tcp", flag=False)
    extra_listeners: str = setting(
        "", "Further addresses for AMQP, as 127.0.0.1:5673 ::1:5674.", key="listeners.tcp.*", flag=False
    )
    tls: str = setting("", "auto makes certificates and serves TLS, too.", reader=values.one_of("", "auto"))
    tls_port: int | None = setting(
        None,
        "Port for AMQP with TLS: 5671 if there is a certificate.",
        key="listeners.ssl.*",
        reader=values.port,
    )
    tls_ca_file: str = setting(
        "",
        "Certificates of those who may certify clients (PEM).",
        env=("RABBITMQ_SSL_CACERTFILE",),
        key="ssl_options.cacertfile",
    )
    tls_cert_file: str = setting(
        "", "The broker's certificate (PEM).", env=("RABBITMQ_SSL_CERTFILE",), key="ssl_options.certfile"
    )
    tls_key_file: str = setting(
        "", "The key of that certificate (PEM).", env=("RABBITMQ_SSL_KEYFILE",), key="ssl_options.keyfile"
    )
    tls_key_password: str = setting(
        "", "The password of that key.", key="ssl_options.password", flag=False, is_secret=True
    )
    tls_verify_peer: bool = setting(
        False,
        "Check certificates that clients show.",
        env=("RABBITMQ_SSL_VERIFY",),
        key="ssl_options.verify",
    )
    tls_require_peer_cert: bool = setting(
        False,
        "Let in only clients that show a certificate.",
        env=("RABBITMQ_SSL_FAIL_IF_NO_PEER_CERT",),
        key="ssl_options.fail_if_no_peer_cert",
    )
    tls_login_from: str = setting(
        "distinguished_name",
        "What of a client's certificate is its user's name (EXTERNAL).",
        key="ssl_cert_login_from",
        flag=False,
        reader=values.one_of("distinguished_name", "common_name", "subject_alternative_name", "subject_alt_name"),
    )
    management: bool = setting(True, "Serve RabbitMQ's HTTP API and the web page.")
    management_host: str = setting(
        "",
        "Address of the HTTP API and the web page, if it is not AMQP's.",
        key=("management.tcp.ip", "management.listener.ip", "management.ssl.ip"),
        flag=False,
    )
    management_port: int | None = setting(
        None,
        "Port of the HTTP API and the web page: 15672 if none is given, or a free one if AMQP takes one.",
        env=("RABBITMQ_MANAGEMENT_PORT_NUMBER",),
        key=("management.tcp.port", "management.listener.port"),
        reader=values.port,
    )
    management_tls_port: int | None = setting(
        None,
        "Port of the HTTP API and the web page with TLS.",
        key="management.ssl.port",
        flag=False,
        reader=values.port,
    )
    management_tls_ca_file: str = setting(
        "",
        "As tls_ca_file, for the HTTP API.",
        env=("RABBITMQ_MANAGEMENT_SSL_CACERTFILE",),
        key=("management.ssl.cacertfile", "management.listener.ssl_opts.cacertfile"),
        flag=False,
    )
    management_tls_cert_file: str = setting(
        "",
        "As tls_cert_file, for the HTTP API.",
        env=("RABBITMQ_MANAGEMENT_SSL_CERTFILE",),
        key=("management.ssl.certfile", "management.listener.ssl_opts.certfile"),
        flag=False,
    )
    management_tls_key_file: str = setting(
        "",
        "As tls_key_file, for the HTTP API.",
        env=("RABBITMQ_MANAGEMENT_SSL_KEYFILE",),
        key=("management.ssl.keyfile", "management.listener.ssl_opts.keyfile"),
        flag=False,
    )
    prometheus: bool = setting(True, "Serve metrics for Prometheus.")
    prometheus_per_object: bool = setting(
        False,
        "Have /metrics tell of each object.",
        key="prometheus.return_per_object_metrics",
        flag=False,
    )
    prometheus_host: str = setting(
        "", "Address of the metrics, if it is not AMQP's.", key="prometheus.tcp.ip", flag=False
    )
    prometheus_port: int | None = setting(
        None,
        "Port of the metrics: 15692 if none is given, or a free one if AMQP takes one.",
        key="prometheus.tcp.port",
        reader=values.port,
    )
    control: bool = setting(True, "Let this user's command line command the broker.")
    ports_file: str = setting("", "Write the ports as JSON to this file when all of them accept.")

    # What it is, and what it keeps

    node_name: str = setting(
        "", "Name of the node, rabbit@ and the machine's name if none is given.", env=("RABBITMQ_NODENAME",)
    )
    cluster_name: str = setting(
        "",
        "What clients are told as the cluster's name, rabbit@ and the machine's name if none is given.",
        key="cluster_name",
        flag=False,
    )
    compat: str = setting(
        DEFAULT, f"The version of RabbitMQ to imitate: {', '.join(PROFILES)}.", reader=values.one_of(*PROFILES)
    )
    denied_features: str = setting(
        "",
        f"Deprecated features that are not permitted, of {', '.join(DEPRECATED)}.",
        key="deprecated_features.permit.*",
        flag=False,
    )
    data_dir: str = setting(
        "",
        "Folder of the store; without it the platform's folder for data.",
        env=("RABBITMQ_MNESIA_DIR", "RABBITMQ_MNESIA_BASE"),
    )
    ephemeral: bool = setting(False, "Keep everything in memory only: nothing is there after a restart.")
    definitions: str = setting(
        "",
        "Import these definitions before the first client is let in: a file, a folder, or JSON itself.",
        env=("RABBITMQ_DEFINITIONS_FILE",),
        key=("load_definitions", "management.load_definitions", "definitions.local.path"),
    )
    record: bool = setting(
        False, "Record what happens to messages, for /_broker/messages, in all vhosts: for tests, not for speed."
    )
    always_create_default_user: bool = setting(
        False, "Create the first user even if definitions are imported, which RabbitMQ does not.", flag=False
    )
    store_bytes_max: str = setting(
        "0",
        "Block publishers while the store has more than this, as 20GB; 0 is no limit.",
        reader=values.amount,
    )
    disk_free_limit: str = setting(
        "50MB",
        "Block publishers while the store's disk has less than this free; 1.5 is that share of the memory.",
        env=("RABBITMQ_DISK_FREE_ABSOLUTE_LIMIT",),
        key=("disk_free_limit.relative", "disk_free_limit.absolute"),
        reader=values.amount,
    )
    vm_memory_high_watermark: str = setting(
        "",
        "Memory beyond which publishers are blocked: a share of all there is (0.6), or as much as 2GB.",
        env=("RABBITMQ_VM_MEMORY_HIGH_WATERMARK",),
        key=("vm_memory_high_watermark.relative", "vm_memory_high_watermark.absolute"),
        reader=values.amount,
    )

    # What it tells

    log_level: str = setting(
        "info",
        "debug, info, warning or error.",
        env=("RABBITMQ_LOG",),
        key=("log.console.level", "log.default.level"),
        reader=values.level,
    )
    log_format: str = setting(
        "text",
        "text, or json for a JSON object on each line.",
        key=("log.console.formatter", "log.file.formatter"),
        reader=values.one_of("text", "json"),
    )
    log_console: bool = setting(True, "Log to the standard output.", key="log.console", flag=False)
    log_file: str = setting("", "Log to this file, too.", env=("RABBITMQ_LOGS",), key="log.file")
    log_file_level: str = setting(
        "", "As log_level, for the file.", key="log.file.level", flag=False, reader=values.level
    )
    log_dir: str = setting(
        "", "The folder of the file, if that is a name only.", env=("RABBITMQ_LOG_BASE",), key="log.dir", flag=False
    )

    # Who may do what

    remote_guest: bool = setting(False, "Let the user guest in from other machines, too.")
    loopback_users: str = setting(
        "guest",
        "Users who may log in from this machine only.",
        key=("loopback_users", "loopback_users.*"),
        flag=False,
    )
    default_user: str = setting(
        "guest",
        "Name of the first user.",
        env=("RABBITMQ_DEFAULT_USER", "RABBITMQ_DEFAULT_USER_FILE", "RABBITMQ_USERNAME"),
        key="default_user",
        flag=False,
    )
    default_pass: str = setting(
        "guest",
        "Password of the first user.",
        env=("RABBITMQ_DEFAULT_PASS", "RABBITMQ_DEFAULT_PASS_FILE", "RABBITMQ_PASSWORD"),
        key="default_pass",
        flag=False,
        is_secret=True,
    )
    default_vhost: str = setting(
        "/",
        "Name of the first vhost.",
        env=("RABBITMQ_DEFAULT_VHOST", "RABBITMQ_VHOST"),
        key="default_vhost",
        flag=False,
    )
    default_user_tags: str = setting("administrator", "What the first user is.", key="default_user_tags.*", flag=False)
    default_permissions_configure: str = setting(
        ".*",
        "What the first user may declare and delete.",
        key="default_permissions.configure",
        flag=False,
        reader=values.pattern,
    )
    default_permissions_write: str = setting(
        ".*", "What the first user may publish to.", key="default_permissions.write", flag=False, reader=values.pattern
    )
    default_permissions_read: str = setting(
        ".*", "What the first user may consume from.", key="default_permissions.read", flag=False, reader=values.pattern
    )
    auth_mechanisms: str = setting(
        "",
        "SASL mechanisms, if not those of that version; RABBIT-CR-DEMO is there, too.",
        key="auth_mechanisms.*",
        flag=False,
    )
    anonymous_login_user: str = setting(
        "guest",
        "Who logs in with ANONYMOUS; none is nobody.",
        key="anonymous_login_user",
        flag=False,
    )
    anonymous_login_pass: str = setting(
        "guest", "The password of that user.", key="anonymous_login_pass", flag=False, is_secret=True
    )

    # How much of what

    channel_max: int = setting(
        2047,
        "Channels that a connection may open; 0 is as many as there can be.",
        key="channel_max",
        flag=False,
        reader=values.short,
    )
    channel_max_per_node: int | None = setting(
        None, "Channels that all connections together may open.", key="channel_max_per_node", flag=False
    )
    consumer_max_per_channel: int | None = setting(
        None, "Consumers that a channel may have.", key="consumer_max_per_channel", flag=False
    )
    connection_max: int | None = setting(None, "Connections that the broker takes.", key="connection_max", flag=False)
    exchange_max: int | None = setting(
        None,
        "Exchanges in all vhosts together, those that are there from the start among them.",
        key="cluster_exchange_limit",
        flag=False,
    )
    frame_max: int = setting(131072, "Largest frame, in octets.", key="frame_max", flag=False, reader=values.frame_size)
    initial_frame_max: int = setting(
        0,
        "Largest frame before a connection is open, in octets, if not that version's.",
        key="initial_frame_max",
        flag=False,
        reader=values.frame_size,
    )
    message_bytes_max: int = setting(
        0, "Largest message body, in octets, if not that version's.", key="max_message_size", flag=False
    )
    heartbeat_s: int = setting(
        60,
        "Heartbeat that the broker proposes, in seconds.",
        key="heartbeat",
        flag=False,
        reader=values.short,
    )
    handshake_timeout_ms: int = setting(
        10_000, "How long a client may take until connection.open.", key="handshake_timeout", flag=False
    )
    consumer_timeout_ms: int = setting(
        1_800_000,
        "How long a consumer may take to settle a message; 0 is for ever.",
        key="consumer_timeout",
        flag=False,
    )
    default_consumer_prefetch: int = setting(
        0,
        "How many unsettled messages a consumer gets that did not say; 0 is any number.",
        key="default_consumer_prefetch",
        flag=False,
        reader=values.short,
    )
    default_queue_type: str = setting(
        "classic",
        "The type of queues that are declared without one, where they can be of it.",
        key="default_queue_type",
        flag=False,
        reader=values.one_of("classic", "quorum", "stream"),
    )

    def port_of(self, default: int, given: int | None) -> int:
        """The port of a listener beside AMQP's: as given, else its default, or any that is free if AMQP takes such."""
        if given is not None:
            return given
        return default if self.port else 0

    @property
    def has_tls(self) -> bool:
        """Whether AMQP is served over TLS, beside the plain port."""
        return bool(self.tls or self.tls_cert_file or self.tls_key_file) or self.tls_port is not None

    @property
    def profile(self) -> Profile:
        """The version of RabbitMQ that is imitated, without the features that are not permitted."""
        return PROFILES[self.compat].without(self.denied_features.split())

    @property
    def listeners(self) -> list[tuple[str, int]]:
        """Hosts and ports on which AMQP is served without TLS."""
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
        """The folder of the store; None if there is none."""
        if self.ephemeral:
            return None
        if self.data_dir:
            return Path(self.data_dir)
        # A fiftieth of the time in which a broker starts, for those who need it.
        import platformdirs

        return platformdirs.user_data_path("amqp-broker", appauthor=False)

    def resolved(self) -> Config:
        """These settings, with the values of that version where none is given."""
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
        """Raise ConfigError for a value that a setting cannot have."""
        for declared in fields(self):
            value = getattr(self, declared.name)
            if value is not None and value != declared.default:
                read(declared, declared.name, str(value))


def names_in_environment(declared: Field[Any]) -> tuple[str, ...]:
    """What a setting is called in the environment, the first that is there counts."""
    return (f"AMQP_BROKER_{declared.name.upper()}", *declared.metadata["env"])


def options_of(declared: Field[Any]) -> tuple[str, ...]:
    """What a setting is called on the command line, if it may stand there."""
    if not declared.metadata["flag"]:
        return ()
    flag = "--" + declared.name.replace("_", "-")
    return declared.metadata["options"] or (f"{flag}/--no-{flag[2:]}" if declared.default is True else flag,)
