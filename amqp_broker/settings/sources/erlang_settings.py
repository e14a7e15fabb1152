"""Settings in Erlang terms (advanced.config, `-rabbit KEY VALUE`), read as entries of rabbitmq.conf."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from amqp_broker.settings.sources import erlang_terms
from amqp_broker.settings.sources.conf_keys import APPLICATION, Notice, settings_at
from amqp_broker.settings.sources.erlang_terms import Atom, Map
from amqp_broker.settings.sources.erlang_terms import TermError as TermError
from amqp_broker.settings.sources.rabbitmq_conf import ESCAPED_POINT, Entry

# Applications, and the prefix of their keys in rabbitmq.conf.
_PREFIXES: Final = {
    "rabbit": "",
    "rabbitmq_management": "management.",
    "rabbitmq_prometheus": "prometheus.",
    "rabbitmq_shovel": "rabbitmq_shovel.",
}
# The key of static shovels, whose value is a term of its own.
SHOVELS: Final = "rabbitmq_shovel.shovels"
# Keys with another name in rabbitmq.conf.
_RENAMED: Final = {
    "log.console.enabled": "log.console",
    "log.file.file": "log.file",
    "log.file.enabled": "log.file",
    "management.tcp_config": "management.tcp",
    "management.ssl_config": "management.ssl",
    "prometheus.tcp_config": "prometheus.tcp",
    "tcp_listeners": "listeners.tcp",
    "ssl_listeners": "listeners.ssl",
    "disk_free_limit": "disk_free_limit.absolute",
    "disk_free_limit.mem_relative": "disk_free_limit.relative",
    "vm_memory_high_watermark": "vm_memory_high_watermark.relative",
}
# Beginnings of keys whose groups are renamed as a whole.
_GROUPS: Final = ("management.", "prometheus.")
# Lists of names, each of which is a key of its own in rabbitmq.conf.
_SETS: Final = ("loopback_users", "default_user_tags")
# Lists whose members have numbers in rabbitmq.conf.
_LISTS: Final = (
    *("auth_backends", "auth_mechanisms"),
    *("ssl_options.versions", "management.ssl.versions", "management.listener.ssl_opts.versions"),
)
# Objects that new vhosts get, by their names.
_OBJECTS: Final = ("default_limits.vhosts", "default_policies.operator")
# Keys of these whose values are milliseconds in Erlang terms.
_DURATIONS: Final = ("expires", "message_ttl")
# Keys that rabbitmq.conf lacks, and that tune parts that are not here (rabbit.app of 3.10, 4.0 and 4.3).
# fmt: off
_TUNING: Final = frozenset({
    "autocluster", "autoheal_state_transition_timeout", "backing_queue_module", "channel_operation_timeout",
    "channel_tick_interval", "classic_queue_flow_control", "credentials_obfuscation_fallback_secret",
    "credit_flow_default_credit", "dead_letter_worker_consumer_prefetch",
    "dead_letter_worker_publisher_confirm_timeout", "disk_monitor_failure_retries",
    "disk_monitor_failure_retry_interval", "fhc_read_buffering", "fhc_write_buffering", "halt_on_upgrade_failure",
    "lazy_queue_explicit_gc_run_operation_threshold", "license_line", "listeners_startup_delay",
    "mirroring_flow_control", "msg_store_index_module", "msg_store_shutdown_timeout", "num_ssl_acceptors",
    "num_tcp_acceptors", "queue_explicit_gc_run_operation_threshold", "queue_index_max_journal_entries",
    "quorum_cluster_size", "quorum_commands_soft_limit", "release_series_eol_date", "ssl_apps",
    "stream_messages_soft_limit", "stream_read_ahead", "track_auth_attempt_source", "tracking_execution_timeout",
    "vhost_process_reconciliation_enabled", "vhost_process_reconciliation_run_interval", "writer_gc_threshold",
})
# fmt: on
# Keys of rabbitmq.conf for the permissions to configure, to write and to read. RabbitMQ confuses the last two.
_PERMISSIONS: Final = ("configure", "read", "write")
# Flags of the emulator whose value is a word of its own: `+S 1:1`, but `+S1:1`.
_TAKES_VALUE: Final = re.compile(r"\+[A-Za-z]+")


def from_config(text: str, name: str) -> tuple[list[Entry], list[Notice]]:
    """Return the entries of a file in the format `[{rabbit, [{heartbeat, 30}]}].`, and notices about the others."""
    try:
        term = erlang_terms.read(text)
    except TermError as error:
        return [], [Notice(f"{name}: {error}")]
    if not _is_table(term):
        return [], [Notice(f"{name}: this is not a list of applications and their settings")]
    entries: list[Entry] = []
    notices: list[Notice] = []
    for application, pairs in term:
        wrong: list[str] = []
        if application not in _PREFIXES:
            # RabbitMQ sets whatever an application may have.
            notices.append(Notice(f"{name}: settings of {application} have no effect here", is_wrong=False))
        elif not _is_table(pairs):
            wrong.append(f"{name}: the settings of {application} are not pairs")
        else:
            for key, value in pairs:
                entries += _entries(_PREFIXES[application] + key, value, name, wrong)
        notices += map(Notice, wrong)
    return entries, notices


def place_of(key: str) -> tuple[str, str]:
    """Return the application of a key of rabbitmq.conf, and its key there, with points behind groups."""
    names = {name: former for former, name in reversed(_RENAMED.items())}
    group = next((name for name in names if key.startswith(f"{name}.")), "")
    erlang = names.get(key) or (names[group] + key[len(group) :] if group.startswith(_GROUPS) else key)
    found = ((prefix, application) for application, prefix in _PREFIXES.items() if erlang.startswith(prefix))
    prefix, application = max(found)
    return application, erlang.removeprefix(prefix)


def from_arguments(text: str, name: str) -> tuple[list[Entry], list[str]]:
    """Return the entries of arguments for Erlang's virtual machine (`-rabbit heartbeat 30`), and their errors.

    Of a key in two groups the first counts, and of one twice in a group the last: so the first group is returned last.
    """
    wrong: list[str] = []
    groups: list[list[Entry]] = []
    for flag, values in flags_in(text):
        application = flag.removeprefix("-")
        if application not in _PREFIXES:
            # The value of a flag such as --erlang-cookie=… may be a secret.
            wrong.append(f"{name}: {flag.partition('=')[0] or 'a word behind no flag'} has no effect here")
            continue
        if len(values) % 2:
            wrong.append(f"{name}: {flag} has a key without a value")
        group: list[Entry] = []
        for key, value in zip(values[::2], values[1::2], strict=False):
            try:
                group += _entries(_PREFIXES[application] + key, erlang_terms.read_whole(value), name, wrong)
            except TermError:
                wrong.append(f"{name}: the value of {key} is not an Erlang term")
        groups.append(group)
    return [entry for group in reversed(groups) for entry in group], wrong


def flags_in(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each flag with its values, as Erlang's `init` groups them.

    RabbitMQ's script expands the variable without quotation marks: the shell divides it at spaces alone, so that
    quotation marks are parts of Erlang's strings and atoms. The emulator takes its own flags (`+S 1:1`) out before.
    """
    words = text.split()
    flag, values = "", list[str]()
    while words:
        word = words.pop(0)
        if word.startswith("+"):
            yield word, []
            if _TAKES_VALUE.fullmatch(word) and words and not words[0].startswith(("-", "+")):
                words.pop(0)
        elif word.startswith("-"):
            if flag or values:
                yield flag, values
            if word == "-extra":
                return
            flag, values = ("" if word == "--" else word), []
        else:
            values.append(word)
    if flag or values:
        yield flag, values


