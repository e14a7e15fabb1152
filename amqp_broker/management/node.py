"""Seam: what the shell knows of the node, and what it can be told to do. `server/management.py` implements it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from amqp_broker.management.rates import Rates


class Listener(NamedTuple):
    """What the node listens with: protocol is "amqp", "amqp/ssl", "http", "https", "http/prometheus"."""

    protocol: str
    host: str
    port: int


class ShovelStatus(NamedTuple):
    """A shovel and its `state` ("starting", "running", "terminated"); `told` is what else is known of it."""

    name: str
    vhost: str
    state: str
    told: dict[str, Any]


class Node:
    """`rates` are those of its counters, `started_at_ms` is when the broker was started (of `real_now`).

    `state` is what it does for clients: "running", "suspended" (no new ones are let in), "stopped" (none are there), or
    "stopping" and "starting" in between. `problem` says why it could not get to where it was told to go.
    """

    started_at_ms: int
    rates: Rates
    state: str = "running"
    problem: str = ""
    # What a demo tells of itself that runs at this node, or has run (amqp_broker/demo/figures.py).
    demo: Callable[[], dict[str, Any]] | None = None

    # What it is

    def now(self) -> int:
        """What time it is (ms since the epoch)."""
        raise NotImplementedError

    def real_now(self) -> int:
        """The same, if nobody had moved the clock."""
        raise NotImplementedError

    def is_frozen(self) -> bool:
        """Whether the clock stands still."""
        raise NotImplementedError

    def listeners(self) -> list[Listener]:
        raise NotImplementedError

    def memory_used(self) -> int:
        """Octets that the process has."""
        raise NotImplementedError

    def memory_limit(self) -> int:
        """Octets from which on publishers are blocked."""
        raise NotImplementedError

    def disk_free(self) -> int:
        """Octets free where the store is; without a store, where the process works."""
        raise NotImplementedError

    def disk_free_limit(self) -> int:
        raise NotImplementedError

    def descriptors(self) -> tuple[int, int]:
        """Open file descriptors, and how many there may be."""
        raise NotImplementedError

    def process_id(self) -> int:
        raise NotImplementedError

    def processors(self) -> int:
        """How many processors there are."""
        raise NotImplementedError

    def data_folder(self) -> str:
        """Where the store is, or "" if there is none."""
        raise NotImplementedError

    def shovels(self) -> list[ShovelStatus]:
        """The shovels that parameters have started."""
        raise NotImplementedError

    # What it does

    def restart_shovel(self, vhost: str, name: str) -> bool:
        """Have a shovel connect anew; returns whether there is one."""
        raise NotImplementedError

    def freeze(self) -> None:
        """Let time stand still."""
        raise NotImplementedError

    def resume(self) -> None:
        """Let time run on from where it stands."""
        raise NotImplementedError

    def advance(self, duration_ms: int) -> None:
        """Let time pass, through all that is due meanwhile. Raises ValueError, and changes nothing then."""
        raise NotImplementedError

    def flush(self) -> None:
        """Write what sessions have to say after something was changed."""
        raise NotImplementedError

    def set_memory_limit(self, text: str) -> None:
        """A share (0.4) or an amount ("2GB") of memory. Raises ConfigError."""
        raise NotImplementedError

    def set_disk_free_limit(self, text: str) -> None:
        """An amount, or a share of the memory. Raises ConfigError."""
        raise NotImplementedError

    def set_log_level(self, level: str) -> None:
        """Raises ConfigError."""
        raise NotImplementedError

    def stop(self) -> None:
        """End the process, as SIGTERM does."""
        raise NotImplementedError

    def stop_app(self) -> None:
        """Begin to send all clients away, and let none in until `start_app`; `state` tells when that is done."""
        raise NotImplementedError

    def start_app(self) -> None:
        """Begin to listen again, on the same ports."""
        raise NotImplementedError

    def suspend_listeners(self) -> None:
        """Begin to let no new clients in; those that are there stay."""
        raise NotImplementedError

    def resume_listeners(self) -> None:
        """Begin to let new clients in again."""
        raise NotImplementedError
