"""Writes docs/settings.md from the declarations of the settings: `python -m docs.settings_page`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from amqp_broker.settings.settings import SETTINGS
from amqp_broker.settings.sources.conf_keys import SILENT, WITHOUT_EFFECT
from amqp_broker.settings.sources.precedence import VARIABLES_WITHOUT_EFFECT

PAGE: Final = Path(__file__).with_name("settings.md")

INTRODUCTION: Final = """\
# Settings

This page is generated: `python -m docs.settings_page`.

## Sources

The value of a setting comes from the first of these sources that has one:

1. the command line: `amqp-broker serve --port 5673`
2. the environment: `AMQP_BROKER_PORT`, then the variables of RabbitMQ and its images, `RABBITMQ_NODE_PORT`. A variable
   of RabbitMQ that is empty counts as not set
3. `RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS`: pairs after `-rabbit`, `-rabbitmq_management` and `-rabbitmq_prometheus`
4. `advanced.config`: pairs that rabbitmq.conf could also have
5. the files of `RABBITMQ_CONFIG_FILES` (a folder or a pattern); later files in the order of their names override
   earlier ones
6. the file of `--config` or `RABBITMQ_CONFIG_FILE`, with or without its suffix. As in RabbitMQ, a file with the suffix
   `.config` replaces the one with `.conf`, counts more than the files of 5, and `advanced.config` is then not read. A
   file with another suffix, or without, may have either format
7. for the HTTP API and the metrics: the list `RABBITMQ_ENABLED_PLUGINS`, or the file of `--enabled-plugins` or
   `RABBITMQ_ENABLED_PLUGINS_FILE`
8. the default

The broker reads only the files that are named. It does not read `/etc/rabbitmq` by itself, where another program may
have its configuration.

## Errors

An unknown key, an invalid value or an invalid line of a file is a warning with the file and the line, and the broker
starts without it. With `--strict-config` the broker does not start (exit code 78), as RabbitMQ would not. An invalid
value on the command line or in the environment is always refused. So are `--data-dir`, `--store-sync` and
`--store-bytes-max` beside `--ephemeral`, with which there is no store (exit code 64).

`amqp-broker check-config [FILE]...` and `amqp-broker serve --check-config` print every setting and its source, with
secrets masked, then all errors. The exit code is 0, or 78 if there are errors. Comments at the end list what was
read, the most important first, and the keys that are overridden or ignored. FILE may also be a folder like
`/etc/rabbitmq`, with `rabbitmq.conf`, `conf.d`, `advanced.config` and `enabled_plugins`, as it is mounted into the
image.

## All settings

"Key" is the key in rabbitmq.conf; a star stands for any name. If a file has several keys of one setting, the one that
is listed first here counts.
"""

KEYS: Final = """
## Keys without effect

The log reports that these keys, and keys that begin with them, have no effect:

{without_effect}

So it does for these variables of RabbitMQ:

{variables}

These keys are ignored, because they tune a cluster, Erlang, or functions that this broker does not have:

{silent}
"""


def page() -> str:
    """Return the text of the page."""
    return INTRODUCTION + "".join(_settings()) + _without_effect()


def _without_effect() -> str:
    return KEYS.format(
        without_effect=_list(WITHOUT_EFFECT), variables=_list(VARIABLES_WITHOUT_EFFECT), silent=_list(SILENT)
    )


def _settings() -> Iterator[str]:
    for declared in SETTINGS:
        default = "" if declared.default in ("", None) else str(declared.default)
        if declared.type == "bool":
            default = default.lower()
        yield f"\n### {declared.name}\n\n{declared.help}\n\n"
        if declared.options:
            yield f"- Option: {_code(declared.options)}\n"
        yield f"- Environment: {_code(declared.environment)}\n"
        if declared.keys:
            yield f"- Key: {_code(declared.keys)}\n"
        yield f"- Default: {_code([default]) if default else 'none'}\n"


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _list(keys: Iterable[str]) -> str:
    """Return keys in lines of limited length."""
    lines = [""]
    for key in keys:
        if len(lines[-1]) + len(key) > 110:
            lines.append("")
        lines[-1] += f"`{key}`, "
    return "\n".join(line.rstrip() for line in lines).rstrip(",") + "."


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
