"""Addresses of this machine, and whether it has them."""

from __future__ import annotations

import socket

import pytest

from amqp_broker.server.listening import Address

IPV4: Address = (socket.AF_INET, "127.0.0.1")
IPV6: Address = (socket.AF_INET6, "::1")
# An address for documentation (RFC 5737): no machine has it.
NOWHERE: Address = (socket.AF_INET, "192.0.2.1")


def has_address(address: Address) -> bool:
    family, host = address
    try:
        socket.create_server((host, 0), family=family).close()
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_address(IPV6), reason="this machine has no IPv6")


def accepts(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError:
        return False
    return True
