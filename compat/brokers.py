"""Brokers as processes: amqp-broker here, RabbitMQ in `oracles/rabbitmq.py`.

Both listen on a free port of 127.0.0.1 and keep their data in a given folder. The tests and `make bench` start, kill
and restart them.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Self

from amqp_broker.settings.profiles import DEFAULT as DEFAULT_PROFILE

# Below the system's ports for clients: otherwise a client could take the port of a broker during a restart.
PORTS = range(20_000, 32_000)
BLOCK = 200


@cache
def own_ports() -> Iterator[int]:
    """Yield ports that only this process gives out, each again only after all others.

    A broker binds its port later, and releases it during a restart. Meanwhile other processes must not use the port:
    they see that the first port of the block is taken.
    """
    for first in PORTS[::BLOCK]:
        with socket.socket() as mark:
            try:
                mark.bind(("127.0.0.1", first))
            except OSError:
                continue
            yield from cycle(range(first + 1, first + BLOCK))
    raise OSError(f"each block of {PORTS} is taken")


def free_port() -> int:
    """Return a free TCP port of 127.0.0.1 that is given out nowhere else."""
    while True:
        port = next(own_ports())
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


class BrokerProcess(ABC):
    """A broker under test, with `host`, `port`, `url`, `user`, `password`, and `pid` while it runs."""

    name: str
    host = "127.0.0.1"
    user = password = "guest"
    # Comparisons declare durable queues wherever any kind will do, for versions that refuse transient ones.
    declares_durable = False

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"amqp://{self.user}:{self.password}@{self.host}:{self.port}/"

    @property
    def pid(self) -> int:
        """The process id of the broker itself (for CPU time and memory)."""
        assert self.process is not None
        return self.process.pid

    @property
    def log_path(self) -> Path:
        return self.folder / "broker.log"

    @abstractmethod
    def command(self) -> list[str]:
        """Prepare the folder and return the command that starts the broker."""

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    @abstractmethod
    def is_ready(self) -> bool:
        """Return whether the broker accepts clients."""

    @abstractmethod
    def run(self, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of the broker's command line tools against it."""

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )

    def spawn(self) -> None:
        """Start the process without waiting for it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), env=self.environment(), stdout=log, stderr=log, start_new_session=True
            )

    def start(self, timeout_s: float = 60.0) -> Self:
        """Start the process and wait until it accepts clients. Raise RuntimeError with the log if it does not."""
        self.spawn()
        assert self.process is not None
        deadline = time.monotonic() + timeout_s
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(
                    f"{self.name} did not start:\n{self.log_path.read_text('utf-8', errors='replace')[-4000:]}"
                )
            time.sleep(0.01)
        return self

    def kill(self) -> None:
        """Kill the broker and its children at once, like `kill -9`."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """Stop the broker with SIGTERM and wait for its end."""
        self._signal(signal.SIGTERM)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Start the broker, and kill it at the end."""
        self.start()
        try:
            yield
        finally:
            self.kill()

    def write_metadata(self) -> None:  # noqa: B027
        """Write what was declared to the disk, if the broker does this later than its answer says."""

    def restart(self) -> None:
        """Kill the broker and start it again on the same port, with what was declared."""
        self.write_metadata()
        self.kill()
        self.start()

    def _signal(self, number: signal.Signals) -> None:
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
        self.process.wait(timeout=30)
        self.process = None


class AmqpBroker(BrokerProcess):
    """amqp-broker, run with the interpreter of this environment."""

    name = "amqp-broker"

    def __init__(
        self, folder: Path, port: int = 0, options: tuple[str, ...] = (), profile: str = DEFAULT_PROFILE
    ) -> None:
        super().__init__(folder, port)
        self.profile = profile
        self.options = ("--compat", profile, *options)
        # Variables of its environment.
        self.variables: dict[str, str] = {}

    def environment(self) -> dict[str, str]:
        # With TLS there is an HTTPS port as well, and other brokers run at the same time.
        ports = {"AMQP_BROKER_MANAGEMENT_TLS_PORT": "0"} if "--tls-port" in self.options else {}
        return {**super().environment(), **ports, **self.variables}

    @property
    def ports_file(self) -> Path:
        return self.folder / "ports.json"

    def command(self) -> list[str]:
        self.ports_file.unlink(missing_ok=True)
        return [
            *(sys.executable, "-m", "amqp_broker", "serve", "--host", self.host, "--port", str(self.port)),
            *("--management-port", "0", "--prometheus-port", "0"),
            *("--ports-file", str(self.ports_file), "--data-dir", str(self.folder / "data"), *self.options),
        ]

    @property
    def management_port(self) -> int:
        """The port of the HTTP API, until the next start."""
        return int(json.loads(self.ports_file.read_text("utf-8"))["management"])

    @property
    def prometheus_port(self) -> int:
        """The port of the metrics, until the next start."""
        return int(json.loads(self.ports_file.read_text("utf-8"))["prometheus"])

    def run(self, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a counterpart of RabbitMQ's tools, for example `diagnostics`."""
        return self._run(sys.executable, "-m", "amqp_broker", tool, "--node", str(self.port), *arguments)

    def is_ready(self) -> bool:
        try:
            return bool(json.loads(self.ports_file.read_text("utf-8"))["amqp"] == self.port)
        except (FileNotFoundError, ValueError):
            return False
