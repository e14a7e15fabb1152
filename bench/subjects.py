"""The brokers that `make bench` measures: amqp-broker, RabbitMQs, and any other that runs already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from bench.generator import Load, MissingToolError
from bench.row import COMPILED_NAME
from compat.brokers import AmqpBroker, BrokerProcess
from compat.oracles.oracle import ORACLES
from compat.oracles.rabbitmq import RabbitMQ

Managed = AmqpBroker | RabbitMQ
# Where `make compiled` installs the package.
COMPILED: Final = Path(__file__).parents[1] / ".cache" / "compiled"


class Running:
    """A broker that the user has started, and stops."""

    def __init__(self, url: str, pid: int) -> None:
        parts = urlsplit(url)
        self.host, self.port = parts.hostname or "127.0.0.1", parts.port or 5672
        self.user, self.password = unquote(parts.username or "guest"), unquote(parts.password or "guest")
        self.pid = pid

    def start(self) -> None:
        """Do nothing."""

    def kill(self) -> None:
        """Do nothing."""


Broker = BrokerProcess | Running


@dataclass(frozen=True)
class Subject:
    """A broker to be measured: a new process for the loads, and one with management.

    Without `make_managed`, it runs already, and is not measured where a row needs a new process.
    """

    name: str
    make: Callable[[Path], Broker]
    make_managed: Callable[[Path], Managed] | None = None
    # The program that pings, and some seconds of messages beside requests to management.
    ping_tool: str = ""
    scraped: Load = field(default_factory=Load)


def amqp_broker(name: str = "amqp-broker", options: tuple[str, ...] = ()) -> Subject:
    make = partial(AmqpBroker, options=options)
    return Subject(name, make, make, "diagnostics", Load(messages=2_000_000))


def compiled() -> Subject:
    """Return amqp-broker with its compiled modules. Raise MissingToolError if there are none."""
    if not COMPILED.is_dir():
        raise MissingToolError("There is no compiled build. Run `make compiled` first.")

    def make(folder: Path) -> AmqpBroker:
        broker = AmqpBroker(folder)
        # Otherwise Python prefers the package in the working folder.
        broker.variables = {"PYTHONPATH": str(COMPILED), "PYTHONSAFEPATH": "1"}
        return broker

    return Subject(COMPILED_NAME, make, make, "diagnostics", Load(messages=2_000_000))


def rabbitmq(version: str) -> Subject:
    """Return a RabbitMQ of this minor version. Raise Unavailable if it cannot be had.

    It permits transient queues, as Debian's package of 4.3 does: the loads declare some.
    """
    oracle = replace(ORACLES[version], settings=())
    oracle.have()
    return Subject(
        f"RabbitMQ {version}",
        partial(RabbitMQ, plugins=("rabbitmq_consistent_hash_exchange",), oracle=oracle),
        partial(RabbitMQ, plugins=("rabbitmq_management", "rabbitmq_prometheus"), oracle=oracle),
        "rabbitmq-diagnostics",
        Load(messages=400_000),
    )


def running(text: str) -> Subject:
    """Return the broker of `NAME=URL,PID`. Raise ValueError."""
    name, equals, rest = text.partition("=")
    url, comma, pid = rest.rpartition(",")
    if not (name and equals and comma and pid.isdecimal() and url.startswith("amqp://")):
        raise ValueError(f"'{text}' is not NAME=URL,PID")
    return Subject(name, lambda folder: Running(url, int(pid)))
