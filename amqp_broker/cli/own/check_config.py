"""`amqp-broker check-config`: all settings, their sources and their errors."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from amqp_broker.cli.own.setting_options import settings_as_options
from amqp_broker.cli.rabbitmq import rabbitmq_server
from amqp_broker.settings.settings import SETTINGS, SettingsError
from amqp_broker.settings.sources.conf_keys import are_gathered, is_ignored, settings_at
from amqp_broker.settings.sources.precedence import Loaded, load
from amqp_broker.settings.sources.rabbitmq_conf import ESCAPED_POINT, Entry

ENV_FILE: Final = "rabbitmq-env.conf"
# An assignment of the shell whose value needs no shell.
_ASSIGNMENT: Final = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)=(.*)")
MASK: Final = "********"
# Files beside rabbitmq.conf in /etc/rabbitmq, by the setting that names them.
MOUNTED: Final = {
    "config_files": "conf.d",
    "advanced_config_file": "advanced.config",
    "enabled_plugins_file": "enabled_plugins",
}


def report(loaded: Loaded) -> Iterator[str]:
    """Yield a line for each setting: `name = value` and its source; secrets are masked."""
    settings = loaded.settings.resolved()
    for declared in SETTINGS:
        value = getattr(settings, declared.name)
        if declared.is_secret or (declared.name == "definitions" and is_json(str(value))):
            shown = MASK if value else ""
        else:
            shown = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        place = loaded.places.get(declared.name, "default")
        yield f"{declared.name} = {shown}  # {place}"


def explanation(loaded: Loaded) -> Iterator[str]:
    """Yield comments: what was read, in which order, and what has no effect there."""
    if loaded.read:
        yield "# These were read; of two that give a setting, the first counts:"
    used = list(loaded.places.values())
    for number, source in enumerate(loaded.read, 1):
        count = sum(place == source or _file_of(place) == source for place in used)
        yield f"# {number}. {source}: {count} setting{'' if count == 1 else 's'}"
    keys = {entry.place: entry.key for entry in loaded.entries}
    for entry in loaded.entries:
        names = settings_at(entry.key)
        if is_ignored(entry):
            yield f"# {entry.place}: {_key(entry)} is ignored: it tunes a cluster, Erlang, or parts that are not here"
        elif names and not any(loaded.places.get(name) == entry.place for name in names):
            others = dict.fromkeys(loaded.places[name] for name in names if name in loaded.places)
            others = {place: None for place in others if not are_gathered(entry.key, keys.get(place, ""))}
            if others:
                yield f"# {entry.place}: {_key(entry)} is overridden by {', '.join(others)}"


def _file_of(place: str) -> str:
    file, _, line = place.rpartition(":")
    return file if line.isdecimal() else place


def _key(entry: Entry) -> str:
    return entry.key.replace(ESCAPED_POINT, "\\.")


def of_folder(folder: Path) -> dict[str, str]:
    """Return the settings that name the files of a folder like /etc/rabbitmq; none for any other folder."""
    found = {name: folder / file for name, file in MOUNTED.items() if (folder / file).exists()}
    if not found and not (folder / ENV_FILE).exists():
        return {}
    if any((folder / f"rabbitmq.{suffix}").exists() for suffix in ("conf", "config")):
        found["config_file"] = folder / "rabbitmq"
    return {"config_file": "", **{name: str(path) for name, path in found.items()}}


def of_script(file: Path) -> tuple[dict[str, str], list[str]]:
    """Return the variables that a rabbitmq-env.conf sets, and the lines that only the shell understands.

    The start runs the file; a check does not run what it is asked about.
    """
    found: dict[str, str] = {}
    others: list[str] = []
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        pair = _assignment(line)
        if pair is None:
            others.append(f"# {file}:{number}: the shell reads this line at the start; it is not checked")
        else:
            found[pair[0] if pair[0].startswith(("RABBITMQ_", "AMQP_BROKER_")) else f"RABBITMQ_{pair[0]}"] = pair[1]
    return found, others


def of_environment(script: Path) -> Mapping[str, str]:
    """Return the environment with the variables of a rabbitmq-env.conf, and print what it sets."""
    if not script.is_file():
        return os.environ
    found, others = of_script(script)
    click.echo(f"# {script} sets {', '.join(found) or 'nothing'}")
    for line in others:
        click.echo(line)
    environment = {**found, **os.environ}
    arguments = rabbitmq_server.settings(environment).get(rabbitmq_server.ERL_ARGS)
    return environment if arguments is None else {**environment, rabbitmq_server.ERL_ARGS: arguments}


def _assignment(line: str) -> tuple[str, str] | None:
    """Return name and value of `NAME=value`, `NAME="a value"` or `export NAME=value`; None for any other line."""
    found = _ASSIGNMENT.fullmatch(line.strip())
    if found is None or re.search(r"[$`\\;&|]", found[2]):
        return None
    try:
        words = shlex.split(found[2], comments=True)
    except ValueError:
        return None
    return (found[1], " ".join(words)) if len(words) <= 1 else None


def is_json(text: str) -> bool:
    """Return whether definitions are JSON, not the name of a file."""
    return text.lstrip().startswith("{")


def show(loaded: Loaded) -> None:
    """Print the settings, and remarks on stderr. Raises SettingsError if a file has errors."""
    for line in (*report(loaded), *explanation(loaded)):
        click.echo(line)
    for notice in loaded.notices:
        if not notice.is_wrong:
            click.echo(f"{notice.text}.", err=True)
    if loaded.wrong:
        raise SettingsError("\n".join(loaded.wrong))
    if loaded.settings.static_shovels:
        from amqp_broker.server import static_shovels

        static_shovels.configured(loaded.settings)


@click.command("check-config")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@settings_as_options
def check_config(files: tuple[str, ...], **given: Any) -> None:
    """Print the settings that `serve` would use, and their sources.

    FILE is a rabbitmq.conf, a folder of such files, a folder like /etc/rabbitmq or an advanced.config. Without FILE,
    the files that the environment names are read. Comments at the end say what was read, in which order, and what has
    no effect. The exit code is 78 if a file has errors.
    """
    for file in files or (given["config_file"],):
        is_folder = bool(file) and Path(file).is_dir()
        names = of_folder(Path(file)) if is_folder else {}
        environment = of_environment(Path(file) / ENV_FILE) if is_folder else os.environ
        show(load({**given, "config_file": file, **names}, environment))
