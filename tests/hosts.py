"""Hosts of a network on this machine: network namespaces, each with its own loopback. They share the machine's files.

Root and the program ip are needed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from compat.brokers import AmqpBroker


class Host:
    """A network namespace that exists already, and its address."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address

    def command(self, *words: str) -> list[str]:
        return ["ip", "netns", "exec", self.name, *words]

    @contextmanager
    def running(self, words: list[str], log: Path, variables: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
        """Run a program on this host, and end it with the block."""
        plain = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
        with log.open("ab") as file:
            process = subprocess.Popen(self.command(*words), env={**plain, **variables}, stdout=file, stderr=file)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class RemoteBroker(AmqpBroker):
    """A broker on one of the hosts, for clients of all."""

    def __init__(self, folder: Path, host: Host) -> None:
        super().__init__(folder, options=("--remote-guest",))
        self.namespace = host
        self.host = host.address

    def command(self) -> list[str]:
        return self.namespace.command(*super().command())


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextmanager
def connected(first: str, second: str) -> Iterator[tuple[Host, Host]]:
    """Provide two hosts with a cable in between. Without the right to, skip the test; fail in CI."""
    number = os.getpid()
    pair = Host(f"first{number}", first), Host(f"second{number}", second)
    cable = f"va{number}", f"vb{number}"
    with ExitStack() as stack:
        try:
            for host in pair:
                ip("netns", "add", host.name)
                stack.callback(ip, "netns", "del", host.name)
            ip("link", "add", cable[0], "type", "veth", "peer", "name", cable[1])
        except (OSError, subprocess.CalledProcessError) as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"network namespaces need root and the program ip: {error}")
        for host, end in zip(pair, cable, strict=True):
            ip("link", "set", end, "netns", host.name)
            ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", end)
            ip("-n", host.name, "link", "set", end, "up")
            ip("-n", host.name, "link", "set", "lo", "up")
        yield pair
