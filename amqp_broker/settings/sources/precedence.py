"""Precedence of the sources of settings: the command line, the environment, files, defaults."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from amqp_broker.settings import plugins
from amqp_broker.settings.settings import SETTINGS, Settings, SettingsError
from amqp_broker.settings.sources import conf_keys, rabbitmq_conf
from amqp_broker.settings.sources.conf_keys import Given, Notice
from amqp_broker.settings.sources.rabbitmq_conf import Entry

ERLANG_ARGUMENTS: Final = "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"
# Prefixes of variables with which RabbitMQ's image refuses to start since 3.9.
REMOVED_FROM_IMAGE: Final = ("RABBITMQ_SSL_", "RABBITMQ_MANAGEMENT_SSL_")

# Variables of RabbitMQ that mean nothing here (rabbit_env.erl, rabbitmq-server, rabbitmq-env).
VARIABLES_WITHOUT_EFFECT: Final = tuple(
    f"RABBITMQ_{name}"
    for name in (
        *("CTL_ERL_ARGS", "DBG", "DISTRIBUTION_BUFFER_SIZE", "DIST_PORT", "ERLANG_COOKIE", "FEATURE_FLAGS"),
        *("FEATURE_FLAGS_FILE", "IO_THREAD_POOL_SIZE", "KEEP_PID_FILE_ON_EXIT", "LOG_FF_REGISTRY"),
        *("MAX_NUMBER_OF_ATOMS", "MAX_NUMBER_OF_PROCESSES", "MOTD_FILE", "PLUGINS_DIR", "PLUGINS_EXPAND_DIR"),
        *("PRODUCT_NAME", "PRODUCT_VERSION", "QUORUM_DIR", "SCHEDULER_BIND_TYPE", "STREAM_DIR", "UPGRADE_LOG"),
        "USE_LONGNAME",
    )
)


class Loaded(NamedTuple):
    """Settings, the sources of those that are not defaults, and notices for the user."""

    settings: Settings
    places: dict[str, str]
    notices: list[Notice]
    # All sources that were read, the most important first, and the entries of files and arguments.
    read: list[str]
    entries: list[Entry]
    # The files that RabbitMQ lists as its configuration, in its order: advanced.config first.
    files: tuple[str, ...] = ()

    @property
    def wrong(self) -> list[str]:
        """Errors in files, one sentence each."""
        return [notice.text for notice in self.notices if notice.is_wrong]

    def check_strict(self) -> None:
        """Raise SettingsError if a file has an error and `strict_config` is set."""
        if self.settings.strict_config and self.wrong:
            raise SettingsError("\n".join(self.wrong))


def load(options: Mapping[str, Any], environment: Mapping[str, str]) -> Loaded:
    """Return settings from the command line (None: not given), the environment, and files that they name.

    Raises SettingsError for a wrong value in the options or the environment, and for a file that cannot be read.
    """
    given: dict[str, Given] = {}
    notices: list[Notice] = []
    read: list[str] = []
    everything: list[Entry] = []
    for declared in SETTINGS:
        name = declared.name
        if options.get(name) is not None:
            option = (declared.options or (name,))[-1].partition("/")[0]
            value = declared.read(option, str(options[name]))
            given[name] = Given(value, option)
            continue
        for variable in declared.environment:
            text = environment.get(variable)
            # Compose files and RabbitMQ's scripts leave a variable empty to mean that it is not set.
            if text is None or (text == "" and variable.startswith("RABBITMQ_")):
                continue
            convert = _VARIABLES.get(variable)
            text = text if convert is None else convert(variable, text, environment)
            if text is not None:
                given[name] = Given(declared.read(variable, text), variable)
                break
    read += [place for name, (_, place) in given.items() if name not in _FILES]
    notices += [
        Notice(f"{name} has its effect here, but RabbitMQ's image refuses it: use rabbitmq.conf instead")
        for name in sorted(environment)
        if name.startswith(REMOVED_FROM_IMAGE)
    ]
    notices += [
        Notice(f"{name} has no effect here", is_wrong=False)
        for name in VARIABLES_WITHOUT_EFFECT
        if environment.get(name)
    ]
    if environment.get(ERLANG_ARGUMENTS):
        # Imported here and below because few users have Erlang terms, and the import slows the start.
        from amqp_broker.settings.sources import erlang_settings

        entries, wrong = erlang_settings.from_arguments(environment[ERLANG_ARGUMENTS], ERLANG_ARGUMENTS)
        notices += [Notice(text) for text in wrong]
        read.append(ERLANG_ARGUMENTS)
        _add(given, entries, notices)
        everything += entries
    entries, terms, plain = _entries_of_files(given, environment, notices)
    files = [*reversed(terms), *reversed(plain)]
    _add(given, entries, notices)
    _add_plugins(given, notices, files)
    settings = Settings(**{name: value for name, (value, _) in given.items()})
    places = {name: place for name, (_, place) in given.items()}
    read = [*dict.fromkeys(read), *files]
    return Loaded(settings, places, notices, read, [*everything, *entries], (*terms, *plain))


def _add(given: dict[str, Given], entries: Iterable[Entry], notices: list[Notice]) -> None:
    """Add the settings of entries that no earlier source has given."""
    found, about_entries = conf_keys.settings_of(entries)
    notices += about_entries
    if "port" in given:
        found.pop("extra_listeners", None)  # the given port replaces all listeners
    for name, value in found.items():
        given.setdefault(name, value)


# Conversion of variables to the texts of their settings


def _contents(variable: str, text: str, environment: Mapping[str, str]) -> str:
    return _read_file(Path(text), variable).rstrip("\r\n")


def _log_file(variable: str, text: str, environment: Mapping[str, str]) -> str | None:
    return None if text in ("-", "-stderr") else text


def _log_level(variable: str, text: str, environment: Mapping[str, str]) -> str | None:
    """Return the general level: RABBITMQ_LOG also has levels of categories (`connection=debug`) and `+color`."""
    return next((word for word in text.split(",") if word.isalpha()), None)


def _verify(variable: str, text: str, environment: Mapping[str, str]) -> str:
    return {"verify_peer": "true", "verify_none": "false"}.get(text, text)


def _node_folder(variable: str, text: str, environment: Mapping[str, str]) -> str:
    """Return the folder of this node, one of several in the given one."""
    import platform

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


def _read_file(path: Path, source: str) -> str:
    """Return the text of a file. Raises SettingsError that names the file and its source."""
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise SettingsError(f"{source}: cannot read '{path}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{source}: '{path}' is not a text file in UTF-8") from None


def _entries_of_files(
    given: dict[str, Given], environment: Mapping[str, str], notices: list[Notice]
) -> tuple[list[Entry], list[str], list[str]]:
    """Return the entries of all files, the most important last.

    The names of files with Erlang terms follow, then those of the others.
    """
    entries: list[Entry] = []
    terms: list[tuple[Path, str]] = []
    plain: list[str] = []
    for name in ("config_file", "config_files", "advanced_config_file"):
        if name not in given or not given[name].value:
            continue
        text, place = given[name]
        is_advanced = name == "advanced_config_file"
        try:
            paths = _paths_of(text, ".config" if is_advanced else ".conf")
            old = _old_file(Path(text)) if name == "config_file" else None
        except OSError as error:
            raise SettingsError(f"{place}: cannot read '{text}': {error.strerror}") from None
        if old is not None:
            notices += [Notice(BOTH_FORMATS.format(old), is_wrong=False)] if paths else []
            paths = [old]
        if not paths:
            what = f"no file *.conf in '{text}'" if Path(text).is_dir() else f"no file '{text}'"
            if not place.startswith("RABBITMQ_"):
                raise SettingsError(f"{place}: there is {what}")
            notices.append(Notice(f"{place}: there is {what}", is_wrong=False))
        for path in paths:
            content = _read_file(path, place)
            if is_advanced and terms:
                notices.append(Notice(f"{path} is not read, because {terms[0][0]} has its format", is_wrong=False))
            elif is_advanced or path.suffix == ".config" or _TERMS.match(content):
                terms.append((path, content))
            else:
                found, wrong = rabbitmq_conf.parse(content, str(path))
                plain.append(str(path))
                entries += found
                notices += [Notice(f"{line}: the line is not `key = value`") for line in wrong]
    entries, wrong = rabbitmq_conf.substituted(entries, environment)
    notices += [Notice(line) for line in wrong]
    for path, content in terms:
        from amqp_broker.settings.sources import erlang_settings

        found, about = erlang_settings.from_config(content, str(path))
        entries += found
        notices += about
    return entries, [str(path) for path, _ in terms], plain


# Settings that name files with settings.
_FILES: Final = ("config_file", "config_files", "advanced_config_file", "enabled_plugins_file")
# RabbitMQ's lines for a file of each format.
BOTH_FORMATS: Final = """\
Both old (.config) and new (.conf) format config files exist.
Using the old format config file: {}
Please update your config files to the new format and remove the old file"""
# The beginning of Erlang terms, behind comments; no line of rabbitmq.conf begins so.
_TERMS: Final = re.compile(r"(?:\s|%[^\n]*\n)*\[")


def _old_file(path: Path) -> Path | None:
    """Return the file with the suffix .config, if the path is that of a configuration without its suffix."""
    old = path.with_name(f"{path.name}.config")
    is_whole = "*" in path.name or path.is_dir() or _exists(path)
    return old if path.name and not is_whole and _exists(old) else None


def _paths_of(text: str, suffix: str) -> list[Path]:
    """Return the files of a path, which may be a folder, a pattern, or a file without its suffix."""
    path = Path(text)
    if path.is_dir():
        return sorted(path.glob(f"*{suffix}"))
    if "*" in path.name:
        return sorted(path.parent.glob(path.name))
    return [found for found in (path, path.with_name(path.name + suffix)) if _exists(found)][:1]


def _exists(path: Path) -> bool:
    """Return whether a file exists. Raises OSError where `Path.exists` returns False since Python 3.14."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _add_plugins(given: dict[str, Given], notices: list[Notice], files: list[str]) -> None:
    """Derive from a list or a file of plugins whether the HTTP API and metrics are served."""
    if "plugins" not in given:
        path = Path(given["enabled_plugins_file"].value if "enabled_plugins_file" in given else "")
        if not path.is_file():
            return
        files.append(str(path))
        from amqp_broker.settings.sources import erlang_settings

        try:
            listed = erlang_settings.plugins(_read_file(path, given["enabled_plugins_file"].place))
        except erlang_settings.TermError as error:
            notices.append(Notice(f"{path}: {error}"))
            return
        given["plugins"] = Given(",".join(listed) or plugins.NO_PLUGINS, str(path))
    text, place = given["plugins"]
    names = plugins.enabled(text)
    given.setdefault("management", Given("rabbitmq_management" in names, place))
    given.setdefault("prometheus", Given("rabbitmq_prometheus" in names, place))
    if missing := [name for name in names if name not in plugins.BUILT_IN]:
        notices.append(Notice(f"{place}: these plugins are not available: {', '.join(missing)}", is_wrong=False))
