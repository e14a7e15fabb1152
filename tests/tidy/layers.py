"""The packages that each package may import when it runs (`test_layers.py`)."""

from __future__ import annotations

from typing import NamedTuple

WORLD = {"asyncio", "socket", "ssl", "select", "selectors", "http", "urllib", "uvloop", "aiohttp", "lmdb"}
CLOCKS = {"time", "datetime", "sched", "random", "secrets", "uuid"}
THREADS = {"threading", "multiprocessing", "concurrent", "queue", "subprocess", "signal"}
MACHINE = {"os", "sys", "io", "pathlib", "shutil", "tempfile", "logging"}
IMPURE = WORLD | CLOCKS | THREADS | MACHINE


class Layer(NamedTuple):
    """Packages of `amqp_broker` that a package may import, and modules of others that it may not."""

    packages: set[str]
    never: set[str]


PURE = IMPURE | {"pamqp"}
HEAVY = {"asyncio", "aiohttp", "lmdb"}
SESSION = (IMPURE | THREADS) - {"logging"}
MANAGEMENT = {"socket", "lmdb", *CLOCKS, *THREADS, "os"}

# From low to high: a package imports only packages above it in the table. A name that it needs for types alone, it
# imports under `TYPE_CHECKING`, from wherever that is.
LAYERS = {
    "exit_codes": Layer(set(), PURE),
    "control": Layer(set(), WORLD | CLOCKS | THREADS | {"pamqp"}),
    "implementation": Layer(set(), PURE),
    "amqp": Layer(set(), IMPURE),
    "settings": Layer(set(), PURE - {"pathlib"}),
    "settings/sources": Layer({"settings"}, PURE - {"pathlib"}),
    "broker/scheduling": Layer(set(), PURE),
    "broker/counting": Layer(set(), PURE),
    "broker/admin": Layer({"amqp", "broker/scheduling"}, PURE),
    "broker/backends": Layer({"amqp", "broker/admin"}, PURE),
    "broker/durability": Layer({"amqp"}, PURE),
    "broker/exchanges": Layer({"amqp", "settings", "broker/counting", "broker/durability"}, PURE),
    "broker/queues": Layer(
        {"amqp", "settings", "broker/counting", "broker/scheduling", "broker/admin", "broker/durability"}, PURE
    ),
    "broker/routing": Layer(
        {"amqp", "broker/counting", "broker/scheduling", "broker/exchanges", "broker/queues"}, PURE
    ),
    "broker/lab": Layer({"amqp", "broker/admin", "broker/queues"}, PURE),
    "broker/clients": Layer({"broker/counting", "broker/queues"}, PURE),
    "broker/observe": Layer(
        {"amqp", "broker/counting", "broker/scheduling", "broker/admin", "broker/exchanges", "broker/queues"}, PURE
    ),
    "broker/journal_entries": Layer({"amqp", "broker/exchanges"}, PURE),
    "broker": Layer(
        {
            "amqp",
            "broker/scheduling",
            "broker/counting",
            "broker/admin",
            "broker/backends",
            "broker/durability",
            "broker/exchanges",
            "broker/queues",
            "broker/routing",
            "broker/lab",
            "broker/clients",
            "broker/observe",
            "broker/journal_entries",
        },
        PURE,
    ),
    "broker/operations": Layer(
        {
            "amqp",
            "settings",
            "broker/scheduling",
            "broker/admin",
            "broker/exchanges",
            "broker/queues",
            "broker/routing",
            "broker/journal_entries",
            "broker",
        },
        PURE,
    ),
    "session/channel": Layer(
        {
            "amqp",
            "broker/backends",
            "broker/scheduling",
            "broker/queues",
            "broker/lab",
            "broker/clients",
            "broker/observe",
            "broker/operations",
        },
        SESSION,
    ),
    "session/methods": Layer(
        {
            "amqp",
            "broker/backends",
            "broker/scheduling",
            "broker/admin",
            "broker/exchanges",
            "broker/queues",
            "broker/routing",
            "broker/lab",
            "broker/observe",
            "broker/journal_entries",
            "broker",
            "broker/operations",
            "session/channel",
        },
        SESSION,
    ),
    "session/connection": Layer(
        {
            "amqp",
            "broker/backends",
            "broker/scheduling",
            "broker/admin",
            "broker/clients",
            "broker/queues",
            "session/channel",
        },
        SESSION,
    ),
    "session/wire": Layer(
        {
            "amqp",
            "broker/backends",
            "broker/scheduling",
            "broker/lab",
            "broker/observe",
            "session/channel",
            "session/methods",
            "session/connection",
        },
        SESSION,
    ),
    "session": Layer(
        {
            "amqp",
            "broker/scheduling",
            "broker/admin",
            "broker/durability",
            "broker/queues",
            "broker/routing",
            "broker/lab",
            "broker/clients",
            "broker",
            "session/channel",
            "session/connection",
            "session/wire",
        },
        SESSION,
    ),
    "store": Layer(
        {
            "amqp",
            "settings",
            "broker/durability",
            "broker/queues",
            "broker/journal_entries",
            "broker",
            "broker/operations",
        },
        {"asyncio"},
    ),
    "management/node": Layer({"amqp", "broker/counting", "broker/queues", "broker/scheduling"}, MANAGEMENT),
    "management/documents": Layer(
        {
            "amqp",
            "broker/scheduling",
            "broker/admin",
            "broker/exchanges",
            "broker/queues",
            "broker/lab",
            "broker/observe",
            "broker",
            "broker/operations",
        },
        MANAGEMENT,
    ),
    "management/http": Layer(
        {"amqp", "broker/scheduling", "broker/admin", "broker", "management/documents"}, MANAGEMENT
    ),
    "management/metrics": Layer(
        {"broker/counting", "broker/scheduling", "broker/queues", "management/node", "management/http"}, MANAGEMENT
    ),
    "management/attention": Layer(
        {"broker/counting", "broker/queues", "broker/lab", "broker/observe", "management/node"}, MANAGEMENT
    ),
    "management/api": Layer(
        {
            "implementation",
            "amqp",
            "settings",
            "settings/sources",
            "broker/counting",
            "broker/scheduling",
            "broker/admin",
            "broker/exchanges",
            "broker/queues",
            "broker/clients",
            "broker/lab",
            "broker/observe",
            "broker",
            "broker/operations",
            "management/node",
            "management/attention",
            "management/documents",
            "management/http",
        },
        MANAGEMENT,
    ),
    "management/live": Layer(
        {
            "amqp",
            "broker/backends",
            "broker/scheduling",
            "broker/admin",
            "management/attention",
            "management/documents",
            "management/http",
            "management/api",
        },
        MANAGEMENT,
    ),
    "management/page": Layer(set(), MANAGEMENT),
    "management": Layer(
        {
            "broker/backends",
            "broker/scheduling",
            "broker/admin",
            "broker/observe",
            "broker",
            "management/node",
            "management/http",
            "management/api",
            "management/live",
            "management/page",
        },
        MANAGEMENT,
    ),
    "shovel": Layer({"amqp"}, IMPURE - {"urllib", "datetime"}),
    "server": Layer(
        {
            "exit_codes",
            "control",
            "amqp",
            "settings",
            "broker/backends",
            "broker/scheduling",
            "broker/admin",
            "broker/durability",
            "broker/queues",
            "broker/clients",
            "broker/lab",
            "broker",
            "session/methods",
            "session/wire",
            "session",
            "store",
            "management/node",
            "management/documents",
            "management/metrics",
            "management",
            "shovel",
        },
        set(),
    ),
    "compare": Layer({"amqp", "settings", "broker/admin", "session", "shovel", "server"}, THREADS),
    # It draws what the reports of vhosts say, as JSON.
    "run_report": Layer(set(), HEAVY | {"socket", *THREADS}),
    "testing": Layer(
        {
            "amqp",
            "settings",
            "broker/admin",
            "broker/queues",
            "broker/lab",
            "broker/observe",
            "broker/scheduling",
            "broker/operations",
            "management/documents",
            "server",
            "run_report",
        },
        set(),
    ),
    "demo": Layer({"broker/admin", "broker/lab", "management/node"}, set()),
    # It reads the events of the trace as data, so that it works beside any broker.
    "pipeline": Layer(set(), {"asyncio", "socket", "lmdb", "aiohttp"}),
    "conformance": Layer(set(), {"asyncio", "lmdb", "aiohttp"}),
    "conformance/duel": Layer({"conformance"}, {"asyncio", "lmdb", "aiohttp"}),
    "cli": Layer({"exit_codes", "control", "management/documents"}, HEAVY | {"click"}),
    "cli/rabbitmq": Layer(
        {"exit_codes", "amqp", "settings", "settings/sources", "management/documents", "cli"},
        HEAVY | {"logging", "click"},
    ),
    "cli/own": Layer(
        {
            "exit_codes",
            "control",
            "implementation",
            "amqp",
            "settings",
            "settings/sources",
            "broker/scheduling",
            "broker/admin",
            "broker/lab",
            "broker/observe",
            "broker",
            "store",
            "management/node",
            "management/documents",
            "shovel",
            "server",
            "compare",
            "run_report",
            "testing",
            "demo",
            "pipeline",
            "conformance",
            "conformance/duel",
            "cli",
            "cli/rabbitmq",
        },
        set(),
    ),
    "cli/main": Layer({"cli/rabbitmq", "cli/own"}, {"click"}),
}
