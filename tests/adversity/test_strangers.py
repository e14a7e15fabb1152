"""A peer on another machine (a network namespace), and one who measures how long refusals take."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amqp_broker.amqp.errors import BadCredentials
from amqp_broker.broker.admin.access import User, hash_password
from amqp_broker.broker.logins import Logins
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
ATTEMPTS = 4000


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
            done = subprocess.run(
                [
                    "ip",
                    "netns",
                    "exec",
                    elsewhere,
                    "curl",
                    "-s",
                    "-o",
                    os.devnull,
                    "-w",
                    "%{http_code}",
                    "-u",
                    login,
                    url,
                ],
                capture_output=True,
                encoding="utf-8",
                check=False,
            )
            return done.stdout

        assert log_in("guest", "guest") == "ProbableAuthenticationError"
        assert log_in("alice", "secret") == "logged in"
        assert status("guest:guest") == "401"
        # 401, too: she has no tag for the HTTP API.
        broker.run("ctl", "set_user_tags", "alice", "monitoring")
        assert status("alice:secret") == "200"


def refuse_ns(logins: Logins, name: str) -> int:
    """Return the duration of the refusal of a wrong password."""
    began = time.perf_counter_ns()
    try:
        logins.check(name, b"wrong", "127.0.0.1")
    except BadCredentials:
        return time.perf_counter_ns() - began
    raise AssertionError("the password is right")


def test_an_unknown_user_is_refused_no_faster_than_a_wrong_password() -> None:
    known = User("alice", hash_password(b"secret", b"salt"))
    logins = Logins({"alice": known, "keyless": User("keyless", b"")}, (), lambda: 0)
    taken: dict[str, list[int]] = {"alice": [], "keyless": [], "unknown": []}
    for _ in range(ATTEMPTS):
        for name, durations in taken.items():
            durations.append(refuse_ns(logins, name))
    medians_us = {name: statistics.median(durations) / 1000 for name, durations in taken.items()}
    print("median us:", medians_us)
    # Far below the jitter of a network; without the hash of the password, the difference grows with its cost.
    assert max(medians_us.values()) - min(medians_us.values()) < 5


def test_each_refusal_costs_one_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = []

    def count(password: bytes, *rest: Any) -> bytes:
        hashed.append(password)
        return hash_password(password, *rest)

    monkeypatch.setattr("amqp_broker.broker.admin.access.hash_password", count)
    known = User("alice", hash_password(b"secret", b"salt"))
    logins = Logins({"alice": known, "keyless": User("keyless", b"")}, (), lambda: 0)
    for name in ("alice", "keyless", "unknown"):
        hashed.clear()
        refuse_ns(logins, name)
        assert len(hashed) == 1
