"""A stage without a broker, and a client whose program is a script."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from compat.matrix.rows import Client, Row

# Reports ok for each scenario, after the action from the environment.
SCRIPT = """
import os, pathlib, sys, time
for scenario in sys.argv[1:]:
    exec(os.environ.get(scenario, ""))
    print("RESULT", scenario, "ok", flush=True)
"""


@dataclass(eq=False)
class Rehearsal:
    """A stage that records the requests."""

    variables: dict[str, str] = field(default_factory=dict)
    name: str = "amqp-broker"
    asked: list[str] = field(default_factory=list)

    def start(self) -> None:
        self.asked.append("start")

    def environment(self, prefix: str) -> dict[str, str]:
        return {"PREFIX": prefix, **self.variables}

    def restart(self) -> None:
        self.asked.append("restart")

    def close_connections(self) -> int:
        self.asked.append("close")
        return 1

    def use(self) -> None:
        self.asked.append("use")

    def leave(self) -> None:
        self.asked.append("leave")

    def end(self) -> None:
        self.asked.append("end")


def client(
    folder: Path,
    name: str = "script",
    install: Sequence[Sequence[str]] = (),
    programs: Sequence[tuple[str, str]] = (),
    absent: str = "",
    timeout_s: float = 20.0,
    newer_only: Mapping[str, str] | None = None,
    build_s: float = 0.0,
    needs: Sequence[str] = (),
) -> Client:
    """Create a client in this folder whose program is SCRIPT."""
    folder.mkdir(exist_ok=True)
    (folder / "play.py").write_text(SCRIPT, "utf-8")
    command = (sys.executable, "play.py")
    row = Row(name, "Python", "1.0", command, install, programs, absent, newer_only or {}, timeout_s, build_s, needs)
    return Client(row, folder)
