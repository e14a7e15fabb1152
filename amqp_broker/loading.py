"""Where settings come from: the command line, the environment, files, and last the defaults."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, NamedTuple

from amqp_broker import conf_keys, rabbitmq_conf
from amqp_broker.conf_keys import Given, Notice
from amqp_broker.config import Config, ConfigError, names_in_environment, options_of, read
from amqp_broker.rabbitmq_conf import Entry

ERLANG_ARGUMENTS: Final = "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"
# What RabbitMQ's image refuses to start with since 3.9.
REMOVED_FROM_IMAGE: Final = ("RABBITMQ_SSL_", "RABBITMQ_MANAGEMENT_SSL_")

# Plugins that are a part of this broker, or whose purpose is: RabbitMQ's own, and one of its community.
_BUILT_IN: Final = {
    "rabbitmq_auth_mechanism_ssl",
    "rabbitmq_consistent_hash_exchange",
    "rabbitmq_delayed_message_exchange",
    "rabbitmq_event_exchange",
    "rabbitmq_management",
    "rabbitmq_management_agent",
    "rabbitmq_prometheus",
    "rabbitmq_random_exchange",
    "rabbitmq_recent_history_exchange",
    "rabbitmq_sharding",
    "rabbitmq_shovel",
    "rabbitmq_shovel_management",
    "rabbitmq_web_dispatch",
}
# Those that need the HTTP API, which RabbitMQ starts with them.
_WITH_MANAGEMENT: Final = {
    "rabbitmq_management",
    *("rabbitmq_federation_management", "rabbitmq_shovel_management", "rabbitmq_stream_management"),
    *("rabbitmq_top", "rabbitmq_tracing"),
}


class Loaded(NamedTuple):
    """Settings, where each that is not the default is from, and what the user should be told."""

    config: Config
    places: dict[str, str]
    notices: list[Notice]

    @property
    def wrong(self) -> list[str]:
        """What is wrong with files, in sentences."""
        return [notice.text for notice in self.notices if notice.is_wrong]

    def check_strict(self) -> None:
        """Raise ConfigError if something is wrong and `strict_config` is set."""
        if self.config.strict_config and self.wrong:
            raise ConfigError("\n".join(self.wrong))


def load(options: Mapping[str, Any], environment: Mapping[str, str]) -> Loaded:
    """Settings from the command line (None: not given), the environment, and the files that these name.

    Raises ConfigError for what is wrong on the command line and in the environment, and for a file that cannot be read.
    """
    given: dict[str, Given] = {}
    notices: list[Notice] = []
    for declared in fields(Config):
        name = declared.name
        if options.get(name) is not None:
            option = (options_of(declared) or (name,))[-1].partition("/")[0]
            value = read(declared, option, str(options[name]))
            given[name] = Given(value, option)
            continue
        for variable in names_in_environment(declared):
            text = environment.get(variable)
            # Compose files and RabbitMQ's scripts set variables to nothing for "not set".
            if text is None or (text == "" and variable.startswith("RABBITMQ_")):
                continue
            convert = _VARIABLES.get(variable)
            text = text if convert is None else convert(variable, text, environment)
            if text is not None:
                given[name] = Given(read(declared, variable, text), variable)
                break
    notices += [
        Notice(f"{name} is honoured here, but RabbitMQ's image refuses it: say it in rabbitmq.conf")
        for name in sorted(environment)
        if name.startswith(REMOVED_FROM_IMAGE)
    ]
    if environment.get(ERLANG_ARGUMENTS):
        # Imported only here and below: hardly anybody has Erlang's terms, and everybody waits for a start.
        from amqp_broker import erlang_settings

        entries, wrong = erlang_settings.from_arguments(environment[ERLANG_ARGUMENTS], ERLANG_ARGUMENTS)
        notices += [Notice(text) for text in wrong]
        _add(given, entries, notices)
    _add(given, _entries_of_files(given, notices), notices)
    _add_plugins(given, notices)
    config = Config(**{name: value for name, (value, _) in given.items()})
    return Loaded(config, {name: place for name, (_, place) in given.items()}, notices)


def _add(given: dict[str, Given], entries: Iterable[Entry], notices: list[Notice]) -> None:
    """Take what entries say of what is not given yet."""
    found, told = conf_keys.settings_of(entries)
    notices += told
    if "port" in given:
        found.pop("extra_listeners", None)  # somebody wants it elsewhere
    for name, value in found.items():
        given.setdefault(name, value)


# Variables of the environment whose text is not the setting's


def _contents(variable: str, text: str, environment: Mapping[str, str]) -> str:
    return _read_file(Path(text), variable).rstrip("\r\n")


def _log_file(variable: str, text: str, environment: Mapping[str, str]) -> str | None:
    return None if text in ("-", "-stderr") else text


def _log_level(variable: str, text: str, environment: Mapping[str, str]) -> str | None:
    """RABBITMQ_LOG has levels of categories (`connection=debug`) and of colours (`+color`), too."""
    return next((word for word in text.split(",") if word.isalpha()), None)


def _verify(variable: str, text: str, environment: Mapping[str, str]) -> str:
    return {"verify_peer": "true", "verify_none": "false"}.get(text, text)


def _node_folder(variable: str, text: str, environment: Mapping[str, str]) -> str:
    """Folders of several nodes are side by side in this one."""
    node = environment.get("RABBITMQ_NODENAME") or f"rabbit@{platform.node()}"
    return str(Path(text) / node)


_VARIABLES: Final[dict[str, Callable[[str, str, Mapping[str, str]], str | None]]] = {
    "RABBITMQ_DEFAULT_USER_FILE": _contents,
    "RABBITMQ_DEFAULT_PASS_FILE": _contents,
    "RABBITMQ_LOGS": _log_file,
    "RABBITMQ_LOG": _log_level,
    "RABBITMQ_SSL_VERIFY": _verify,
    "RABBITMQ_MNESIA_BASE": _node_folder,
}


# Files


def _read_file(path: Path, asked_by: str) -> str:
    """Raises ConfigError that names the file and who asked for it."""
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise ConfigError(f"{asked_by}: cannot read '{path}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{asked_by}: '{path}' is not a text file in UTF-8") from None


def _entries_of_files(given: dict[str, Given], notices: list[Notice]) -> list[Entry]:
    """What all files say, the most important last."""
    entries: list[Entry] = []
    advanced: list[Path] = []
    for name in ("config_file", "config_files", "advanced_config_file"):
        if name not in given or not given[name].value:
            continue
        text, place = given[name]
        try:
            paths = _paths_of(text, ".config" if name == "advanced_config_file" else ".conf")
        except OSError as error:
            raise ConfigError(f"{place}: cannot read '{text}': {error.strerror}") from None
        if not paths:
            what = f"no file *.conf in '{text}'" if Path(text).is_dir() else f"no file '{text}'"
            if not place.startswith("RABBITMQ_"):
                raise ConfigError(f"{place}: there is {what}")
            notices.append(Notice(f"{place}: there is {what}", is_wrong=False))
        for path in paths:
            if path.suffix == ".config":
                advanced.append(path)
            else:
                found, wrong = rabbitmq_conf.parse(_read_file(path, place), str(path))
                entries += found
                notices += [Notice(f"{line}: this is not a line `key = value`") for line in wrong]
    for path in advanced:
        from amqp_broker import erlang_settings

        found, wrong = erlang_settings.from_config(_read_file(path, str(path)), str(path))
        entries += found
        notices += [Notice(line) for line in wrong]
    return entries


def _paths_of(text: str, suffix: str) -> list[Path]:
    """The files that a path stands for, which may be a folder, have no suffix, or be a pattern."""
    path = Path(text)
    if path.is_dir():
        return sorted(path.glob(f"*{suffix}"))
    if "*" in path.name:
        return sorted(path.parent.glob(path.name))
    return [found for found in (path, path.with_name(path.name + suffix)) if found.exists()][:1]


def _add_plugins(given: dict[str, Given], notices: list[Notice]) -> None:
    """If there is a list or a file of plugins, it says what is served."""
    if "plugins" in given:
        text, place = given["plugins"]
        names = _BUILT_IN if text == "ALL" else set(text.replace(",", " ").split())
    else:
        path = Path(given["enabled_plugins_file"].value if "enabled_plugins_file" in given else "")
        if not path.is_file():
            return
        from amqp_broker import erlang_settings

        place = str(path)
        try:
            names = set(erlang_settings.plugins(_read_file(path, given["enabled_plugins_file"].place)))
        except erlang_settings.TermError as error:
            notices.append(Notice(f"{place}: {error}"))
            return
    given.setdefault("management", Given(bool(names & _WITH_MANAGEMENT), place))
    given.setdefault("prometheus", Given("rabbitmq_prometheus" in names, place))
    if missing := sorted(names - _BUILT_IN):
        notices.append(Notice(f"{place}: these plugins are not here: {', '.join(missing)}", is_wrong=False))
