"""A server that has imported the broker and pytest, and forks: a program starts in milliseconds.

    subprocess.run([*forked("amqp_broker"), "ctl", "status"])

runs `python -m amqp_broker ctl status` in a process of its own, with the arguments, environment, folder and standard
files of the command. The command passes signals on and ends as the process does. If the command is killed, the process
is killed before the server starts another one.

A test starts a new interpreter instead if its subject is the start, the process id, closed standard files, limits of
the system or variables of the interpreter.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

import amqp_broker

ROOT: Final = Path(__file__).parents[2]
CLIENT: Final = Path(__file__).with_name("client.py")
# Pipelines need Spark, and pytest warns of plugins that are imported before it starts.
NOT_IMPORTED: Final = ("amqp_broker.__main__", "amqp_broker.pipeline", "amqp_broker.testing.plugin")
# Modules that the broker and its users import late.
OTHERS: Final = ("aiohttp.web", "pika", "pytest", "trustme", "uvloop")
# The size of a request, in octets of a big-endian number.
SIZE: Final = 8


def forked(module: str) -> tuple[str, ...]:
    """Return the command that runs this module in a fork, or in a new interpreter except on Linux."""
    if sys.platform != "linux":
        return (sys.executable, "-m", module)
    return (sys.executable, "-I", "-S", str(CLIENT), _started(), module)


@cache
def _started() -> str:
    """Start the server of this process; return its abstract address, without the leading zero."""
    address = f"fork-server-{os.getpid()}-{time.monotonic_ns()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{address}")
        listener.listen(128)
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.forking.server", str(listener.fileno())],
            cwd=ROOT,
            # It closes at the end of this process, even if that is killed.
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
    # Close its input and wait for it.
    atexit.register(server.communicate)
    return address


class ForkServer:
    """Forks for each connection, and reports the end of the process to it."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._running: dict[socket.socket, int] = {}
        self._ended, self._wake = socket.socketpair()
        self._wake.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._wake.fileno())

    def serve(self) -> list[str]:
        """Return in each new process: the name of its module, and the arguments."""
        while True:
            ready, _, _ = select.select([self._listener, self._ended, sys.stdin, *self._running], [], [])
            # Before a start, because the new process may need the port of the one that was killed.
            for connection in self._running.keys() & set(ready):
                self._signal(connection)
            if self._ended in ready:
                self._ended.recv(4096)
                self._report()
            if sys.stdin in ready:
                for pid in self._running.values():
                    os.kill(pid, signal.SIGKILL)
                sys.exit()
            if self._listener in ready and (words := self._start()):
                return words

    def _signal(self, connection: socket.socket) -> None:
        """Pass on the signals that a client has received, or kill the process of a client that has gone."""
        numbers = b""
        with contextlib.suppress(ConnectionResetError):
            numbers = connection.recv(64)
        pid = self._running[connection]
        for number in numbers or [signal.SIGKILL]:
            os.kill(pid, number)
        if not numbers:
            os.waitpid(pid, 0)
            self._forget(connection)

    def _report(self) -> None:
        """Send the exit codes of the processes that have ended."""
        for connection, pid in list(self._running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                with contextlib.suppress(BrokenPipeError):
                    connection.send(code.to_bytes(4, "big", signed=True))
                self._forget(connection)

    def _forget(self, connection: socket.socket) -> None:
        del self._running[connection]
        connection.close()

    def _start(self) -> list[str]:
        """Fork; return nothing in the server, and the words of the client in the new process."""
        connection, _ = self._listener.accept()
        size, files, _, _ = socket.recv_fds(connection, SIZE, 3)
        request = _read(connection, int.from_bytes(size, "big"))
        pid = os.fork() if request else -1
        if pid != 0:
            for file in files:
                os.close(file)
            if request:
                self._running[connection] = pid
            return []
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for inherited in (connection, self._listener, self._ended, self._wake, *self._running):
            inherited.close()
        return _become(request, files)


def _read(connection: socket.socket, size: int) -> bytes:
    """Return as many octets, or none from a client that has gone meanwhile."""
    octets = b""
    while len(octets) < size:
        if not (read := connection.recv(size - len(octets))):
            return b""
        octets += read
    return octets


def _become(request: bytes, files: list[int]) -> list[str]:
    """Take files, folder and environment from the request, and return its words."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    # As the interpreter opens them, which knows by now whether they are terminals.
    for name, buffering in (("stdin", -1), ("stdout", -1), ("stderr", 1)):
        old = getattr(sys, name)
        stream = open(old.fileno(), old.mode, buffering, old.encoding, old.errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
    folder, count, *fields = request.split(b"\0")
    words, variables = fields[: int(count)], fields[int(count) :]
    os.chdir(folder)
    os.environ.clear()
    for variable in variables:
        variable_name, _, value = variable.partition(b"=")
        os.environb[variable_name] = value
    time.tzset()
    sys.path[:1] = [str(Path.cwd()), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return [os.fsdecode(word) for word in words]


def _run(module: str, codes: list[int]) -> None:
    """Run a module as a program, and note its exit code."""
    codes.append(1)
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        codes.append(0)
    except SystemExit as end:
        codes.append(end.code if isinstance(end.code, int) else int(end.code is not None))
        raise


def _leave(codes: list[int]) -> None:
    """End without the interpreter's own cleanup, which would copy the memory that processes share."""
    if codes:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(codes[-1])


def main() -> None:
    codes: list[int] = []
    # The first one registered is called last.
    atexit.register(_leave, codes)
    names = [name for _, name, _ in pkgutil.walk_packages(amqp_broker.__path__, "amqp_broker.")]
    for name in [*OTHERS, *(name for name in names if not name.startswith(NOT_IMPORTED))]:
        import_module(name)
    # The processes share the memory of the modules as long as no collection visits it.
    gc.collect()
    gc.freeze()
    module, *sys.argv[1:] = ForkServer(socket.socket(fileno=int(sys.argv[1]))).serve()
    _run(module, codes)


if __name__ == "__main__":
    main()
