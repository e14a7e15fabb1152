"""Disks under a real LMDB that fail when a test says so, until it says otherwise."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from amqp_broker.server.server import Server
from amqp_broker.store.environment import DATA_FILE
from tests.present import present


def _descriptors(folder: Path) -> dict[int, int]:
    """This process's open descriptors of a store's file, and how they are open."""
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        # The server's thread may close others meanwhile.
        with suppress(FileNotFoundError):
            if entry.readlink() == (folder / DATA_FILE).resolve():
                flags = Path(f"/proc/self/fdinfo/{entry.name}").read_text("utf-8").split("flags:")[1].split()[0]
                found[int(entry.name)] = int(flags, 8) & os.O_ACCMODE
    return found


@contextmanager
def full_disk(folder: Path, access: int = os.O_RDWR) -> Iterator[None]:
    """LMDB's own write calls fail with ENOSPC: what it writes to is /dev/full meanwhile.

    It writes pages through the descriptor that is open for reading and writing (O_RDWR), and the page that makes a
    commit one through another (O_WRONLY): where that fails, LMDB calls it a panic and refuses all further work.
    """
    full = os.open("/dev/full", os.O_RDWR)
    [number] = [number for number, mode in _descriptors(folder).items() if mode == access]
    saved = os.dup(number)
    os.dup2(full, number)
    try:
        yield
    finally:
        # LMDB may have closed it meanwhile.
        link = Path(f"/proc/self/fd/{number}")
        if link.is_symlink() and str(link.readlink()) == "/dev/full":
            os.dup2(saved, number)
        os.close(saved)
        os.close(full)


class Fault:
    """From the `after`-th call of these names on, calls fail with the error; `calls` are those there were."""

    def __init__(self, names: tuple[str, ...], after: int, error: Exception) -> None:
        self._names = names
        self._after = after
        self._error = error
        self.calls = 0
        self.is_healed = False

    def check(self, name: str) -> None:
        if name in self._names:
            self.calls += 1
            if self.calls >= self._after and not self.is_healed:
                raise self._error


class Faulty:
    """Stands before an environment, a transaction or a cursor that writes, and asks the fault first."""

    def __init__(self, inner: Any, fault: Fault) -> None:
        self._inner = inner
        self._fault = fault

    def __enter__(self) -> Faulty:
        self._inner.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._inner.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        inner = getattr(self._inner, name)
        if not callable(inner):
            return inner

        def call(*arguments: Any, **options: Any) -> Any:
            if name == "begin" and not options.get("write"):
                return inner(*arguments, **options)
            self._fault.check(name)
            answer = inner(*arguments, **options)
            return Faulty(answer, self._fault) if name in ("begin", "cursor") else answer

        return call


def inject(server: Server, fault: Fault) -> None:
    """From the next transaction on, those of the server's store are subject to the fault."""
    environment = present(server.store).environment
    stand_in: Any = Faulty(environment.lmdb, fault)
    environment.lmdb = stand_in
