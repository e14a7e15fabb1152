"""Keys of rabbitmq.conf: the settings that they stand for, and the keys without effect.

Sources of the keys and their values: rabbit.schema and the schemas of the plugins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from amqp_broker.settings import readers
from amqp_broker.settings.profiles import DEPRECATED
from amqp_broker.settings.settings import KEEP, OVERWRITE, SETTINGS, Setting, SettingsError
from amqp_broker.settings.sources.rabbitmq_conf import Entry, latest, parts


class Notice(NamedTuple):
    """A sentence for the user: an error (`is_wrong`) or a remark."""

    text: str
    is_wrong: bool = True


class Given(NamedTuple):
    """The value of a setting, and its source."""

    value: Any
    place: str


def settings_of(entries: Iterable[Entry]) -> tuple[dict[str, Given], list[Notice]]:
    """Return settings by name, and notices about the entries; later entries override earlier ones."""
    last = latest(entries)
    notices: list[Notice] = []
    if last.get("management.listener.ssl", _FALSE).value == "true" and "management.listener.port" in last:
        last["management.ssl.port"] = last.pop("management.listener.port")
    given: dict[str, Given] = {}
    if tls_alone := _tls_alone(last):
        given["management_tcp"] = Given(False, tls_alone.place)
    for declared in SETTINGS:
        for key in declared.keys:
            entry = last.pop(key, None)
            if entry is not None:
                _take(given, notices, declared.name, entry)
    families: dict[str, list[Entry]] = {}
    for entry in last.values():
        prefix = _family(entry.key)
        if prefix in _FAMILIES:
            families.setdefault(prefix, []).append(entry)
        elif (notice := _about(entry)) is not None:
            notices.append(notice)
    for prefix, members in families.items():
        for name, entry in _FAMILIES[prefix](members, notices):
            _take(given, notices, name, entry)
    return given, notices


def _family(key: str) -> str:
    """Return the beginning that the keys of a family have in common."""
    prefixes = (*_NAMED, "auth_backends")
    return next((prefix for prefix in prefixes if key.startswith(f"{prefix}.")), key.rpartition(".")[0])


_FALSE: Final = Entry("", "", "")
_DECLARED: Final[dict[str, Setting]] = {declared.name: declared for declared in SETTINGS}


def _tls_alone(last: Mapping[str, Entry]) -> Entry | None:
    """Return an entry for HTTPS if there is none for HTTP: RabbitMQ then serves HTTPS alone."""
    if any(key.startswith(("management.tcp.", "management.listener.")) for key in last):
        return None
    return next((entry for key, entry in last.items() if key.startswith("management.ssl.")), None)


def _take(given: dict[str, Given], notices: list[Notice], name: str, entry: Entry) -> None:
    """Add a setting unless an earlier key of its declaration has given it."""
    if name in given:
        return
    try:
        text = _CONVERTERS.get(entry.key, str)(entry.value)
        given[name] = Given(_DECLARED[name].read(f"{entry.place}: {entry.key}", text), entry.place)
    except SettingsError as error:
        notices.append(Notice(str(error)))
    except ValueError as error:
        notices.append(_wrong(entry, error))


def _without_effect(entry: Entry) -> Notice:
    return Notice(f"{entry.place}: {entry.key} has no effect here", is_wrong=False)


def _wrong(entry: Entry, error: ValueError) -> Notice:
    return Notice(f"{entry.place}: {entry.key} is '{entry.value}', which {error}")


# Conversion of RabbitMQ's texts to those of the settings


def share(text: str) -> str:
    """Return a share of the total; 2 is twice the total, not two bytes."""
    if not re.fullmatch(r"\d+(\.\d+)?", text):
        raise ValueError("is not a number")
    return text if "." in text else f"{text}.0"


def chosen(**choices: str) -> Callable[[str], str]:
    """Return a converter of these words to the texts that they stand for."""

    def convert(text: str) -> str:
        if text not in choices:
            raise ValueError(f"is not one of {', '.join(choices)}")
        return choices[text]

    return convert


def log_file(text: str) -> str:
    return "" if text == "false" else text


verify = chosen(verify_peer="true", verify_none="false")
formatter = chosen(json="json", plaintext="text", text="text")


def queue_type(text: str) -> str:
    return text.removeprefix("rabbit_").removesuffix("_queue")


def backend(text: str) -> str:
    return text.removeprefix("rabbit_auth_backend_")


def timeout(text: str) -> str:
    return str(10**12) if text == "infinity" else text  # some thirty years


def octets(text: str) -> str:
    return f"{text}B" if text.isdecimal() else text  # without a unit, 1 is a share


_CONVERTERS: Final[dict[str, Callable[[str], str]]] = {
    "vm_memory_high_watermark.relative": share,
    "vm_memory_high_watermark.absolute": octets,
    "disk_free_limit.relative": share,
    "disk_free_limit.absolute": octets,
    "ssl_options.verify": verify,
    "auth_http.ssl_options.verify": verify,
    "auth_cache.cached_backend": backend,
    "listeners.tcp": chosen(none="false"),
    "loopback_users": chosen(none=""),
    "default_user_tags": chosen(none=""),
    "log.file": log_file,
    "log.console.formatter": formatter,
    "log.file.formatter": formatter,
    "default_queue_type": queue_type,
    "message_interceptors.incoming.set_header_timestamp.overwrite": chosen(true=OVERWRITE, false=KEEP),
    "message_interceptors.incoming.set_header_routing_node.overwrite": chosen(true=OVERWRITE, false=KEEP),
    "handshake_timeout": timeout,
}


# Families of keys that end in any name: each function yields settings, with an entry that has the value

Found = Iterator[tuple[str, Entry]]


def address(text: str) -> tuple[str, str]:
    """Return host ("" for none) and port of `5672`, `127.0.0.1:5672`, `::1:5672` or `[::1]:5672`. Raises ValueError."""
    host, _, port = text.rpartition(":")
    try:
        readers.addresses(text)
    except ValueError:
        raise ValueError("is neither a port nor an address and a port") from None
    if len(text.split()) != 1:
        raise ValueError("is more than one address")
    return host.removeprefix("[").removesuffix("]"), port


def _listeners(entries: list[Entry], notices: list[Notice]) -> Found:
    addresses = []
    for entry in entries:
        try:
            addresses.append((*address(entry.value), entry))
        except ValueError as error:
            notices.append(_wrong(entry, error))
    for host, port, entry in addresses[:1]:
        yield "port", entry._replace(value=port)
        if host:
            yield "host", entry._replace(value=host)
    if extra := addresses[1:]:
        yield "extra_listeners", extra[0][2]._replace(value=" ".join(f"{host}:{port}" for host, port, _ in extra))


def _tls_listeners(entries: list[Entry], notices: list[Notice]) -> Found:
    for entry in entries[:1]:
        try:
            yield "tls_port", entry._replace(value=address(entry.value)[1])
        except ValueError as error:
            notices.append(_wrong(entry, error))


def _names(setting: str, *, is_chosen: bool = True, known: Iterable[str] | None = None) -> Callable[..., Found]:
    """Return a function that gathers the names whose keys are set to `is_chosen`."""

    def gather(entries: list[Entry], notices: list[Notice]) -> Found:
        names = []
        for entry in entries:
            try:
                if readers.switch(entry.value) is is_chosen:
                    names.append(parts(entry.key)[-1])
            except ValueError as error:
                notices.append(_wrong(entry, error))
        yield setting, entries[0]._replace(value=" ".join(name for name in names if known is None or name in known))

    return gather


def _deprecated(entries: list[Entry], notices: list[Notice]) -> Found:
    for setting, is_permitted in (("permitted_features", True), ("denied_features", False)):
        yield from _names(setting, is_chosen=is_permitted, known=DEPRECATED)(entries, notices if is_permitted else [])


def _list(setting: str) -> Callable[..., Found]:
    """Return a function that yields the values of numbered keys, separated by spaces."""

    def gather(entries: list[Entry], notices: list[Notice]) -> Found:
        yield setting, entries[0]._replace(value=" ".join(entry.value for entry in entries))

    return gather


# Objects that the user names: the keys `PREFIX.NAME.KIND` by prefix, and the readers of their values by kind
_NAMED: Final[dict[str, dict[str, readers.Reader]]] = {
    "default_users": {
        **dict.fromkeys(("vhost_pattern", "configure", "write", "read"), readers.pattern),
        **dict.fromkeys(("password", "tags"), readers.text),
    },
    "default_policies.operator": {
        **dict.fromkeys(("vhost_pattern", "queue_pattern"), readers.pattern),
        **dict.fromkeys(("expires", "message_ttl"), readers.duration_ms),
        **dict.fromkeys(("max_length", "max_in_memory_length", "delivery_limit"), readers.positive),
        **dict.fromkeys(("max_length_bytes", "max_in_memory_bytes"), readers.byte_size),
        **dict.fromkeys(("apply_to", "classic_queues.ha_mode", "classic_queues.ha_sync_mode"), readers.text),
        "classic_queues.ha_params": readers.number_or_names,
        "classic_queues.queue_version": readers.positive,
    },
    "default_limits.vhosts": {
        "pattern": readers.pattern,
        **dict.fromkeys(("max_connections", "max_queues"), readers.positive),
    },
}


def _named(prefix: str, setting: str) -> Callable[..., Found]:
    """Return a function that yields the objects of a prefix, as JSON."""

    def gather(entries: list[Entry], notices: list[Notice]) -> Found:
        # Few users have such keys, and the import slows the start.
        import json

        objects: dict[str, dict[str, Any]] = {}
        for entry in entries:
            try:
                name, kind, value = _of_object(prefix, entry)
                objects.setdefault(name, {})[kind.rpartition(".")[2]] = value
            except KeyError:
                notices.append(Notice(f"{entry.place}: unknown key '{entry.key}'"))
            except ValueError as error:
                notices.append(_wrong(entry, error))
        if objects:
            yield setting, entries[0]._replace(value=json.dumps(objects, sort_keys=True))

    return gather


def _of_object(prefix: str, entry: Entry) -> tuple[str, str, Any]:
    """Return name, kind and value of a key of an object. Raises KeyError for an unknown kind, and ValueError."""
    name, *rest = parts(entry.key)[prefix.count(".") + 1 :]
    kind = ".".join(rest)
    return name, kind, _NAMED[prefix][kind](entry.value)


def _auth_backends(entries: list[Entry], notices: list[Notice]) -> Found:
    """Gather the chain of backends: keys `auth_backends.N`, `.N.authn`, `.N.authz` and `.N.authz.M`."""
    links: dict[str, tuple[list[str], list[str]]] = {}
    for entry in entries:
        name = backend(entry.value)
        if name not in readers.AUTH_BACKENDS:
            notices.append(_without_effect(entry))
            continue
        _, number, *rest = parts(entry.key)
        if rest[:1] not in ([], ["authn"], ["authz"]):
            notices.append(Notice(f"{entry.place}: unknown key '{entry.key}'"))
            continue
        links.setdefault(number, ([], []))[rest[:1] == ["authz"]].append(name)
    words = []
    for _, (authn, authz) in sorted(links.items(), key=lambda link: (len(link[0]), link[0])):
        # Where one is missing, RabbitMQ takes the other.
        first = (authn or authz)[0]
        words.append(first if authz in ([], [first]) else f"{first}|{'+'.join(authz)}")
    if words and words != ["internal"]:
        yield "auth_backends", entries[0]._replace(value=" ".join(words))


def _cached_backend(entries: list[Entry], notices: list[Notice]) -> Found:
    """Gather the backends of the cache: `auth_cache.cached_backend.authn` and `.authz`."""
    found = {parts(entry.key)[-1]: backend(entry.value) for entry in entries}
    if unknown := [entry for entry in entries if parts(entry.key)[-1] not in ("authn", "authz")]:
        notices.append(Notice(f"{unknown[0].place}: unknown key '{unknown[0].key}'"))
        return
    authn = found.get("authn") or found["authz"]
    authz = found.get("authz", authn)
    yield "auth_cache_backend", entries[0]._replace(value=authn if authn == authz else f"{authn}|{authz}")


_FAMILIES: Final[dict[str, Callable[[list[Entry], list[Notice]], Found]]] = {
    **{prefix: _named(prefix, prefix.partition(".")[0]) for prefix in _NAMED},
    "listeners.tcp": _listeners,
    "listeners.ssl": _tls_listeners,
    "loopback_users": _names("loopback_users"),
    "default_user_tags": _names("default_user_tags"),
    "deprecated_features.permit": _deprecated,
    "auth_backends": _auth_backends,
    "auth_cache.cached_backend": _cached_backend,
    "auth_mechanisms": _list("auth_mechanisms"),
    "ssl_options.versions": _list("tls_versions"),
    "management.ssl.versions": _list("management_tls_versions"),
    "management.listener.ssl_opts.versions": _list("management_tls_versions"),
}

# Prefix of keys that only Erlang terms have.
APPLICATION: Final = "rabbit"

# Keys, and prefixes of keys, that tune parts of RabbitMQ that this broker lacks; ignoring them changes nothing.
# fmt: off
SILENT: Final = (
    APPLICATION, "aws", "event_exchange", "socket_writer",
    "auth_backends.internal", "background_gc_enabled", "background_gc_target_interval", "classic_queue",
    "cluster_formation", "cluster_keepalive_interval", "cluster_node_type", "cluster_nodes",
    "cluster_partition_handling",
    "cluster_queue_limit", "cluster_tags", "collect_statistics", "collect_statistics_interval",
    "default_worker_pool_size", "definitions.hashing", "definitions.import_backend",
    "definitions.skip_if_unchanged", "delegate_count", "disk_monitor_interval", "distribution", "erlang",
    "feature_flags", "hipe_compile", "listeners.ssl", "log.channel", "log.connection", "log.console.color_esc_seqs",
    "log.console.formatter", "log.console.stdio", "log.console.use_colors", "log.default", "log.feature_flags",
    "log.federation", "log.file.formatter", "log.file.rotation", "log.ldap", "log.mirroring", "log.prelaunch",
    "log.queue", "log.ra", "log.upgrade", "management.db_cache_multiplier", "management.http_log_dir",
    "management.listener.server", "management.listener.ssl", "management.rates_mode",
    "management.sample_retention_policies", "management.tcp", "management_agent", "memory_monitor_interval",
    "message_store_shutdown_timeout", "mirroring_sync_batch_size", "mirroring_sync_max_throughput",
    "mnesia_table_loading_retry_limit", "mnesia_table_loading_retry_timeout", "msg_store_credit_disc_bound",
    "msg_store_file_size_limit", "msg_store_io_batch_size", "net_ticktime", "nodename", "num_acceptors",
    "prometheus.tcp", "queue_index_embed_msgs_below", "queue_leader_locator", "queue_master_locator",
    "quorum_queue", "rabbitmq_shovel.defaults", "raft", "reverse_dns_lookups", "ssl_allow_poodle_attack",
    "sysmon_handler", "tcp_listen_options", "vhost_restart_strategy", "vm_memory_calculation_strategy",
    "vm_memory_high_watermark_paging_ratio",
)

# Keys that users may rely on.
WITHOUT_EFFECT: Final = (
    "amqp10_client", "amqp1_0", "amqp_client", "auth_backends", "auth_cache", "auth_http", "auth_ldap", "auth_oauth2",
    "channel_interceptor", "channel_tx_message_max", "config_entry_decoder", "consumer_disconnected_timeout",
    "credential_validator",
    "credentials_obfuscation", "definitions", "exchange_types", "federation",
    "http_dispatch", "link_max_per_session", "listeners.startup_delay", "log.error_logger_format_depth",
    "log.exchange", "log.journald", "log.summarize_process_state", "log.syslog", "log.user", "management",
    "message_interceptors", "metadata_store", "motd_file", "mqtt", "node_tags",
    "prevent_startup_if_node_was_reset", "product", "prometheus", "proxy_protocol", "queue_types",
    "ranch_connection_max", "runtime_parameters", "server_properties", "session_max_per_connection", "shovel",
    "ssl_cert_login_san_index", "ssl_cert_login_san_type", "ssl_handshake_timeout", "ssl_options", "stomp", "stream",
    "total_memory_available_override_value", "trace_vhosts", "tracing", "trust_store", "vhost_max",
    "web_mqtt", "web_stomp",
)
# fmt: on


def _begins(key: str, beginnings: tuple[str, ...]) -> bool:
    return any(key == beginning or key.startswith(f"{beginning}.") for beginning in beginnings)


def is_ignored(entry: Entry) -> bool:
    """Return whether a key has no effect, and the log does not name it."""
    return _about(entry) is None and not settings_at(entry.key)


def settings_at(key: str) -> list[str]:
    """Return the settings that a key may give, whatever its value is."""
    pattern = f"{_family(key)}.*"
    return [declared.name for declared in SETTINGS if key in declared.keys or pattern in declared.keys]


def are_gathered(key: str, other: str) -> bool:
    """Return whether two keys give one setting together."""
    return key != other and _family(key) == _family(other) and _family(key) in _FAMILIES


def _about(entry: Entry) -> Notice | None:
    """Return a notice about a key that is not a setting."""
    if _begins(entry.key, SILENT):
        return None
    if _begins(entry.key, WITHOUT_EFFECT):
        return _without_effect(entry)
    return Notice(f"{entry.place}: unknown key '{entry.key}'")
