"""The load generator: built from load/*.c when needed, and run as a separate process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

SOURCES = Path(__file__).parent / "load"
PROGRAM = Path(__file__).parents[1] / ".cache" / "bench" / "load"
SETUP_S = 120  # time for a run outside its timed part


class Reachable(Protocol):
    """A broker that the generator can connect to."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def user(self) -> str: ...
    @property
    def password(self) -> str: ...


class MissingToolError(Exception):
    """A requirement is missing on this machine; the text says what to do."""


class LoadError(Exception):
    """A run that failed, or that did not transfer all its messages in time."""


@dataclass(frozen=True)
class Load:
    """The load: each field is the generator's option of that name, which its usage text explains."""

    publishers: int = 1
    consumers: int = 1
    queues: int = 1
    messages: int = 100_000
    body: int = 16
    shape: str = ""
    window: int = 0
    ack: int = 0
    prefetch: int = 0
    rate: int = 0
    batch: int = 0
    fanout: bool = False
    endpoints: bool = False
    spread: bool = False
    argument: str = ""
    priorities: int = 0
    expiration: int = 0
    delay: int = 0
    persistent: bool = False
    stream: bool = False
    dead_letter: bool = False
    topic_bindings: int = 0
    topic_keys: int = 0
    hash_keys: int = 0
    unique_keys: bool = False
    header_bindings: int = 0
    reply: bool = False
    requeue: bool = False
    loop: str = ""
    callers: int = 0
    sessions: int = 0
    idle: int = 0
    receive: int = 0
    prefix: str = ""
    keep: bool = False
    seconds: float = 60

    def options(self) -> list[str]:
        options = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                options.append("--" + field.name.replace("_", "-"))
                if value is not True:
                    options.append(str(value))
        return options


@dataclass(frozen=True)
class Outcome:
    """The generator's results; a message is a publish or a delivery, whichever there are more of."""

    sent: int
    confirmed: int
    received: int
    is_complete: bool
    seconds: float
    publish_rate: float
    receive_rate: float
    latency_p50_us: float | None
    latency_p99_us: float | None
    latency_p999_us: float | None
    latency_max_us: float | None
    own_cpu_us_per_message: float
    own_cpu_share: float
    broker_cpu_us_per_message: float
    elsewhere_share: float  # of one core, used by neither the generator nor the broker


def build_generator() -> Path:
    """Compile the generator unless it is newer than its sources."""
    return build(SOURCES, PROGRAM)


def build(folder: Path, program: Path) -> Path:
    """Compile the C sources of a folder to a program, unless that is newer. Raise MissingToolError."""
    sources = sorted(folder.glob("*.c"))
    newest = max(path.stat().st_mtime for path in [*sources, *folder.glob("*.h")])
    if program.exists() and program.stat().st_mtime > newest:
        return program
    compiler = next(filter(None, map(shutil.which, [os.environ.get("CC", "cc"), "gcc", "clang"])), None)
    if compiler is None:
        raise MissingToolError("The benchmark needs a C compiler: install one (Debian: gcc libc6-dev) or set CC.")
    program.parent.mkdir(parents=True, exist_ok=True)
    # Another process may be building or running it, so replace it atomically.
    new = program.with_name(f"{program.name}.{os.getpid()}")
    subprocess.run([compiler, "-O2", "-std=gnu11", "-o", str(new), *map(str, sources), "-lm"], check=True, timeout=120)
    new.replace(program)
    return program


def run_load(load: Load, broker: Reachable, pid: int) -> Outcome:
    """Run the load on a broker with process id `pid`, and return the outcome."""
    before = _cpu_seconds_elsewhere(pid)
    started = time.monotonic()
    command = [str(build_generator()), "--host", broker.host, "--port", str(broker.port), "--pid", str(pid)]
    command += ["--user", broker.user, "--password", broker.password]
    try:
        done = subprocess.run(
            [*command, *load.options()],
            capture_output=True,
            encoding="utf-8",
            timeout=load.seconds + SETUP_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LoadError(f"the broker did not answer for {error.timeout:.0f} s") from None
    if not done.stdout:
        raise LoadError(done.stderr.strip() or f"the load generator ended with {done.returncode}")
    figures: dict[str, Any] = json.loads(done.stdout)
    elsewhere = (_cpu_seconds_elsewhere(pid) - before) / (time.monotonic() - started)
    outcome = Outcome(**figures, elsewhere_share=max(elsewhere, 0))
    if not outcome.is_complete:
        raise LoadError(
            f"after {load.seconds:g} s: {outcome.sent} sent, {outcome.confirmed} confirmed, {outcome.received} received"
        )
    if done.returncode:
        raise LoadError(done.stderr.strip())
    return outcome


def _cpu_seconds_elsewhere(pid: int) -> float:
    """Return the machine's CPU time without that of the broker, this process and its ended children."""
    ticks = [int(field) for field in Path("/proc/stat").read_text("utf-8").split(maxsplit=9)[1:9]]
    machine = sum(ticks) - ticks[3] - ticks[4]  # proc(5): the fourth is idle, the fifth is idle while disks work
    own = os.times()
    return machine / os.sysconf("SC_CLK_TCK") - cpu_seconds_of(pid) - sum(own[:4])


def cpu_seconds_of(pid: int) -> float:
    """Return user and system time of a process. Raise LoadError if it does not exist."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    except FileNotFoundError:
        raise LoadError("the broker is not running") from None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
