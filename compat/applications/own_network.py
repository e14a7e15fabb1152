"""Runs a program in a network of its own, where localhost:5672 is a broker of this machine.

Test suites of other projects have this address in their source. The port of this machine stays free, and several suites
can run at once. As a program, it is the first step inside the new network: own_network.py SOCKET COMMAND...
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

PORT = 5672
NEW_NETWORK = ("setpriv", "--pdeathsig", "KILL", "unshare", "--net")


class Listening(Protocol):
    """A broker, by its address."""

    host: str
    port: int


def run_beside(
    broker: Listening, command: Sequence[str], folder: Path, variables: Mapping[str, str], timeout_s: float
) -> str:
    """Run a command and return its output; its exit code does not matter."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        inside = [*NEW_NETWORK, sys.executable, __file__, str(theirs.fileno()), *command]
        process = subprocess.Popen(
            inside,
            cwd=folder,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            pass_fds=[theirs.fileno()],
        )
        with process:
            theirs.close()
            received = socket.recv_fds(ours, 1, 1)[1]
            if not received:
                raise OSError(f"no network of its own: {process.communicate()[0]}")
            with _relayed(socket.socket(fileno=received[0]), broker):
                try:
                    return process.communicate(timeout=timeout_s)[0]
                finally:
                    process.kill()


@contextmanager
def _relayed(listener: socket.socket, broker: Listening) -> Iterator[None]:
    """Connect clients of the listener with the broker. A socket stays in the network where it was made."""
    threading.Thread(target=_accept, args=(listener, broker), daemon=True).start()
    with listener:
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, broker: Listening) -> None:
    # It ends when the listener is shut down.
    with suppress(OSError):
        while True:
            client = listener.accept()[0]
            server = socket.create_connection((broker.host, broker.port))
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=_copy, args=(source, target), daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while read := source.recv(65_536):
            target.sendall(read)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def enter(number: int, command: list[str]) -> None:
    """Send a socket that listens at localhost to the parent, then become the command."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with socket.create_server(("127.0.0.1", PORT)) as listener, socket.socket(fileno=number) as parent:
        socket.send_fds(parent, [b"."], [listener.fileno()])
    os.execvp(command[0], command)


if __name__ == "__main__":
    enter(int(sys.argv[1]), sys.argv[2:])
