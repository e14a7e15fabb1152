"""Options of `amqp-broker serve` as most users give them, read without click.

click takes 1.5 MB of a broker for as long as that runs, and a tenth of its start.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping, Sequence
from typing import Final

from amqp_broker.settings.settings import SETTINGS, Setting

# Settings of a store, which there is not with --ephemeral. A port of what is switched off loses nothing.
OF_STORE: Final = ("data_dir", "store_sync", "store_bytes_max")


def read(words: Sequence[str]) -> dict[str, str | bool] | None:
    """Return the values of options for settings by name.

    Return None for all other words: click prints the help, says what is wrong, and reads forms that are not read here.
    """
    switches: dict[str, tuple[str, bool]] = {}
    valued: dict[str, Setting] = {}
    for setting in SETTINGS:
        for option in setting.options:
            if setting.type == "bool":
                on, _, off = option.partition("/")
                switches |= {on: (setting.name, True), off: (setting.name, False)}
            elif option.startswith("--"):
                valued[option] = setting
    given: dict[str, str | bool] = {}
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if word in switches:
            name, given[name] = switches[word]
        elif option in valued:
            value = value if equals else next(rest, "-")
            setting = valued[option]
            is_number = value.isascii() and value.isdecimal()
            if value.startswith("-") or not (is_number or setting.type == "str"):
                return None
            given[setting.name] = value
        else:
            return None
    return None if contradiction(given) else given


def contradiction(given: Mapping[str, object]) -> str:
    """Return a sentence about an option for the store beside `--ephemeral`, "" for none."""
    useless = next((name for name in OF_STORE if given.get("ephemeral") and given.get(name) is not None), None)
    if useless is None:
        return ""
    return f"--{useless.replace('_', '-')} has no effect with --ephemeral: leave one of them out"


def run(given: Mapping[str, str | bool]) -> None:
    """Run the broker with these options until SIGTERM or SIGINT."""
    # As for other commands: see program.py.
    gc.disable()
    try:
        from amqp_broker.cli.own.serve import serve
        from amqp_broker.settings.sources.precedence import load
    finally:
        gc.enable()
    serve(load(given, os.environ))
