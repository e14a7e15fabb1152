"""`amqp-broker check-config`: all settings, their sources and their errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

import click

from amqp_broker.cli.own.setting_options import settings_as_options
from amqp_broker.settings.settings import SETTINGS, SettingsError
from amqp_broker.settings.sources.precedence import Loaded, load

MASK: Final = "********"


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


def is_json(text: str) -> bool:
    """Return whether definitions are JSON, not the name of a file."""
    return text.lstrip().startswith("{")


def show(loaded: Loaded) -> None:
    """Print the settings, and remarks on stderr. Raises SettingsError if a file has errors."""
    for line in report(loaded):
        click.echo(line)
    for notice in loaded.notices:
        if not notice.is_wrong:
            click.echo(f"{notice.text}.", err=True)
    if loaded.wrong:
        raise SettingsError("\n".join(loaded.wrong))


@click.command("check-config")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@settings_as_options
def check_config(files: tuple[str, ...], **given: Any) -> None:
    """Print the settings that `serve` would use, and their sources.

    FILE is a rabbitmq.conf, a folder of such files or an advanced.config. Without FILE, the files that the environment
    names are read. The exit code is 78 if a file has errors.
    """
    for file in files or (given["config_file"],):
        show(load({**given, "config_file": file}, os.environ))
