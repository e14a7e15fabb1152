"""Listen on the given ports, on all addresses, without answering. A port that is in use already is skipped."""

import contextlib
import signal
import socket
import sys

listeners = []
for port in map(int, sys.argv[1:]):
    for family, host in ((socket.AF_INET, ""), (socket.AF_INET6, "::")):
        with contextlib.suppress(OSError):
            listener = socket.socket(family)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((host, port))
            listener.listen()
            listeners.append(listener)
signal.pause()
