"""RabbitMQ as a process: each has its own ports, folder, node name, Erlang cookie and epmd."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from functools import cached_property
from pathlib import Path
from typing import Self

from compat.brokers import BrokerProcess, free_port
from compat.oracles.debian_root import ALONE
from compat.oracles.oracle import BIN, LIB, OLDEST, SYSTEM, Oracle, version_in
from compat.waiting import wait_until

# The plugins of the package with additional exchange types.
EXCHANGE_PLUGINS = (
    "rabbitmq_consistent_hash_exchange",
    "rabbitmq_random_exchange",
    "rabbitmq_recent_history_exchange",
    "rabbitmq_sharding",
)
# Of Mnesia and of Ra. Newer versions have no Mnesia.
WRITE_METADATA = "catch mnesia:dump_log(), [dets:sync(Table) || Table <- dets:all()]."
ENTER_ROOT = Path(__file__).with_name("enter_root.sh")


class RabbitMQ(BrokerProcess):
    """One of the oracles.

    `settings` are additional lines of rabbitmq.conf. With the management plugin, its HTTP API is at `management_port`;
    with the Prometheus plugin, its metrics are at `prometheus_port`.
    """

    name = "RabbitMQ"

    def __init__(
        self,
        folder: Path,
        port: int = 0,
        plugins: tuple[str, ...] = (),
        settings: tuple[str, ...] = (),
        oracle: Oracle = OLDEST,
    ) -> None:
        super().__init__(folder.resolve(), port)
        self.plugins = plugins
        self.settings = settings
        self.oracle = oracle
        self.declares_durable = oracle.declares_durable
        self.management_port, self.prometheus_port, self.stream_port = free_port(), free_port(), free_port()
        self.dist_port, self.epmd_port = free_port(), free_port()
        self.home = self.folder / "home"

    @staticmethod
    def is_installed() -> bool:
        """Return whether this machine has the oldest oracle."""
        return OLDEST.installed() is not None

    @cached_property
    def root(self) -> Path:
        """The root folder of its package. Raise Unavailable."""
        return self.oracle.have()

    @property
    def version(self) -> str:
        return version_in(self.root)

    @property
    def library(self) -> Path:
        """The folder of its own code and plugins."""
        return self.root / LIB / f"rabbitmq_server-{self.version}"

    @property
    def pid(self) -> int:
        """The process id of the Erlang VM, which the server script executes or forks."""
        if found := self._virtual_machine():
            return found
        raise RuntimeError("RabbitMQ's Erlang VM is not running")

    def _virtual_machine(self) -> int | None:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    command = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                if b"beam.smp" in command.split(b"\0", 1)[0] and str(self.folder).encode() in command:
                    return int(entry.name)
        return None

    def configuration(self) -> list[str]:
        """Return the lines of its rabbitmq.conf."""
        lines = [f"listeners.tcp.default = {self.host}:{self.port}", "log.console = true", "log.file = false"]
        if "rabbitmq_management" in self.plugins:
            lines += [f"management.tcp.port = {self.management_port}", f"management.tcp.ip = {self.host}"]
            # Lists are cached five times as long as they took, and /queues shares its cache with /queues/detailed:
            # a list could have the columns of the other.
            lines.append("management.db_cache_multiplier = 0")
        if "rabbitmq_prometheus" in self.plugins:
            lines += [f"prometheus.tcp.port = {self.prometheus_port}", f"prometheus.tcp.ip = {self.host}"]
        if "rabbitmq_stream" in self.plugins:
            lines.append(f"stream.listeners.tcp.default = {self.host}:{self.stream_port}")
        return [*lines, *self.oracle.settings, *self.settings]

    def command(self) -> list[str]:
        self.home.mkdir(exist_ok=True)
        (self.folder / "enabled_plugins").write_text(f"[{','.join(self.plugins)}].\n", "utf-8")
        (self.folder / "rabbitmq.conf").write_text("\n".join(self.configuration()) + "\n", "utf-8")
        return self.entered("rabbitmq-server")

    def entered(self, program: str, *arguments: str) -> list[str]:
        """Return the command that runs a program of this version; a name without a path is one of RabbitMQ's."""
        command = [str(SYSTEM / BIN / program), *arguments]
        if self.root == SYSTEM:
            return command
        return [*ALONE, "sh", "-e", str(ENTER_ROOT), str(self.root), str(self.folder), *command]

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

    def run(self, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of RabbitMQ's tools, for example `rabbitmqctl`, or another program by its path."""
        return self._run(*self.entered(tool, *arguments))

    def is_ready(self) -> bool:
        return "Server startup complete" in self.log_path.read_text("utf-8", errors="replace")

    def start(self, timeout_s: float = 120.0) -> Self:
        self.log_path.unlink(missing_ok=True)
        return super().start(timeout_s)

    def write_metadata(self) -> None:
        """Write what was declared to the disk.

        If the broker is killed, a queue that was declared in the last seconds would be gone otherwise, or have no
        leader, on a busy machine.
        """
        self.run("rabbitmqctl", "eval", WRITE_METADATA).check_returncode()

    def _signal(self, number: signal.Signals) -> None:
        super()._signal(number)
        if self.root == SYSTEM:
            # epmd creates its own session, so the signal to the group has not reached it.
            subprocess.run(
                [shutil.which("epmd") or "epmd", "-port", str(self.epmd_port), "-kill"],
                env=self.environment(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
        # The processes of another root end a moment after the command that entered it.
        wait_until(lambda: self._virtual_machine() is None)
