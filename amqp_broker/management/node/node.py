"""The seam to the process: facts about the node, and commands to it. `server/management.py` implements it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from amqp_broker.management.node.rates import Rates


class Listener(NamedTuple):
    """A listener of the node; protocols are "amqp", "amqp/ssl", "http", "https" and "http/prometheus"."""

    protocol: str
    host: str
    port: int


class Alarm(NamedTuple):
    """A reason for the alarm of a resource, "memory" or "disk"; `since_ms` is in real time."""

    resource: str
    reason: str
    since_ms: int


class ShovelStatus(NamedTuple):
    """A shovel and its `state` ("starting", "running", "terminated"); `details` has the other fields of its row.

    A static shovel, which the configuration defines, has no vhost.
    """

    name: str
    vhost: str | None
    state: str
    details: dict[str, Any]


class Demo(ABC):
    """The confirm demo at a node (amqp_broker/demo), for the web page."""

    @abstractmethod
    def status(self) -> dict[str, Any]:
        """Return whether it runs, its figures, and what can be chosen at the start."""

    @abstractmethod
    def start(self, given: Mapping[str, Any]) -> None:
        """Start it. Raise ValueError for a wrong choice, and RuntimeError if it cannot start now."""

    @abstractmethod
    def stop(self) -> None:
        """Begin to stop it, if it runs."""


class Node(ABC):
    """Facts about the node and its process, and commands to it.

    `rates` are those of its counters; `started_at_ms` is the start of the broker in real time, and `memory_at_start`
    the resident memory of the process then, before anything was restored. `state` is "running", "suspended" (no new
    clients), "stopped" (no clients), or "stopping" and "starting" in between. `problem` says why a command did not
    reach its state.
    """

    started_at_ms: int
    rates: Rates
    memory_at_start: int = 0
    state: str = "running"
    problem: str = ""
    demo: Demo | None = None

    # Facts

    @abstractmethod
    def host_name(self) -> str:
        """Return the name of the machine."""

    @abstractmethod
    def now(self) -> int:
        """Return the time of the broker (ms since the epoch)."""

    @abstractmethod
    def real_now(self) -> int:
        """Return the time without the offset of a moved clock (ms since the epoch)."""

    @abstractmethod
    def clock_offset(self) -> int:
        """Return how far the clock was moved: `now` minus `real_now` (ms)."""

    @abstractmethod
    def is_frozen(self) -> bool:
        """Return whether the clock is stopped."""

    @abstractmethod
    def clock_moved_at_ms(self) -> int | None:
        """Return when the clock was last moved or frozen (ms of real time); None if it never was."""

    @abstractmethod
    def alarms(self) -> list[Alarm]:
        """Return the reasons for alarms."""

    @abstractmethod
    def listeners(self) -> list[Listener]:
        """Return the open listeners."""

    @abstractmethod
    def memory_used(self) -> int:
        """Return the resident memory of the process in octets."""

    @abstractmethod
    def memory_limit(self) -> int:
        """Return the memory limit in octets, above which publishers are blocked."""

    @abstractmethod
    def memory_setting(self) -> str:
        """Return the memory limit as it was set: a share (0.4) or an amount (2GB)."""

    @abstractmethod
    def disk_free(self) -> int:
        """Return the free disk space in octets, of the store or of the working folder."""

    @abstractmethod
    def disk_free_limit(self) -> int:
        """Return the limit of free disk space in octets."""

    @abstractmethod
    def descriptors(self) -> tuple[int, int]:
        """Return the numbers of open and of allowed file descriptors."""

    @abstractmethod
    def process_id(self) -> int:
        """Return the id of the process."""

    @abstractmethod
    def processors(self) -> int:
        """Return the number of processors."""

    @abstractmethod
    def data_folder(self) -> str:
        """Return the folder of the store, or "" without one."""

    @abstractmethod
    def config_files(self) -> Sequence[str]:
        """Return the paths of the files of the configuration, in RabbitMQ's order."""

    @abstractmethod
    def shovels(self) -> list[ShovelStatus]:
        """Return the shovels that parameters have started."""

    # Commands

    @abstractmethod
    def restart_shovel(self, vhost: str, name: str) -> bool:
        """Reconnect a shovel; return False for an unknown one."""

    @abstractmethod
    def freeze(self) -> None:
        """Stop the clock."""

    @abstractmethod
    def resume(self) -> None:
        """Let the clock run again from its current time."""

    @abstractmethod
    def advance(self, duration_ms: int) -> None:
        """Advance the clock through everything that is due. Raise ValueError for an invalid duration."""

    @abstractmethod
    def flush(self) -> None:
        """Write the output of sessions that a change has caused."""

    @abstractmethod
    def set_memory_limit(self, text: str) -> None:
        """Set the memory limit: a share (0.4) or an amount ("2GB"). Raise SettingsError."""

    @abstractmethod
    def set_disk_free_limit(self, text: str) -> None:
        """Set the limit of free disk space: an amount, or a share of the memory. Raise SettingsError."""

    @abstractmethod
    def set_alarm(self, resource: str, is_on: bool) -> None:
        """Set or clear the alarm of "memory" or "disk"."""

    @abstractmethod
    def watch_disk(self, is_on: bool) -> None:
        """Start or stop watching the free disk space."""

    @abstractmethod
    def set_log_level(self, level: str) -> None:
        """Set the level of the log. Raise SettingsError."""

    @abstractmethod
    def stop(self) -> None:
        """End the process, as SIGTERM does."""

    @abstractmethod
    def stop_app(self) -> None:
        """Begin to disconnect all clients and to accept none until `start_app`; `state` is then "stopped"."""

    @abstractmethod
    def start_app(self) -> None:
        """Begin to listen again, on the same ports."""

    @abstractmethod
    def suspend_listeners(self) -> None:
        """Begin to accept no new clients; connected ones stay."""

    @abstractmethod
    def resume_listeners(self) -> None:
        """Begin to accept new clients again."""
