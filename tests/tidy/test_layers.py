"""Who may import whom. Imports under `if TYPE_CHECKING` and inside of functions count, too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parents[2] / "amqp_broker"

WORLD = {"asyncio", "socket", "ssl", "select", "selectors", "http", "urllib", "uvloop", "aiohttp", "lmdb"}
CLOCKS = {"time", "datetime", "sched", "random", "secrets", "uuid"}
THREADS = {"threading", "multiprocessing", "concurrent", "queue", "subprocess", "signal"}
MACHINE = {"os", "sys", "io", "pathlib", "shutil", "tempfile", "logging"}
IMPURE = WORLD | CLOCKS | THREADS | MACHINE

VALUES = {"errors", "fields", "message", "config", "compat"}
# Where settings come from.
SOURCES = {"rabbitmq_conf", "erlang_terms", "erlang_settings", "conf_keys"}


class Layer(NamedTuple):
    """What of ours a layer may import (itself always), and what of others it never does."""

    ours: set[str]
    never: set[str]


LAYERS = {
    "errors": Layer(set(), IMPURE | {"pamqp"}),
    "exit_codes": Layer(set(), IMPURE | {"pamqp"}),
    "fields": Layer(set(), IMPURE | {"pamqp"}),
    "compat": Layer(set(), IMPURE | {"pamqp"}),
    "setting_values": Layer(set(), IMPURE | {"pamqp"}),
    "config": Layer({"compat", "setting_values"}, IMPURE - {"pathlib"} | {"pamqp"}),
    "rabbitmq_conf": Layer(set(), IMPURE | {"pamqp"}),
    "erlang_terms": Layer(set(), IMPURE | {"pamqp"}),
    "erlang_settings": Layer({"rabbitmq_conf", "erlang_terms"}, IMPURE | {"pamqp"}),
    "conf_keys": Layer({"compat", "config", "setting_values", "rabbitmq_conf"}, IMPURE | {"pamqp"}),
    "loading": Layer({"config", *SOURCES}, IMPURE - {"pathlib"} | {"pamqp"}),
    "message": Layer({"fields"}, IMPURE | {"pamqp"}),
    "protocol": Layer({"errors", "fields", "message"}, IMPURE),
    "broker": Layer(VALUES, IMPURE | {"pamqp"}),
    "session": Layer({*VALUES, "protocol", "broker"}, (IMPURE | THREADS) - {"logging"}),
    "store": Layer({*VALUES, "broker"}, {"asyncio"}),
    "control": Layer(set(), WORLD | CLOCKS | THREADS | {"pamqp"}),
    "management": Layer({*VALUES, "broker"}, {"socket", "lmdb", *CLOCKS, *THREADS, "os"}),
    "shovel": Layer({*VALUES, "protocol"}, IMPURE - {"urllib", "datetime"}),
    "server": Layer(
        {*VALUES, "control", "exit_codes", "protocol", "broker", "session", "store", "management", "shovel"}, set()
    ),
    "compare": Layer({*VALUES, "protocol", "broker", "session", "server", "shovel"}, THREADS),
    "testing": Layer({"config", "fields", "message", "broker", "server", "management"}, set()),
    "demo": Layer({"broker", "testing"}, set()),
    # What it reads is the events of the trace; it knows these as data, and works beside any broker.
    "pipeline": Layer(set(), {"asyncio", "socket", "lmdb", "aiohttp"}),
    "cli": Layer(
        {"compat", "config", "conf_keys", "control", "errors", "exit_codes", "loading", "broker", "server", "store"}
        | {"management", "compare", "demo", "pipeline", "shovel", "testing"},
        set(),
    ),
}


def imported(source: str) -> Iterator[str]:
    """Dotted names of all that a module imports; a relative import is told as `.`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield "."
            # `from amqp_broker import fields` imports a layer, `from amqp_broker.fields import Long` a name of one.
            elif node.module == "amqp_broker":
                yield from (f"amqp_broker.{alias.name}" for alias in node.names)
            else:
                yield node.module or ""


def trespasses(layer: str, source: str) -> list[str]:
    """The imports that a module of this layer may not have."""
    ours, never = LAYERS[layer]
    found = []
    for name in imported(source):
        first, _, rest = name.partition(".")
        if first == "amqp_broker":
            if rest.partition(".")[0] not in {layer, *ours}:
                found.append(name)
        elif not first or first in never:
            found.append(name or "a relative import")
    return found


def modules() -> list[Path]:
    return [
        path for path in sorted(PACKAGE.rglob("*.py")) if path.parent != PACKAGE or path.stem.strip("_") == path.stem
    ]


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_what_its_layer_may(path: Path) -> None:
    assert trespasses(layer_of(path), path.read_text()) == []


@pytest.mark.parametrize("path", sorted((PACKAGE.parent / "pyspark_amqp").rglob("*.py")), ids=lambda path: path.name)
def test_the_spark_format_imports_nothing_of_the_broker(path: Path) -> None:
    assert [name for name in imported(path.read_text()) if name.partition(".")[0] == "amqp_broker"] == []


def test_every_module_has_a_layer() -> None:
    assert {layer_of(path) for path in modules()} <= set(LAYERS)


def test_no_two_layers_import_each_other() -> None:
    for name, layer in LAYERS.items():
        assert not [other for other in layer.ours if name in LAYERS[other].ours], name


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("broker", "import time"),
        ("broker", "from asyncio import sleep"),
        ("broker", "import pamqp.commands"),
        ("broker", "from amqp_broker.protocol import wire"),
        ("broker", "from amqp_broker import session"),
        ("broker", "if TYPE_CHECKING:\n    from amqp_broker.session.session import Session"),
        ("broker", "def f():\n    import random"),
        ("broker", "from .queue import Queue"),
        ("protocol", "from amqp_broker.broker.queue import Queue"),
        ("protocol", "import socket"),
        ("session", "import asyncio"),
        ("session", "from amqp_broker.server.server import Server"),
        ("message", "from amqp_broker.errors import AMQPError"),
        ("errors", "import logging"),
    ],
)
def test_what_is_forbidden_is_found(layer: str, source: str) -> None:
    assert len(trespasses(layer, source)) == 1


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("broker", "from amqp_broker.broker import arguments\nfrom amqp_broker import fields\nimport heapq"),
        ("protocol", "from pamqp import commands\nfrom amqp_broker.message import Message"),
        ("session", "import logging\nfrom amqp_broker.broker.queue import Queue"),
        ("server", "import asyncio, time\nfrom amqp_broker.session.session import Session"),
    ],
)
def test_what_is_allowed_is_passed_over(layer: str, source: str) -> None:
    assert trespasses(layer, source) == []