def plugins(text: str) -> list[str]:
    """Return the names in a file of enabled plugins. Raises TermError."""
    term = erlang_terms.read(text)
    if not isinstance(term, list) or not all(isinstance(name, str) for name in term):
        raise TermError("this is not a list of plugins")
    return term


def _are_pairs(term: Any) -> bool:
    return isinstance(term, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in term)


def _is_table(term: Any) -> bool:
    return _are_pairs(term) and all(isinstance(name, Atom) for name, _ in term)


def _entries(key: str, value: Any, name: str, wrong: list[str]) -> Iterator[Entry]:
    """Yield the entries of a key, whose value may be a table of further keys."""
    if key == SHOVELS:
        yield from _shovels(value, name, wrong)
        return
    if key in _TUNING:
        yield Entry(f"{APPLICATION}.{key}", "", name)
        return
    if (key, value) == ("log.file.enabled", "true"):
        # The name of the file is another key's.
        return
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], Atom):
        if key == "default_consumer_prefetch":
            value = value[1]
        else:
            value = [value]  # {absolute, 1000}
    is_group = bool(value) and _is_table(value)
    if not is_group or key.startswith(_GROUPS):
        key = _RENAMED.get(key, key)
    if key == "consumer_timeout" and not isinstance(value, int):
        # RabbitMQ then has no limit (rabbit_channel.erl, get_consumer_timeout).
        value = 0
    if isinstance(value, (str, int, float)):
        yield Entry(key, str(value), name)
    elif key.startswith("listeners.") and isinstance(value, list):
        for index, listener in enumerate(value):
            shown = ":".join(map(str, listener)) if isinstance(listener, tuple) else str(listener)
            yield Entry(f"{key}.{index}", shown, name)
        if not value:
            yield Entry(key, "none", name)
    elif key in _SETS and isinstance(value, list):
        for member in value:
            yield Entry(f"{key}.{str(member).replace('.', ESCAPED_POINT)}", "true", name)
        if not value:
            yield Entry(key, "none", name)
    elif key in _LISTS and isinstance(value, list):
        # RabbitMQ reads the keys of versions in rabbitmq.conf from the last to the first.
        value = value[::-1] if key.endswith("versions") else value
        yield from (Entry(f"{key}.{index}", str(member), name) for index, member in enumerate(value))
    elif key == "permit_deprecated_features" and isinstance(value, Map):
        for feature, is_permitted in value.pairs:
            yield Entry(f"deprecated_features.permit.{feature}", str(is_permitted), name)
    elif key in _OBJECTS and _are_pairs(value) and all(_are_pairs(inner) for _, inner in value):
        yield from _objects(key, value, name)
    elif key == "default_permissions" and isinstance(value, list) and len(value) == len(_PERMISSIONS):
        for kind, pattern in zip(_PERMISSIONS, value, strict=True):
            yield Entry(f"{key}.{kind}", str(pattern), name)
    elif key == "log_levels" and _is_table(value):
        yield from (Entry(f"log.{category}.level", str(level), name) for category, level in value)
    elif is_group:
        for inner, inner_value in value:
            yield from _entries(f"{key}.{inner}", inner_value, name, wrong)
    elif settings_at(key):
        wrong.append(f"{name}: {key} has no effect here")
    else:
        yield Entry(key, "", name)


def _objects(key: str, value: list[Any], name: str) -> Iterator[Entry]:
    """Yield the keys of objects that new vhosts get, whose names are binaries."""
    for member, pairs in value:
        for inner, inner_value in pairs:
            unit = "ms" if inner in _DURATIONS else ""
            yield Entry(f"{key}.{str(member).replace('.', ESCAPED_POINT)}.{inner}", f"{inner_value}{unit}", name)


def _shovels(value: Any, name: str, wrong: list[str]) -> Iterator[Entry]:
    """Yield the static shovels as JSON, in which tuples are lists and atoms strings."""
    try:
        yield Entry(SHOVELS, json.dumps(value), name)
    except TypeError:
        wrong.append(f"{name}: the shovels have a term that no shovel has")
