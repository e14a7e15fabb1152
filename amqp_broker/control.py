"""Control sockets: running brokers accept commands on one socket each, named after their AMQP port.

The folder belongs to one user alone, so a process that can open a socket in it may do everything.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def control_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of the sockets: AMQP_BROKER_RUNTIME_DIR, or a folder of this user."""
    given = environment.get("AMQP_BROKER_RUNTIME_DIR")
    if given:
        return Path(given)
    runtime = environment.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / "amqp-broker"
    # Like tempfile, which takes too long to import for a health check.
    return Path(environment.get("TMPDIR") or "/tmp") / f"amqp-broker-{os.getuid()}"


def control_socket(folder: Path, port: int) -> Path:
    """Return the path of the socket of the broker that serves AMQP on this port."""
    return folder / f"{port}.sock"
