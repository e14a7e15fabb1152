"""The ports file, which gives the parent process the ports once the broker listens on them."""

from __future__ import annotations

import json
import os
from pathlib import Path


def write_ports(path: Path, ports: dict[str, int]) -> None:
    """Write the ports as JSON in one step: readers never see a partial file. Raise OSError with the file name."""
    text = json.dumps(ports) + "\n"
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, "utf-8")  # a pipe or a device must not be replaced by a file
            return
        path = path.resolve()
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            # Others may have put a link there if all users can write to the folder.
            temporary.unlink(missing_ok=True)
            with temporary.open("x", encoding="utf-8") as file:
                file.write(text)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
