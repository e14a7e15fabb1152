"""The program as its users run it: a process of its own, with arguments and an environment.

`program()` starts it in milliseconds (`tests/forking/server.py`), `MODULE` and `SCRIPT` in a new interpreter.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from compat.waiting import wait_until
from tests.client import Client
from tests.forking.server import forked

MODULE = (sys.executable, "-m", "amqp_broker")
SCRIPT = (str(Path(sys.executable).with_name("amqp-broker")),)
TIMEOUT_S = 30.0


def program() -> tuple[str, ...]:
    """Return the command that starts the program in milliseconds."""
    return forked("amqp_broker")


def environment(**variables: str) -> dict[str, str]:
    """This process's environment without settings of the broker, and with `variables`."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("AMQP_BROKER_", "RABBITMQ_"))
    }
    # Each broker would take the folder of the user's data otherwise, and the ports that are meant for one broker.
    ports = {"AMQP_BROKER_MANAGEMENT_PORT": "0", "AMQP_BROKER_PROMETHEUS_PORT": "0"}
    return {**inherited, "AMQP_BROKER_EPHEMERAL": "true", **ports, **variables}


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the program to its end."""
    return run_as(program(), *arguments, **variables)


def run_as(command: tuple[str, ...], *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the program, started by this command, to its end."""
    return subprocess.run(
        [*command, *arguments],
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        check=False,
    )


class Serving:
    """A running `amqp-broker serve`, its ports and its output so far."""

    def __init__(self, command: tuple[str, ...], folder: Path, variables: dict[str, str]) -> None:
        self.ports_file = folder / "ports.json"
        self._output = folder / "output"
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [*command, "--ports-file", str(self.ports_file)],
                env=environment(**variables),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        wait_until(lambda: self.ports_file.exists() or self.process.poll() is not None)
        assert self.ports_file.exists(), self.output
        # The file is gone when the broker has ended.
        self.ports: dict[str, int] = json.loads(self.ports_file.read_text("utf-8"))

    @property
    def port(self) -> int:
        return self.ports["amqp"]

    @property
    def output(self) -> str:
        return self._output.read_text("utf-8")

    def client(self, host: str = "127.0.0.1") -> Client:
        return Client(self.port, host)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT_S)


def serving(folder: Path, *options: str, **variables: str) -> AbstractContextManager[Serving]:
    """A broker that runs, on a free port unless the options say another."""
    return serving_as(program(), folder, *options, **variables)


@contextmanager
def serving_as(command: tuple[str, ...], folder: Path, *options: str, **variables: str) -> Iterator[Serving]:
    """A broker that runs, started by this command."""
    port = () if "--port" in options or any(name.endswith("_PORT") for name in variables) else ("--port", "0")
    broker = Serving((*command, "serve", *port, *options), folder, variables)
    try:
        yield broker
    finally:
        broker.process.kill()
        broker.process.wait(TIMEOUT_S)
