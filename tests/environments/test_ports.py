"""Concurrent test runs use different ports: compat/brokers.py."""

from __future__ import annotations

import socket
import subprocess
import sys

from compat.brokers import BLOCK, PORTS, free_port
from tests.environments.__main__ import ROOT


def test_a_port_is_not_given_out_twice() -> None:
    ports = [free_port() for _ in range(BLOCK // 2)]
    assert len(set(ports)) == len(ports)
    assert set(ports) <= set(PORTS)


def test_a_port_in_use_is_skipped() -> None:
    with socket.create_server(("127.0.0.1", free_port())) as listener:
        assert listener.getsockname()[1] not in {free_port() for _ in range(BLOCK)}


def test_two_processes_never_get_the_same_port() -> None:
    # Before the other process, which gives its ports back when it ends.
    own = free_port()
    command = [sys.executable, "-c", "from compat.brokers import free_port\nprint(free_port())"]
    other = int(subprocess.check_output(command, cwd=ROOT))
    assert other // BLOCK != own // BLOCK
