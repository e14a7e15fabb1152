"""`amqp-broker check-config`: what the settings are, where each is from, and what is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

import click

from amqp_broker.cli.options import settings_as_options
from amqp_broker.config import Config, ConfigError
from amqp_broker.loading import Loaded, load

MASK: Final = "********"


def report(loaded: Loaded) -> Iterator[str]:
    """A line for each setting: `name = value`, and its place; secrets are not shown."""
    config = loaded.config.resolved()
    for declared in fields(Config):
        value = getattr(config, declared.name)
        if declared.metadata["secret"] or (declared.name == "definitions" and is_json(str(value))):
            shown = MASK if value else ""
        else:
            shown = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        place = loaded.places.get(declared.name, "default")
        yield f"{declared.name} = {shown}  # {place}"


def is_json(text: str) -> bool:
    """Whether definitions are given themselves, and not the name of a file."""
    return text.lstrip().startswith("{")


def show(loaded: Loaded) -> None:
    """Print the settings, and on stderr what is to be said of them. Raises ConfigError if something is wrong."""
    for line in report(loaded):
        click.echo(line)
    for notice in loaded.notices:
        if not notice.is_wrong:
            click.echo(f"{notice.text}.", err=True)
    if loaded.wrong:
        raise ConfigError("\n".join(loaded.wrong))


@click.command("check-config")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@settings_as_options
def check_config(files: tuple[str, ...], **given: Any) -> None:
    """Print the settings that `serve` would have, and where each is from.

    FILE is a rabbitmq.conf, a folder of such files or an advanced.config; those that the environment names are read if
    none is given. Ends with 78 if something is wrong with them.
    """
    for file in files or (given["config_file"],):
        show(load({**given, "config_file": file}, os.environ))
