"""A peer on another machine: in a network namespace."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.brokers import AmqpBroker
from compat.unique_names import unique_name

pytestmark = pytest.mark.verify

HERE, THERE = "10.213.77.1", "10.213.77.2"
LOG_IN = """
import sys, pika
login = pika.PlainCredentials(sys.argv[3], sys.argv[4])
try:
    pika.BlockingConnection(pika.ConnectionParameters(sys.argv[1], int(sys.argv[2]), credentials=login)).close()
    print("logged in")
except Exception as error:
    print(type(error).__name__)
"""


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """Provide the name of a network namespace, with the address THERE, that reaches this one at HERE."""
    name = unique_name("far")[:10]
    link = f"{name[-6:]}-here"
    lines = [
        f"netns add {name}",
        f"link add {link} type veth peer name eth0 netns {name}",
        f"addr add {HERE}/24 dev {link}",
        f"link set {link} up",
        f"-n {name} addr add {THERE}/24 dev eth0",
        f"-n {name} link set eth0 up",
        f"-n {name} link set lo up",
    ]
    try:
        for line in lines:
            done = subprocess.run(["ip", *line.split()], capture_output=True, encoding="utf-8", check=False)
            if done.returncode:
                pytest.skip(f"ip {line}: {done.stderr.strip()}")
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


@pytest.mark.skipif(os.getuid() != 0 or sys.platform != "linux", reason="network namespaces need root on Linux")
@pytest.mark.parametrize("host", [HERE, "0.0.0.0", "::"])
def test_guest_is_refused_from_another_address_and_others_are_not(elsewhere: str, tmp_path: Path, host: str) -> None:
    broker = AmqpBroker(tmp_path, options=("--host", host))
    broker.host = host
    with broker.running():
        broker.run("ctl", "add_user", "alice", "secret")
        broker.run("ctl", "set_permissions", "alice", ".*", ".*", ".*")

        def log_in(user: str, password: str) -> str:
            program = [sys.executable, "-c", LOG_IN, HERE, str(broker.port), user, password]
            done = subprocess.run(
                ["ip", "netns", "exec", elsewhere, *program], capture_output=True, encoding="utf-8", check=False
            )
            return done.stdout.strip()

        def status(login: str) -> str:
            url = f"http://{HERE}:{broker.management_port}/api/whoami"
            curl = ["curl", "-s", "-o", os.devnull, "-w", "%{http_code}", "-u", login, url]
            command = ["ip", "netns", "exec", elsewhere, *curl]
            return subprocess.run(command, capture_output=True, encoding="utf-8", check=False).stdout

        assert log_in("guest", "guest") == "ProbableAuthenticationError"
        assert log_in("alice", "secret") == "logged in"
        assert status("guest:guest") == "401"
        # 401, too: she has no tag for the HTTP API.
        broker.run("ctl", "set_user_tags", "alice", "monitoring")
        assert status("alice:secret") == "200"
