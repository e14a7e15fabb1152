"""The control socket of a running broker: a Unix socket that only its user can open.

Python has no Unix sockets on Windows, where the command line uses the HTTP API.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
from pathlib import Path
from typing import Final

from amqp_broker.control import control_folder, control_socket, is_exposed
from amqp_broker.settings.settings import SettingsError

assert sys.platform != "win32"

logger = logging.getLogger("amqp_broker.server")

# Age of a control socket that no process answers.
SWEPT_AFTER_S: Final = 60


def listen_for_commands(port: int, real_now_s: float) -> tuple[socket.socket, Path]:
    """Return a listening control socket and its path, which has the AMQP port in its name.

    Sockets that killed brokers have left are removed. Raise SettingsError for a folder that other users can write, and
    OSError if the socket cannot be created.
    """
    folder = Path(control_folder(os.environ))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if is_exposed(folder):
        raise SettingsError(f"the folder '{folder}' is not this user's alone: others could command the broker")
    path = Path(control_socket(str(folder), port))
    if _is_answered(path):
        # Another broker has this port on another address; the name without a process id stays with the first.
        path = path.with_name(f"{path.stem}-{os.getpid()}.sock")
        logger.warning("another broker has this port on another address: the control socket is '%s'", path)
    # A socket that still exists was left by a killed broker.
    path.unlink(missing_ok=True)
    _sweep(folder, real_now_s - SWEPT_AFTER_S)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
    except OSError:
        listener.close()
        raise
    path.chmod(0o600)
    listener.listen()
    return listener, path


def _sweep(folder: Path, before_s: float) -> None:
    """Remove the sockets that killed brokers have left. A socket made after `before_s` may be about to listen."""
    for path in folder.glob("*.sock"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < before_s and not _is_answered(path):
                path.unlink()


def _is_answered(path: Path) -> bool:
    """Return whether a process listens on this Unix socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        # A listener with a full backlog counts: connecting to it would block.
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True
