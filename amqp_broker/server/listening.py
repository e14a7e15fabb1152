"""Listening sockets on all addresses of a host, on one port, and the end of listening."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

logger = logging.getLogger("amqp_broker.server")

BACKLOG: Final = 1024
FREE_PORT_ATTEMPTS: Final = 20

# Family and address of an interface.
Address: TypeAlias = "tuple[socket.AddressFamily, str]"
IPV6_ANY: Final = (socket.AF_INET6, "::")
IPV4_ANY: Final = (socket.AF_INET, "0.0.0.0")


class CannotListen(Exception):
    """No socket can listen at a host and port; `error` says why."""

    def __init__(self, host: str, port: int, error: OSError) -> None:
        super().__init__(f"cannot listen on port {port} of '{host}': {error.strerror}")
        self.host = host
        self.port = port
        self.error = error


def listen(host: str, port: int) -> list[socket.socket]:
    """Return listening sockets on all addresses of a host; port 0 takes a free one. Raise CannotListen."""
    try:
        return open_sockets(addresses_of(host), port)
    except OSError as error:
        raise CannotListen(host, port, error) from None


def listen_nearby(host: str, port: int, others: Iterable[int], name: str) -> list[socket.socket]:
    """Do `listen`; if the port is in use, try the others in turn, and log where the listener `name` is.

    Raise CannotListen for the first port.
    """
    try:
        return listen(host, port)
    except CannotListen as error:
        if error.error.errno != errno.EADDRINUSE:
            raise
        for other in others:
            # The distance may lead beyond the last port.
            with contextlib.suppress(CannotListen, OverflowError):
                sockets = listen(host, other)
                taken = sockets[0].getsockname()[1]
                logger.warning("port %d is in use by another program: %s is on port %d", port, name, taken)
                return sockets
        raise


def addresses_of(host: str) -> list[Address]:
    """Return the addresses of `host`. Raise gaierror if it is neither an address nor a known name."""
    if host == "::":
        # This address accepts IPv4 as well, unless the system separates the two or has no IPv6.
        return [IPV6_ANY] if socket.has_dualstack_ipv6() else [IPV6_ANY, IPV4_ANY]
    try:
        # For text, Python would import the codec of international names, and its tables.
        name = host.encode() if host.isascii() else host
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except UnicodeError:
        raise socket.gaierror(socket.EAI_NONAME, "Not a host name") from None
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))


def open_sockets(addresses: Sequence[Address], port: int) -> list[socket.socket]:
    """Return listening sockets on these addresses; port 0 takes one that is free on all. Raise OSError."""
    for _ in range(FREE_PORT_ATTEMPTS):
        try:
            return _listen(addresses, port)
        except OSError as error:
            # A port that is free on one address may be taken on another.
            if port or error.errno != errno.EADDRINUSE:
                raise
    return _listen(addresses, port)


def _listen(addresses: Sequence[Address], port: int) -> list[socket.socket]:
    sockets: list[socket.socket] = []
    missing = OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
    with contextlib.ExitStack() as opened:
        for address in addresses:
            try:
                listener = opened.enter_context(_open_socket(address, port))
            except OSError as error:
                # A machine without IPv6 may still resolve localhost to ::1; one existing address is enough.
                if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
                missing = error
                continue
            sockets.append(listener)
            port = listener.getsockname()[1]
        if not sockets:
            raise missing
        opened.pop_all()
    return sockets


def _open_socket(address: Address, port: int) -> socket.socket:
    family, host = address
    is_dualstack = address == IPV6_ANY and socket.has_dualstack_ipv6()
    return socket.create_server((host, port), family=family, backlog=BACKLOG, dualstack_ipv6=is_dualstack)


async def stop_listening(servers: Iterable[asyncio.Server]) -> None:
    """Accept no more clients; those that were accepted in this turn of the loop are connected."""
    servers, loop = list(servers), asyncio.get_running_loop()
    if isinstance(loop, asyncio.SelectorEventLoop):
        # This loop accepts a socket in one turn and makes its transport in the next. If the server is closed in
        # between, the socket stays open and its client waits for ever.
        for server in servers:
            for listener in server.sockets:
                loop.remove_reader(listener.fileno())
        await asyncio.sleep(0)
    for server in servers:
        server.close()


def shown_address(listener: socket.socket) -> str:
    """Return the address of a socket in RabbitMQ's form: `[::]:5672`."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
