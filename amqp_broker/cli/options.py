"""Options of commands that stand for settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

import click

from amqp_broker.config import Config, options_of

_KINDS: Final[dict[str, Any]] = {"str": str, "int": int, "int | None": int}


def settings_as_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each setting that has one."""
    for declared in reversed(fields(Config)):
        options = options_of(declared)
        if not options:
            continue
        help_text = declared.metadata["help"]
        if declared.metadata["env"]:
            help_text += f"  [{', '.join(declared.metadata['env'])}]"
        if declared.type == "bool":
            option = click.option(*options, declared.name, is_flag=True, default=None, help=help_text)
        else:
            if declared.default not in ("", None):
                help_text += f"  [default: {declared.default}]"
            option = click.option(
                *options, declared.name, type=_KINDS[str(declared.type)], default=None, help=help_text
            )
        command = option(command)
    return command
