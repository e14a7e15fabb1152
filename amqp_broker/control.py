"""Where running brokers can be told what to do: each has a socket in one folder, named after its AMQP port.

The folder is its user's alone, so whoever can open the socket may do everything.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def control_folder(environment: Mapping[str, str]) -> Path:
    """The folder of the sockets: AMQP_BROKER_RUNTIME_DIR, or one of this user's own."""
    given = environment.get("AMQP_BROKER_RUNTIME_DIR")
    if given:
        return Path(given)
    runtime = environment.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / "amqp-broker"
    # As tempfile says, whose import takes as long as a health check has.
    return Path(environment.get("TMPDIR") or "/tmp") / f"amqp-broker-{os.getuid()}"


def control_socket(folder: Path, port: int) -> Path:
    """The socket of the broker that serves AMQP on this port."""
    return folder / f"{port}.sock"
