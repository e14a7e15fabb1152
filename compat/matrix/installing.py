"""Installs clients: each folder is copied into a cache and built there, several in parallel."""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from compat.matrix.rows import COMPAT, Client

APT = str(COMPAT.parent / ".ci" / "apt")
TIMEOUT_S = 900.0
# Folders that are built at once; most builds use more than one processor.
BUILDERS = 2
# Clients that play meanwhile, and tests, have shorter timeouts.
BEHIND = ("nice", "-n", "19")

# Programs that run one at a time: some package managers, for example Maven, have caches that are not safe for
# concurrent use.
_turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


class InstallError(Exception):
    """A client cannot be played on this machine; the text is the reason in one line."""


@dataclass(frozen=True)
class Installed:
    """A client that is ready in its folder, or the reason why it is not available."""

    client: Client
    folder: Path
    # Time of the build, for the first of the clients that share it.
    took_s: float
    absent: str = ""


class Build:
    """The copy of a clients' folder in the cache; builds of earlier runs are reused."""

    def __init__(self, source: Path, cache: Path) -> None:
        self.folder = cache / source.name
        _copy(source, self.folder)
        self._log = self.folder / "install.log"
        self._log.write_bytes(b"")
        # Commands that were run, with the reason of a failure: clients that share a command run it once.
        self._ran: dict[tuple[str, ...], str] = {}

    def install(self, client: Client) -> Path:
        """Install what the client needs and return the folder. Raise InstallError."""
        row = client.row
        if row.absent:
            raise InstallError(row.absent)
        missing = _missing(client)
        for command in [(APT, *missing)] * bool(missing) + [tuple(command) for command in row.install]:
            if command not in self._ran:
                self._ran[command] = self._run(command)
            if self._ran[command]:
                raise InstallError(self._ran[command])
        return self.folder

    def _run(self, command: tuple[str, ...]) -> str:
        """Run a command; return the reason of a failure, or an empty string."""
        with _turns[command[0]], self._log.open("ab") as log:
            try:
                subprocess.run(
                    [*BEHIND, *command], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True,
                    timeout=TIMEOUT_S,
                )  # fmt: skip
            except (OSError, subprocess.SubprocessError) as error:
                return f"{' '.join(command)}: {_last_line(self._log) or error}"
        return ""


def install_all(clients: Sequence[Client], cache: Path, ready: Callable[[Installed], object]) -> None:
    """Install clients, and yield each as soon as it is ready or has failed.

    Debian packages are fetched at once, beside the builds that do not need them. Those that take longest to build, and
    then those that may play longest, come first, so that the end does not wait for a single one.
    """
    cache.mkdir(parents=True, exist_ok=True)
    folders: dict[Path, list[Client]] = {}
    for client in sorted(clients, key=_turn):
        folders.setdefault(client.folder, []).append(client)
    builders, fetchers = ThreadPoolExecutor(BUILDERS), ThreadPoolExecutor(1)
    try:
        packages = fetchers.submit(_fetch, clients, cache / "apt.log")
        builds = [builders.submit(_install_folder, each, cache, packages, ready) for each in folders.values()]
        for build in builds:
            build.result()
    finally:
        builders.shutdown(cancel_futures=True)
        fetchers.shutdown()


def _turn(client: Client) -> tuple[float, bool, float]:
    return -client.row.build_s, bool(_missing(client)), -client.row.timeout_s


def _install_folder(
    clients: Sequence[Client], cache: Path, packages: Future[None], ready: Callable[[Installed], object]
) -> None:
    if any(map(_missing, clients)):
        packages.result()
    build = Build(clients[0].folder, cache)
    for client in clients:
        began, absent = time.monotonic(), ""
        try:
            build.install(client)
        except InstallError as error:
            absent = str(error)
        ready(Installed(client, build.folder, time.monotonic() - began, absent))


def _fetch(clients: Iterable[Client], log: Path) -> None:
    """Install the missing packages of all clients at once.

    If that fails, each client installs its own and reports errors.
    """
    if packages := sorted({package for client in clients for package in _missing(client)}):
        with log.open("wb") as output:
            subprocess.run([APT, *packages], stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False)


def _missing(client: Client) -> list[str]:
    """Return the Debian packages that the client lacks or may lack.

    Not every package has a program to search for.
    """
    return [package for program, package in client.row.programs if not shutil.which(program)]


def _copy(source: Path, copy: Path) -> None:
    """Copy a folder and remove files that no longer exist in the source; keep the builds in the copy.

    A file is replaced only if it differs, and atomically: a client of the folder may be playing.
    """
    copied = copy / "copied.txt"
    before = set(copied.read_text("utf-8").splitlines()) if copied.exists() else set()
    ignored = shutil.ignore_patterns("__pycache__", "test_*.py")
    shutil.copytree(source, copy, ignore=ignored, dirs_exist_ok=True, copy_function=_replace)
    now = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    for name in before - now:
        (copy / name).unlink(missing_ok=True)
    copied.write_text("".join(f"{name}\n" for name in sorted(now)), "utf-8")


def _replace(source: str, copy: str) -> None:
    if not Path(copy).exists() or not filecmp.cmp(source, copy, shallow=False):
        fresh = f"{copy}.{os.getpid()}.new"
        shutil.copy2(source, fresh)
        Path(fresh).replace(copy)


def _last_line(path: Path) -> str:
    lines = [line.strip() for line in path.read_text("utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
