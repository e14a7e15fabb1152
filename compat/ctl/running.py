"""Runs commands with RabbitMQ's tools and with amqp-broker's."""

from __future__ import annotations

import base64
import contextlib
import io
import os
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol
from unittest import mock

from amqp_broker.cli.rabbitmq import rabbitmqadmin, tool, tool_main
from amqp_broker.cli.rabbitmq.tool_names import TOOLS
from amqp_broker.cli.shared.http_api import Place
from amqp_broker.cli.shared.node_finder import Running
from compat.brokers import AmqpBroker
from compat.ctl.lines import AREAS
from compat.oracles.rabbitmq import RabbitMQ

ADMIN, ADMIN_AREA = "rabbitmqadmin", "admin"
NAMES = {ADMIN: "admin"} | {real: name for name, real in TOOLS.items()}
TIMEOUT_S = 60.0
WITHOUT_ADMIN = tuple(area for area in AREAS if area != ADMIN_AREA)


class Outcome(NamedTuple):
    """The output of a command and its exit code."""

    output: str
    complaint: str
    exit_code: int


class Side(Protocol):
    """Tools, and the broker that they use."""

    # The broker's node name.
    node: str
    # The address of AMQP.
    url: str

    def run(self, line: str) -> Outcome: ...


class RabbitMQSide:
    """RabbitMQ and its tools."""

    def __init__(self, broker: RabbitMQ) -> None:
        self.broker = broker
        self.url = broker.url
        self.node = broker.environment()["RABBITMQ_NODENAME"]

    @property
    def areas(self) -> tuple[str, ...]:
        """Return the areas of this version: RabbitMQ 4.3 no longer has rabbitmqadmin."""
        try:
            self._script()
        except urllib.error.HTTPError:
            return WITHOUT_ADMIN
        return tuple(AREAS)

    def run(self, line: str) -> Outcome:
        program, *words = shlex.split(line)
        if program == ADMIN:
            command = [sys.executable, str(self._script()), "-P", str(self.broker.management_port), *words]
            return _run(command, {**os.environ, "HOME": str(self.broker.home)})
        done = self.broker.run(program, *words)
        return Outcome(done.stdout, done.stderr, done.returncode)

    def _script(self) -> Path:
        """Return rabbitmqadmin as RabbitMQ serves it."""
        script = self.broker.folder / ADMIN
        if not script.exists():
            with urllib.request.urlopen(f"http://127.0.0.1:{self.broker.management_port}/cli/{ADMIN}") as response:
                script.write_bytes(response.read())
        return script


class AmqpBrokerSide:
    """amqp-broker and its tools."""

    node = "ours@localhost"

    def __init__(self, broker: AmqpBroker) -> None:
        self.broker = broker
        self.url = broker.url
        self.areas = WITHOUT_ADMIN if broker.profile == "4.3" else tuple(AREAS)
        # The user's own variables are not meant for this broker.
        self.environment = {
            **{name: value for name, value in broker.environment().items() if not name.startswith("RABBITMQ_")},
            "AMQP_BROKER_PORT": str(broker.port),
            "HOME": str(broker.folder),
        }
        self.environment.pop("NO_COLOR", None)

    def run(self, line: str) -> Outcome:
        """Run a command in this process, with the environment of a separate one."""
        program, *words = shlex.split(line)
        with mock.patch.dict(os.environ, self.environment, clear=True):
            if program == ADMIN:
                return _called(lambda: rabbitmqadmin.main([*self._management, *words]))
            return _called(lambda: tool_main.main(program, words))

    def run_a_process(self, line: str) -> Outcome:
        program, *words = shlex.split(line)
        options = self._management if program == ADMIN else []
        return _run([sys.executable, "-m", "amqp_broker", NAMES[program], *options, *words], self.environment)

    @property
    def _management(self) -> list[str]:
        return ["-P", str(self.broker.management_port)]


class ToolsAtRabbitMQ:
    """amqp-broker's tools at RabbitMQ's HTTP API."""

    # Areas that work there: not the state of the node, nor stopping it.
    areas = ("changes", "refused", "admin", "lists")

    def __init__(self, broker: RabbitMQ) -> None:
        self.url = broker.url
        self.node = broker.environment()["RABBITMQ_NODENAME"]
        login = base64.b64encode(b"guest:guest").decode()
        self.place = Place(host=broker.host, port=broker.management_port, authorization=f"Basic {login}")
        self.running = Running(self.node, self.place, broker.version)

    def run(self, line: str) -> Outcome:
        program, *words = shlex.split(line)
        if program == ADMIN:
            return _called(lambda: rabbitmqadmin.main(["-P", str(self.place.port), *words]))
        commands = tool_main.commands_of(program)
        return _called(lambda: tool.run(program, words, commands, lambda name: self.running))


def _called(main: Callable[[], int]) -> Outcome:
    output, complaint = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(complaint):
        code = main()
    return Outcome(output.getvalue(), complaint.getvalue(), code)


def _run(command: list[str], environment: dict[str, str]) -> Outcome:
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        check=False,
    )
    return Outcome(done.stdout, done.stderr, done.returncode)
