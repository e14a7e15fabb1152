"""Commands run by RabbitMQ's tools and by ours, and what came of them."""

from __future__ import annotations

import base64
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from amqp_broker.cli import tool
from amqp_broker.cli.api import Place
from amqp_broker.cli.main import TOOLS
from amqp_broker.cli.nodes import Running
from amqp_broker.cli.tools import commands_of
from compat.brokers import OurBroker, RabbitMQ

NAMES = {real: name for name, real in TOOLS.items()}
TIMEOUT_S = 60.0


class Outcome(NamedTuple):
    """What a command printed, and its exit code."""

    output: str
    complaint: str
    exit_code: int

    def without(self, *names: str) -> Outcome:
        """With one word for what the two brokers call otherwise, and without the order of rows."""
        return Outcome(_plain(self.output, names), _plain(self.complaint, names), self.exit_code)


def _plain(text: str, names: tuple[str, ...]) -> str:
    for name in names:
        text = text.replace(name, "NODE")
    # The time in front of a line of Erlang's log, which some errors bring along, and processes.
    text = re.sub(r"^\n\d\d:\d\d:.*\n", "", text)
    text = re.sub(r"<[\w@.]+\.\d+\.\d+>", "PID", text)
    # Rows of JSON have a comma in front, but for the first one.
    return "\n".join(sorted(line.removeprefix(",") for line in text.split("\n")))


class Theirs:
    """RabbitMQ and its tools."""

    def __init__(self, broker: RabbitMQ) -> None:
        self.broker = broker
        self.node = broker.environment()["RABBITMQ_NODENAME"]

    def run(self, line: str) -> Outcome:
        program, *words = shlex.split(line)
        done = self.broker.run(program, *words)
        return Outcome(done.stdout, done.stderr, done.returncode)

    def run_with_our_tools(self, line: str) -> Outcome:
        """The same command by our tools, which ask RabbitMQ's own HTTP API."""
        program, *words = shlex.split(line)
        place = Place(
            host=self.broker.host,
            port=self.broker.management_port,
            authorization="Basic " + base64.b64encode(b"guest:guest").decode(),
        )
        output, complaint = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(complaint):
            code = tool.run(program, words, commands_of(program), lambda name: Running(self.node, place))
        return Outcome(output.getvalue(), complaint.getvalue(), code)


class Ours:
    """Our broker and our tools."""

    node = "ours@localhost"

    def __init__(self, broker: OurBroker, folder: Path) -> None:
        self.broker = broker
        os.environ["AMQP_BROKER_RUNTIME_DIR"] = str(folder)

    def run(self, line: str) -> Outcome:
        program, *words = shlex.split(line)
        done = subprocess.run(
            [sys.executable, "-m", "amqp_broker", NAMES[program], *words],
            env={**os.environ, "AMQP_BROKER_PORT": str(self.broker.port)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        return Outcome(done.stdout, done.stderr, done.returncode)
