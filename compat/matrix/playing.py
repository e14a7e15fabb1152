"""Runs a client's program: its arguments are the scenarios, its output is lines of text."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from compat.matrix.results import Kind, Outcome, parse_result
from compat.matrix.rows import Client
from compat.matrix.stage import Scene
from compat.unique_names import unique_name

ENDING_S = 10.0


def play(
    client: Client, folder: Path, stage: Scene, scenarios: Sequence[str], tell: Callable[[str, Outcome], object]
) -> None:
    """Play the scenarios with a client installed in the folder, and yield each outcome.

    A program that ends or is silent for too long has failed in its current scenario, and is restarted for the remaining
    ones.
    """
    remaining = list(scenarios)
    while remaining:
        program = Program(client, folder, stage, remaining)
        try:
            reason = program.run(remaining, tell)
        finally:
            program.end()
            stage.leave()
        if reason:
            tell(remaining.pop(0), Outcome(Kind.FAILED, reason))


class Program:
    """One process of a client's program; its other output is in `play-<slug>.log` of its folder."""

    def __init__(self, client: Client, folder: Path, stage: Scene, scenarios: Sequence[str]) -> None:
        self._requests: dict[str, Callable[[], object]] = {
            "RESTART": stage.restart,
            "CLOSE": stage.close_connections,
            "USE": stage.use,
            "LEAVE": stage.leave,
        }
        self.timeout_s = client.row.timeout_s
        self._has_played = False
        self._log = (folder / f"play-{client.slug}.log").open("ab")
        self._process = subprocess.Popen(
            [*client.row.command, *scenarios],
            cwd=folder,
            env={**os.environ, **stage.environment(unique_name(client.slug))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        # None after the last line.
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()

    def run(self, remaining: list[str], tell: Callable[[str, Outcome], object]) -> str:
        """Read results and remove them from the list; return the reason of an early stop, or an empty string."""
        while remaining:
            try:
                line = self._lines.get(timeout=self.timeout_s)
            except queue.Empty:
                return f"no result within {self.timeout_s:.0f} s"
            if line is None:
                return f"the program ended with {self._process.wait(ENDING_S)}"
            if request := self._requests.get(line):
                request()
                self._answer()
            elif result := parse_result(line):
                scenario, outcome = result
                if scenario != remaining[0]:
                    return f"the program reported {scenario} instead"
                tell(remaining.pop(0), outcome)
        self._has_played = True
        return ""

    def end(self) -> None:
        """End the process; one that has played all scenarios may exit by itself."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(ENDING_S if self._has_played else 0)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()

    def _answer(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # a program that has ended is reported by its last line
            self._process.stdin.write(b"DONE\n")
            self._process.stdin.flush()

    def _read(self, stdout: IO[bytes]) -> None:
        for octets in stdout:
            line = octets.decode(errors="replace").rstrip()
            with suppress(ValueError):  # the log is closed once its reader has ended
                self._log.write(octets)
                self._log.flush()
            self._lines.put(line)
        self._lines.put(None)
