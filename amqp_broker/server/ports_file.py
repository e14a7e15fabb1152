"""The ports file, which gives the parent process the ports once the broker listens on them."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import NamedTuple


class PortsFile(NamedTuple):
    """A file that was written, and its identity."""

    path: Path
    identity: tuple[int, int]

    def remove(self) -> None:
        """Remove the file, unless another process has replaced it."""
        with contextlib.suppress(OSError):
            if _identity_of(self.path) == self.identity:
                self.path.unlink()


def write_ports(path: Path, ports: dict[str, int]) -> PortsFile | None:
    """Write the ports as JSON in one step: readers never see a partial file. Raise OSError with the file name.

    Return the file, or None for a pipe or a device, which stays.
    """
    text = json.dumps(ports) + "\n"
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, "utf-8")  # a pipe or a device must not be replaced by a file
            return None
        path = path.resolve()
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            # Others may have put a link there if all users can write to the folder.
            temporary.unlink(missing_ok=True)
            with temporary.open("x", encoding="utf-8") as file:
                file.write(text)
            found = PortsFile(path, _identity_of(temporary))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    return found


def _identity_of(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino
