"""Another machine in a container's network: a namespace of its own, with a link to the container's."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compat.waiting import wait_until
from tests.container.image import Container

# The container's address on the link, and the neighbour's.
ADDRESS = "10.5.7.1"
OWN_ADDRESS = "10.5.7.2"
# $1: the container's first process, $2: the neighbour's
LINK = f"""
set -e
nsenter --target "$1" --net ip link add eth0 type veth peer name eth0 netns "$2"
nsenter --target "$1" --net ip address add {ADDRESS}/24 dev eth0
nsenter --target "$2" --net ip link set lo up
nsenter --target "$2" --net ip address add {OWN_ADDRESS}/24 dev eth0
nsenter --target "$1" --net ip link set eth0 up
nsenter --target "$2" --net ip link set eth0 up
"""


class CannotLink(Exception):
    """This machine does not let us link namespaces."""


class Neighbour:
    """A machine that reaches the container at `ADDRESS`."""

    def __init__(self, container: Container, process: int) -> None:
        self._container = container
        self._process = process

    def python(self, script: str) -> str:
        """Run a client on this machine. Returns what it prints."""
        return self._container.python_in(self._process, script)


@contextmanager
def neighbour(container: Container) -> Iterator[Neighbour]:
    """Provide a neighbour while the container runs. Raise CannotLink."""
    with subprocess.Popen(["unshare", "--net", "sleep", "infinity"]) as process:
        try:
            wait_until(lambda: Path(f"/proc/{process.pid}/comm").read_text("utf-8") == "sleep\n")
            command = ["sh", "-c", LINK, "sh", str(container.first_process), str(process.pid)]
            linked = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
            if linked.returncode:
                raise CannotLink(linked.stderr)
            yield Neighbour(container, process.pid)
        finally:
            process.kill()
