"""Stands for a process of `tests/forking/server.py`: passes arguments and signals on, and ends as the process does.

It is run without site and imports modules in C only: its own start has to be cheap.
"""

from __future__ import annotations

import _signal
import _socket
import os
import sys

# SIGHUP, SIGINT, SIGUSR1, SIGUSR2, SIGTERM and SIGWINCH.
PASSED_ON = (1, 2, 10, 12, 15, 28)


def main() -> None:
    server, *words = sys.argv[1:]
    # pathlib would have to be imported.
    fields = [os.getcwdb(), str(len(words)).encode(), *map(os.fsencode, words)]  # noqa: PTH109
    fields += [name + b"=" + value for name, value in os.environb.items()]
    request = b"\0".join(fields)
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(f"\0{server}")
    # As soon as the server has the request, the process may cause a signal.
    _signal.pthread_sigmask(_signal.SIG_BLOCK, PASSED_ON)
    files = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    connection.sendmsg([len(request).to_bytes(8, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
    connection.sendall(request)
    for number in PASSED_ON:
        _signal.signal(number, lambda number, frame: None)
    # The signal itself sends its number. A handler in Python would run too late if the signal arrives just before recv.
    connection.setblocking(False)
    _signal.set_wakeup_fd(connection.fileno())
    connection.setblocking(True)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, PASSED_ON)
    code = int.from_bytes(connection.recv(4), "big", signed=True)
    if code < 0:
        _signal.signal(-code, _signal.SIG_DFL)
        _signal.raise_signal(-code)
    os._exit(code)


main()
