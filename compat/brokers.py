"""Real brokers as processes of their own: ours, and RabbitMQ from Debian's package as the oracle.

Both listen on a free port of 127.0.0.1, keep their data in a folder given to them, and are started, killed and
restarted by the tests and by `make bench`.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

RABBITMQ_SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
# What Debian's package has of RabbitMQ's exchange types beyond those of the specification.
EXCHANGE_PLUGINS = (
    "rabbitmq_consistent_hash_exchange",
    "rabbitmq_random_exchange",
    "rabbitmq_recent_history_exchange",
    "rabbitmq_sharding",
)

# Those given last: a broker takes its ports only when it starts.
_given_ports: deque[int] = deque(maxlen=1000)


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on now, and nobody else is given by this.

    It lies below the range from which the system takes ports for clients: one of these could otherwise sit on the port
    of a broker that is down for a restart. Each worker of a parallel run has a range of its own.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 6
    while True:
        port = 20_000 + 2_000 * worker + random.randrange(2_000)
        if port in _given_ports:
            continue
        _given_ports.append(port)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


class BrokerProcess:
    """A broker under test: `host`, `port`, `url` and `pid` while it runs."""

    name = "broker"
    host = "127.0.0.1"

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@{self.host}:{self.port}/"

    @property
    def pid(self) -> int:
        """Process id of the broker itself (for CPU time and memory)."""
        assert self.process is not None
        return self.process.pid

    @property
    def log_path(self) -> Path:
        return self.folder / "broker.log"

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def is_ready(self) -> bool:
        raise NotImplementedError

    def spawn(self) -> None:
        """Start the process, and do not wait for it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), env=self.environment(), stdout=log, stderr=log, start_new_session=True
            )

    def start(self, timeout_s: float = 60.0) -> BrokerProcess:
        """Start the process and return when it accepts clients; RuntimeError with the log if it does not."""
        self.spawn()
        assert self.process is not None
        deadline = time.monotonic() + timeout_s
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"{self.name} did not start:\n{self.log_path.read_text(errors='replace')[-4000:]}")
            time.sleep(0.01)
        return self

    def kill(self) -> None:
        """End it at once, as `kill -9` does, with all its children."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to end and wait."""
        self._signal(signal.SIGTERM)

    def restart(self) -> None:
        """Kill it and start it again on the same port."""
        self.kill()
        self.start()

    def _signal(self, number: signal.Signals) -> None:
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
        self.process.wait(timeout=30)
        self.process = None


class OurBroker(BrokerProcess):
    """amqp-broker, run with the interpreter of this environment."""

    name = "amqp-broker"

    def __init__(self, folder: Path, port: int = 0, options: tuple[str, ...] = ()) -> None:
        super().__init__(folder, port)
        self.options = options
        # Of its environment.
        self.variables: dict[str, str] = {}

    def environment(self) -> dict[str, str]:
        # With TLS there is a port of HTTPS, too, and other brokers run beside this one.
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
        """Where the HTTP API is, until the next start."""
        return int(json.loads(self.ports_file.read_text())["management"])

    @property
    def prometheus_port(self) -> int:
        """Where metrics are, until the next start."""
        return int(json.loads(self.ports_file.read_text())["prometheus"])

    def run(self, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of our commands that are RabbitMQ's, `diagnostics` for one, against this broker."""
        return subprocess.run(
            [sys.executable, "-m", "amqp_broker", tool, "--node", str(self.port), *arguments],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def is_ready(self) -> bool:
        try:
            return bool(json.loads(self.ports_file.read_text())["amqp"] == self.port)
        except (FileNotFoundError, ValueError):
            return False


class RabbitMQ(BrokerProcess):
    """Debian's rabbitmq-server on its own ports, with its own data folder, node name and epmd.

    `settings` are further lines of rabbitmq.conf. With the management plugin its HTTP API is at `management_port`, with
    that of Prometheus its metrics at `prometheus_port`.
    """

    name = "RabbitMQ"

    def __init__(
        self, folder: Path, port: int = 0, plugins: tuple[str, ...] = (), settings: tuple[str, ...] = ()
    ) -> None:
        super().__init__(folder, port)
        self.plugins = plugins
        self.settings = settings
        self.management_port, self.prometheus_port = free_port(), free_port()
        self.dist_port, self.epmd_port = free_port(), free_port()
        self.home = folder / "home"

    @staticmethod
    def is_installed() -> bool:
        return RABBITMQ_SERVER.exists()

    @property
    def pid(self) -> int:
        """The Erlang VM's process id: the server script execs or forks it."""
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    command = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                if b"beam.smp" in command.split(b"\0", 1)[0] and str(self.folder).encode() in command:
                    return int(entry.name)
        raise RuntimeError("RabbitMQ's Erlang VM is not running")

    def command(self) -> list[str]:
        self.home.mkdir(exist_ok=True)
        (self.folder / "enabled_plugins").write_text(f"[{','.join(self.plugins)}].\n")
        lines = [f"listeners.tcp.default = {self.host}:{self.port}", "log.console = true", "log.file = false"]
        if "rabbitmq_management" in self.plugins:
            lines += [f"management.tcp.port = {self.management_port}", f"management.tcp.ip = {self.host}"]
        if "rabbitmq_prometheus" in self.plugins:
            lines += [f"prometheus.tcp.port = {self.prometheus_port}", f"prometheus.tcp.ip = {self.host}"]
        (self.folder / "rabbitmq.conf").write_text("\n".join([*lines, *self.settings]) + "\n")
        return [str(RABBITMQ_SERVER)]

    def environment(self) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("RABBITMQ_")}
        return {
            **inherited,
            "HOME": str(self.home),
            "ERL_EPMD_PORT": str(self.epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_RELAXED_COMMAND_CHECK": "true",
            "RABBITMQ_NODENAME": f"oracle{self.port}@localhost",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self.dist_port),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
        }

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of RabbitMQ's commands, `rabbitmqctl` for one, against this node."""
        return subprocess.run(
            [str(RABBITMQ_SERVER.with_name(program)), *arguments],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def is_ready(self) -> bool:
        return "Server startup complete" in self.log_path.read_text(errors="replace")

    def start(self, timeout_s: float = 120.0) -> BrokerProcess:
        self.log_path.unlink(missing_ok=True)
        return super().start(timeout_s)

    def _signal(self, number: signal.Signals) -> None:
        super()._signal(number)
        # epmd makes itself a session of its own, so the group's signal has not reached it.
        subprocess.run(
            [shutil.which("epmd") or "epmd", "-port", str(self.epmd_port), "-kill"],
            env=self.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
