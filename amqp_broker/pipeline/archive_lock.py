"""A lock on a checkpoint: one archive at a time uses it, and a file beside it names this one.

The system releases the lock when the process ends, in any way. An object store has no locks: there, the second archive
fails when both write the same batch (`LakeTable.commit`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from amqp_broker.pipeline.lake_table import LakeBusy


@contextmanager
def locked(folder: str, job: str, name: str) -> Iterator[None]:
    """Hold the checkpoint of a job in a lake's folder. Raise LakeBusy with the holder's name if it is held."""
    if "://" in folder or sys.platform == "win32":
        yield
        return
    import fcntl

    path = Path(folder, "checkpoints", f"{job}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(descriptor, 1000).decode(errors="replace") or "another archive"
            raise LakeBusy(f"{holder} writes to this lake from the same checkpoint") from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, name.encode())
        yield
    finally:
        os.close(descriptor)
