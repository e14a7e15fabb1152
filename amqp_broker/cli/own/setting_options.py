"""Options of commands that stand for settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from amqp_broker.settings.settings import SETTINGS

_TYPES: Final[dict[str, type]] = {"str": str, "int": int, "int | None": int}


def settings_as_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command an option for each setting that has one."""
    for setting in reversed(SETTINGS):
        if not setting.options:
            continue
        help_text = setting.help
        if setting.env:
            help_text += f"  [{', '.join(setting.env)}]"
        if setting.type == "bool":
            option = click.option(*setting.options, setting.name, is_flag=True, default=None, help=help_text)
        else:
            if setting.default not in ("", None):
                help_text += f"  [default: {setting.default}]"
            kind = _TYPES[setting.type]
            option = click.option(*setting.options, setting.name, type=kind, default=None, help=help_text)
        command = option(command)
    return command
