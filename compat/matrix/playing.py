"""Installs a client and lets its program play: its arguments are the scenarios, the rest is lines of text."""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from compat.matrix.results import Kind, Outcome, parse_result
from compat.matrix.rows import COMPAT, Client
from compat.matrix.stage import Stage
from compat.names import unique_name

INSTALL_TIMEOUT_S = 900.0
ENDING_S = 10.0


class InstallError(Exception):
    """Why a client cannot be played with here, in one line."""


def install(client: Client, cache: Path) -> Path:
    """Copy the client's folder into the cache, install there what it needs, and return the copy; InstallError if not.

    What an earlier run has built stays and is used again.
    """
    row = client.row
    if row.absent:
        raise InstallError(row.absent)
    folder = cache / client.folder.name
    _copy(client.folder, folder)
    missing = [package for program, package in row.programs if not shutil.which(program)]
    commands = [[str(COMPAT.parent / ".ci" / "apt"), *missing]] if missing else []
    with (folder / "install.log").open("wb") as log:
        for command in [*commands, *map(list, row.install)]:
            try:
                subprocess.run(
                    command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True,
                    timeout=INSTALL_TIMEOUT_S,
                )  # fmt: skip
            except (OSError, subprocess.SubprocessError) as error:
                raise InstallError(f"{' '.join(command)}: {_last_line(folder / 'install.log') or error}") from error
    return folder


def play(
    client: Client, folder: Path, stage: Stage, scenarios: Sequence[str], tell: Callable[[str, Outcome], object]
) -> None:
    """Play the scenarios with a client that is installed in the folder, and tell each outcome as it comes.

    A program that ends or says nothing for too long has failed in the scenario that it was at, and is started again
    for those that follow.
    """
    remaining = list(scenarios)
    while remaining:
        program = Program(client, folder, stage, remaining)
        try:
            reason = program.run(remaining, tell)
        finally:
            program.end()
        if reason:
            tell(remaining.pop(0), Outcome(Kind.FAILED, reason))


class Program:
    """One process of a client's program. What it prints beside its results is in `play-<slug>.log` of its folder."""

    def __init__(self, client: Client, folder: Path, stage: Stage, scenarios: Sequence[str]) -> None:
        self.stage = stage
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
        """Follow it and take from the list what it has played; why it stopped before the end, if it did."""
        while remaining:
            try:
                line = self._lines.get(timeout=self.timeout_s)
            except queue.Empty:
                return f"no result within {self.timeout_s:.0f} s"
            if line is None:
                return f"the program ended with {self._process.wait(ENDING_S)}"
            if line in ("RESTART", "CLOSE"):
                self.stage.restart() if line == "RESTART" else self.stage.close_connections()
                self._answer()
            elif result := parse_result(line):
                scenario, outcome = result
                if scenario != remaining[0]:
                    return f"the program told of {scenario} instead"
                tell(remaining.pop(0), outcome)
        self._has_played = True
        return ""

    def end(self) -> None:
        """End it; one that has played all may do so by itself."""
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
        with suppress(OSError):  # a program that has ended is told of by its last line
            self._process.stdin.write(b"DONE\n")
            self._process.stdin.flush()

    def _read(self, stdout: IO[bytes]) -> None:
        for octets in stdout:
            line = octets.decode(errors="replace").rstrip()
            with suppress(ValueError):  # the log is closed when nobody reads any more
                self._log.write(octets)
                self._log.flush()
            self._lines.put(line)
        self._lines.put(None)


def _copy(source: Path, copy: Path) -> None:
    """Copy a folder, and remove what was copied before and is no longer there; what was built in the copy stays."""
    copied = copy / "copied.txt"
    before = set(copied.read_text().splitlines()) if copied.exists() else set()
    ignored = shutil.ignore_patterns("__pycache__", "test_*.py")
    shutil.copytree(source, copy, ignore=ignored, dirs_exist_ok=True)
    now = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    for name in before - now:
        (copy / name).unlink(missing_ok=True)
    copied.write_text("".join(f"{name}\n" for name in sorted(now)))


def _last_line(path: Path) -> str:
    lines = [line.strip() for line in path.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
