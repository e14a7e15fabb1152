"""Where running brokers can be told what to do: each has a socket in one folder, named after its AMQP port.

The folder is its user's alone, so whoever can open the socket may do everything.
"""

from __future__ import annotations

import os
import tempfile
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
    return Path(tempfile.gettempdir()) / f"amqp-broker-{os.getuid()}"


def control_socket(folder: Path, port: int) -> Path:
    """The socket of the broker that serves AMQP on this port."""
    return folder / f"{port}.sock"
