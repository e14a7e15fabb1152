"""Writes docs/settings.md from the declarations of the settings: `python -m docs.settings_page`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Final

from amqp_broker.conf_keys import SILENT, WITHOUT_EFFECT
from amqp_broker.config import Config, names_in_environment, options_of

PAGE: Final = Path(__file__).with_name("settings.md")

INTRODUCTION: Final = """\
# Settings

This page is generated: `python -m docs.settings_page`.

## Where they come from

A setting is taken from the first of these that has it:

1. the command line: `amqp-broker serve --port 5673`
2. the environment, by our name first: `AMQP_BROKER_PORT`, then RabbitMQ's and its images': `RABBITMQ_NODE_PORT`. A
   variable of RabbitMQ that is set to nothing is not set
3. `RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS`, of which `-rabbit KEY VALUE` counts, and `-rabbitmq_management` and
   `-rabbitmq_prometheus` with theirs
4. `advanced.config`, of which pairs count that rabbitmq.conf could have
5. the files of `RABBITMQ_CONFIG_FILES` (a folder, or a pattern), the last in the order of their names first
6. the file of `--config` or `RABBITMQ_CONFIG_FILE`, which may be without its suffix
7. the list of `RABBITMQ_ENABLED_PLUGINS`, else the file of `--enabled-plugins` or `RABBITMQ_ENABLED_PLUGINS_FILE`:
   whether the HTTP API and the metrics are served
8. the default

No file is read that nobody names: a broker on a laptop does not take up `/etc/rabbitmq` of another program.

## What is wrong in a file

A key that is unknown, a value that cannot be, a line that is none: each is a warning with the file and the line, and
the broker starts without it. With `--strict-config` it does not start (exit code 78), and neither would RabbitMQ. What
is wrong on the command line or in the environment is always refused.

`amqp-broker check-config [FILE]...` and `amqp-broker serve --check-config` print every setting and where it is from,
with secrets masked, then what is wrong, and end with 0 or 78.

## All settings

"Key" is that of rabbitmq.conf; a star stands for any name. Of several keys the first counts, wherever they stand.
"""

KEYS: Final = """
## Keys that have no effect

These, and those that begin so, are told in the log as having no effect:

{without_effect}

And these are passed over: they tune a cluster, Erlang, or what is not here at all.

{silent}
"""


def page() -> str:
    """The page as it must be."""
    return INTRODUCTION + "".join(_settings()) + KEYS.format(without_effect=_list(WITHOUT_EFFECT), silent=_list(SILENT))


def _settings() -> Iterator[str]:
    for declared in fields(Config):
        default = "" if declared.default in ("", None) else str(declared.default)
        if declared.type == "bool":
            default = default.lower()
        yield f"\n### {declared.name}\n\n{declared.metadata['help']}\n\n"
        if options := options_of(declared):
            yield f"- Option: {_code(options)}\n"
        yield f"- Environment: {_code(names_in_environment(declared))}\n"
        if keys := declared.metadata["keys"]:
            yield f"- Key: {_code(keys)}\n"
        yield f"- Default: {_code([default]) if default else 'none'}\n"


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _list(keys: Iterable[str]) -> str:
    """Lines of keys, none of them too long."""
    lines = [""]
    for key in keys:
        if len(lines[-1]) + len(key) > 110:
            lines.append("")
        lines[-1] += f"`{key}` "
    return "\n".join(line.rstrip() for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page())
