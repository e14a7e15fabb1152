"""Starts of `rabbitmq-server` with an input: RabbitMQ's, and this broker's."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import time
from pathlib import Path
from typing import Any, Final

from compat.brokers import AmqpBroker, BrokerProcess, free_port
from compat.oracles.oracle import Oracle
from compat.oracles.rabbitmq import RabbitMQ
from compat.startup.inputs import Input

# Settings that inputs give, by RabbitMQ's names.
SETTINGS: Final = (
    "consumer_timeout",
    "heartbeat",
    "channel_max",
    "handshake_timeout",
    "default_user",
    "default_vhost",
    "loopback_users",
    "default_user_tags",
    "default_queue_type",
)
READY: Final = "Server startup complete"
# The home of the test stands for that of RabbitMQ's user.
MAIN: Final = """import os, sys
from amqp_broker.cli.rabbitmq import rabbitmq_server
rabbitmq_server.HOME = os.environ["HOME"]
rabbitmq_server.main(sys.argv[1:])"""


def prepare(given: Input, broker: BrokerProcess, http_port: int) -> dict[str, str]:
    """Write the files of an input, and return the variables: its own, and those of the broker's folder."""
    values = {"{folder}": str(broker.folder), "{port}": str(broker.port), "{http_port}": str(http_port)}

    def filled(text: str) -> str:
        for name, value in values.items():
            text = text.replace(name, value)
        return text

    etc = broker.folder / "etc"
    etc.mkdir(parents=True, exist_ok=True)
    (etc / "enabled_plugins").write_text("[].\n", "utf-8")
    for name, text in given.files.items():
        file = broker.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(filled(text), "utf-8")
    places = {
        "RABBITMQ_NODE_PORT": str(broker.port),
        "RABBITMQ_NODE_IP_ADDRESS": broker.host,
        "RABBITMQ_NODENAME": f"start{broker.port}@localhost",
        "RABBITMQ_MNESIA_BASE": str(broker.folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(broker.folder / "log"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_CONFIG_FILE": str(etc / "rabbitmq"),
        "RABBITMQ_CONFIG_FILES": str(etc / "conf.d"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(etc / "advanced.config"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(etc / "enabled_plugins"),
        "RABBITMQ_CONF_ENV_FILE": str(etc / "rabbitmq-env.conf"),
    }
    return {**places, **{name: filled(value) for name, value in given.variables.items()}}


def logged(broker: BrokerProcess) -> str:
    return broker.log_path.read_text("utf-8", errors="replace") if broker.log_path.exists() else ""


class Started(BrokerProcess):
    """A broker with an input."""

    given: Input
    # The program with RabbitMQ's commands.
    tool: str
    home: Path

    def effective(self) -> dict[str, Any]:
        """Return effective settings, by RabbitMQ's names."""
        done = self.run(self.tool, "-q", "environment", "--formatter", "json")
        found = json.loads(done.stdout)["rabbit"]
        return {name: found.get(name) for name in SETTINGS}

    def export(self, file: Path) -> bool:
        return self.run(self.tool, "-q", "export_definitions", str(file)).returncode == 0

    def fails(self) -> bool:
        """Return whether the process has ended with the exit code of a failure."""
        return self.process is not None and (self.process.poll() or 0) > 0

    def anonymous(self, line: str) -> str:
        """Return a line of the log without the ports, which differ from start to start."""
        return re.sub(r"\d+$", lambda port: "AMQP" if int(port[0]) == self.port else "HTTP", line)


class StartedRabbitMQ(Started, RabbitMQ):
    """RabbitMQ with an input in the place of its usual configuration."""

    tool = "rabbitmqctl"

    def __init__(self, given: Input, folder: Path, oracle: Oracle) -> None:
        super().__init__(folder, oracle=oracle)
        self.given = given
        self.variables = prepare(given, self, self.management_port)

    def command(self) -> list[str]:
        self.home.mkdir(exist_ok=True)
        return [*self.entered("rabbitmq-server"), *self.given.arguments]

    def environment(self) -> dict[str, str]:
        # A node that does not start leaves no file in the folder of the tests.
        return {**super().environment(), "ERL_CRASH_DUMP": os.devnull, **self.variables}


class StartedAmqpBroker(Started, AmqpBroker):
    """`rabbitmq-server` of this broker."""

    tool = "ctl"

    def __init__(self, given: Input, folder: Path, profile: str) -> None:
        super().__init__(folder, profile=profile)
        self.given = given
        self.home = folder / "home"
        self.variables = {
            **prepare(given, self, free_port()),
            "AMQP_BROKER_COMPAT": profile,
            "AMQP_BROKER_RUNTIME_DIR": str(folder / "run"),
        }

    def command(self) -> list[str]:
        self.home.mkdir(exist_ok=True)
        return [sys.executable, "-c", MAIN, *self.given.arguments]

    def environment(self) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("RABBITMQ_", "AMQP_"))}
        return {**inherited, "HOME": str(self.home), **self.variables}

    def is_ready(self) -> bool:
        return READY in logged(self)


def start(broker: StartedRabbitMQ | StartedAmqpBroker, timeout_s: float = 30) -> bool:
    """Start a broker, and return whether it accepts clients."""
    broker.spawn()
    assert broker.process is not None
    deadline = time.monotonic() + timeout_s
    while broker.process.poll() is None and time.monotonic() < deadline:
        # Files of the input may have the log elsewhere.
        if READY in logged(broker) or any(READY in file.read_text("utf-8") for file in broker.folder.glob("log/*.log")):
            return accepts(broker)
        time.sleep(0.05)
    return False


def accepts(broker: BrokerProcess) -> bool:
    try:
        socket.create_connection((broker.host, broker.port), 5).close()
    except OSError:
        return False
    return True
