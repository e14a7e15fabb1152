"""Settings as variables of RabbitMQ's applications, in the forms of Erlang."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from amqp_broker.cli.rabbitmq.columns import Atom, Characters
from amqp_broker.settings.settings import SETTINGS, Setting
from amqp_broker.settings.sources.erlang_settings import place_of

# The application of the settings that RabbitMQ does not have.
OWN: Final = "amqp_broker"
Values = Mapping[str, Any]


def of(values: Values) -> dict[str, dict[str, Any]]:
    """Return the variables of each application; a group of variables is a dictionary."""
    # Without TLS, RabbitMQ has no options of TLS.
    found: dict[str, dict[str, Any]] = {"rabbit": {"ssl_options": {}}}
    for declared in SETTINGS:
        if declared.name in values:
            application, path, term = _variable(declared, values)
            if term not in (None, ""):
                _put(found.setdefault(application, {}), path, term)
    return found


def terms(group: Mapping[str, Any]) -> list[tuple[Atom, Any]]:
    """Return a group as a list of pairs, in the order of their names."""
    return [(Atom(name), terms(value) if isinstance(value, dict) else value) for name, value in sorted(group.items())]


def _put(group: dict[str, Any], path: list[str], term: Any) -> None:
    for name in path[:-1]:
        group = group.setdefault(name, {})
    group[path[-1]] = term


def _variable(declared: Setting, values: Values) -> tuple[str, list[str], Any]:
    """Return the application of a setting, the names on the way to its variable, and the term."""
    application, key = place_of(_key(declared))
    make = _TERMS.get(key)
    if key in _WHOLE:
        key = key.partition(".")[0]
    if make is not None:
        return application, key.split("."), make(values, values[declared.name])
    if not declared.keys or key.startswith(_OWN_FORMS):
        return OWN, [declared.name], values[declared.name]
    return application, key.split("."), values[declared.name]


def _key(declared: Setting) -> str:
    """Return the key of rabbitmq.conf that is called like the variable."""
    # Keys without groups come first.
    plain = [key for key in declared.keys if "." not in key]
    return (plain[-1] if plain else next(iter(declared.keys), declared.name)).removesuffix(".*")


def _binaries(values: Values, text: str) -> list[str]:
    return text.split()


def _atoms(values: Values, text: str) -> list[Atom]:
    return [Atom(word) for word in text.split()]


def _atom(values: Values, text: str) -> Atom:
    return Atom(text)


def _characters(values: Values, text: str) -> Characters:
    return Characters(text)


def _tcp_listeners(values: Values, value: Any) -> list[Any]:
    if not values.get("tcp", True):
        return []
    listeners = [address.rpartition(":") for address in values.get("extra_listeners", "").split()]
    others = [(host.strip("[]"), int(port)) for host, _, port in listeners]
    return [
        (Characters(host), port) if host else port
        for host, port in [(values.get("host", ""), values.get("port", 0)), *others]
    ]


def _tls_listeners(values: Values, port: int | None) -> list[int]:
    return [] if port is None else [port]


def _permissions(values: Values, value: Any) -> list[str]:
    return [values[f"default_permissions_{kind}"] for kind in ("configure", "write", "read")]


def _limit(relative: str) -> Callable[[Values, str], Any]:
    """Return a function of a limit: a share of the memory, or an amount with or without a unit."""

    def limit(values: Values, text: str) -> Any:
        if text.replace(".", "", 1).isdecimal() and "." in text:
            return (Atom(relative), float(text)) if relative else float(text)
        amount = int(text) if text.isdecimal() else Characters(text)
        return amount if relative else (Atom("absolute"), amount)

    return limit


def _disk_limit(values: Values, text: str) -> Any:
    # RabbitMQ's default is a number, a value of a file is a text.
    return 50_000_000 if text == "50MB" else _limit("mem_relative")(values, text)


def _timeout(values: Values, milliseconds: int) -> Any:
    return milliseconds or Atom("undefined")


def _prefetch(values: Values, count: int) -> tuple[bool, int]:
    return (False, count)


def _verify(values: Values, is_on: bool) -> Atom | None:
    return Atom("verify_peer") if is_on else None


def _true(values: Values, is_on: bool) -> bool | None:
    return is_on or None


def _versions(values: Values, text: str) -> list[Atom] | None:
    # RabbitMQ reads the numbered keys of rabbitmq.conf from the last to the first.
    return _atoms(values, text)[::-1] or None


def _queue_type(values: Values, text: str) -> Atom | None:
    # RabbitMQ has no variable unless the configuration sets it.
    return None if text == "classic" else Atom(f"rabbit_{text}_queue")


def _objects(values: Values, text: str) -> list[Any] | None:
    """Return the objects that new vhosts get: pairs of a name and its keys."""
    if not text:
        return None
    return [(name, [_key_of_object(*pair) for pair in keys.items()]) for name, keys in json.loads(text).items()]


def _key_of_object(key: str, value: Any) -> tuple[str, Any]:
    return key, Characters(value) if key in ("pattern", "vhost_pattern") else value


def _file(values: Values, text: str) -> Any:
    return Characters(text) if text else False


# Forms other than those of the settings, by the key.
_TERMS: Final[Mapping[str, Callable[[Values, Any], Any]]] = {
    "tcp_listeners": _tcp_listeners,
    "ssl_listeners": _tls_listeners,
    "ssl_options.verify": _verify,
    "ssl_options.fail_if_no_peer_cert": _true,
    "ssl_cert_login_from": _atom,
    "password_hashing_module": _atom,
    "default_permissions.configure": _permissions,
    "default_permissions.write": _permissions,
    "default_permissions.read": _permissions,
    "loopback_users": _binaries,
    "default_user_tags": _atoms,
    "auth_mechanisms": _atoms,
    "ssl_options.versions": _versions,
    "ssl_config.versions": _versions,
    "disk_free_limit.mem_relative": _disk_limit,
    "vm_memory_high_watermark": _limit(""),
    "consumer_timeout": _timeout,
    "default_consumer_prefetch": _prefetch,
    "default_queue_type": _queue_type,
    "default_limits.vhosts": _objects,
    "default_policies.operator": _objects,
    "log.console.level": _atom,
    "log.file.level": _atom,
    "log.file.file": _file,
    **dict.fromkeys(
        (
            "cluster_name",
            "load_definitions",
            "path_prefix",
            *(f"{group}.{name}file" for group in ("ssl_options", "ssl_config") for name in ("cacert", "cert", "key")),
            "tcp_config.ip",
        ),
        _characters,
    ),
}
# Variables whose groups in rabbitmq.conf are no groups in Erlang.
_WHOLE: Final = (
    "disk_free_limit.mem_relative",
    *(f"default_permissions.{kind}" for kind in ("configure", "write", "read")),
)
# Settings whose form in Erlang is not known here.
_OWN_FORMS: Final = (
    "auth_cache.",
    "auth_http.",
    "message_interceptors.",
    "deprecated_features.",
    "log.console.formatter",
    "log.dir",
)
