"""The ports file: who started the broker learns from it where it listens, and that it does."""

from __future__ import annotations

import json
import os
from pathlib import Path


def write_ports(path: Path, ports: dict[str, int]) -> None:
    """Write the ports as JSON, so that a reader never sees half of the file. Raises OSError that names the file."""
    text = json.dumps(ports) + "\n"
    try:
        if path.exists() and not path.is_file():
            path.write_text(text)  # a pipe or a device, which a file must not replace
            return
        path = path.resolve()
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            temporary.write_text(text)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
