"""Builds applications in a cache. They are built one at a time: Maven's repository is not safe for more."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compat.matrix.installing import Build
from compat.matrix.rows import Client

CACHE = Path(__file__).parents[2] / ".cache" / "applications"


@contextmanager
def building(client: Client) -> Iterator[Build]:
    """Provide the copy of a folder; no other process builds meanwhile."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Build(client.folder, CACHE)


def built(client: Client) -> Path:
    """Return the folder in which an application is built. Raise InstallError."""
    with building(client) as build:
        return build.install(client)
