"""Control sockets: running brokers accept commands on one socket each, named after their AMQP port.

The folder belongs to one user alone, so a process that can open a socket in it may do everything. Paths are texts,
since the import of pathlib takes an eighth of a health check.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from typing import Final

# Variables that name the folder, or that of all runtime files of a user.
FOLDER_VARIABLES: Final = ("AMQP_BROKER_RUNTIME_DIR", "XDG_RUNTIME_DIR")


def control_folder(environment: Mapping[str, str]) -> str:
    """Return the folder of the sockets: AMQP_BROKER_RUNTIME_DIR, or a folder of this user."""
    given = environment.get("AMQP_BROKER_RUNTIME_DIR")
    if given:
        return given
    runtime = environment.get("XDG_RUNTIME_DIR")
    if runtime:
        return f"{runtime}/amqp-broker"
    if sys.platform == "win32":
        return f"{environment.get('LOCALAPPDATA') or environment.get('USERPROFILE', '.')}/amqp-broker"
    # Like tempfile, which takes too long to import for a health check.
    return f"{environment.get('TMPDIR') or '/tmp'}/amqp-broker-{os.getuid()}"


def is_exposed(folder: str | os.PathLike[str]) -> bool:
    """Return whether other users than root could replace the sockets of a folder.

    The default folder is in /tmp, where another user may have made a folder or a symbolic link of its name before.
    On Windows there are no sockets. Raise OSError if the folder cannot be read.
    """
    if sys.platform == "win32":
        return False
    link, state = os.lstat(folder), os.stat(folder)  # noqa: PTH116
    is_foreign = not {link.st_uid, state.st_uid} <= {os.getuid(), 0}
    return is_foreign or bool(state.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def control_socket(folder: str, port: int) -> str:
    """Return the path of the socket of the broker that serves AMQP on this port."""
    return f"{folder}/{port}.sock"
