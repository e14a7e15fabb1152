"""`amqp-broker conformance` at a live RabbitMQ: all scenarios agree, and nothing is left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compat.oracles.debian_root import Unavailable
from compat.oracles.oracle import ORACLES
from compat.oracles.rabbitmq import EXCHANGE_PLUGINS, RabbitMQ


@pytest.mark.verify
@pytest.mark.timeout(600)
@pytest.mark.parametrize("minor", ORACLES)
def test_an_oracle_agrees_with_its_records_over_http_and_in_random_programs(minor: str, tmp_path: Path) -> None:
    oracle = ORACLES[minor]
    try:
        oracle.have()
    except Unavailable as reason:
        pytest.skip(str(reason))
    broker = RabbitMQ(tmp_path / "rabbitmq", plugins=("rabbitmq_management", *EXCHANGE_PLUGINS), oracle=oracle)
    with broker.running():
        for command in (
            ("add_user", "alice", "s3cret"),
            ("set_user_tags", "alice", "administrator"),
            ("set_permissions", "-p", "/", "alice", ".*", ".*", ".*"),
        ):
            assert broker.run("rabbitmqctl", *command).returncode == 0
        uri, url = f"amqp://alice:s3cret@{broker.host}:{broker.port}/", f"http://{broker.host}:{broker.management_port}"
        found = []
        # All random programs would take minutes.
        for chapter in ("http_", "random_programs/program_00"):
            options = ["--as", minor, "--duel", "--management", url, "--only", chapter]
            played = [sys.executable, "-m", "amqp_broker", "conformance", uri, *options]
            found.append(subprocess.run(played, capture_output=True, encoding="utf-8", check=False))
        vhosts, users = (
            broker.run("rabbitmqctl", "-q", command, "--no-table-headers").stdout.split()
            for command in ("list_vhosts", "list_users")
        )
    assert [done.returncode for done in found] == [0, 0], "".join(done.stdout + done.stderr for done in found)
    assert vhosts == ["/"]
    assert {name for name in users if not name.startswith("[")} == {"alice", "guest"}


@pytest.mark.verify
@pytest.mark.timeout(600)
@pytest.mark.parametrize("minor", ORACLES)
def test_an_oracle_agrees_with_its_records(minor: str, tmp_path: Path) -> None:
    """The user and the vhost are other ones than those of the records."""
    oracle = ORACLES[minor]
    try:
        oracle.have()
    except Unavailable as reason:
        pytest.skip(str(reason))
    broker = RabbitMQ(tmp_path / "rabbitmq", plugins=EXCHANGE_PLUGINS, oracle=oracle)
    with broker.running():
        for command in (
            ("add_user", "alice", "s3cret"),
            ("add_vhost", "team-a"),
            ("set_permissions", "-p", "team-a", "alice", ".*", ".*", ".*"),
        ):
            assert broker.run("rabbitmqctl", *command).returncode == 0
        uri = f"amqp://alice:s3cret@{broker.host}:{broker.port}/team-a"
        done = subprocess.run(
            [sys.executable, "-m", "amqp_broker", "conformance", uri, "--as", minor],
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        left = [
            broker.run("rabbitmqctl", "-q", command, "-p", "team-a", "--no-table-headers", "name").stdout.split()
            for command in ("list_queues", "list_exchanges")
        ]
    assert done.returncode == 0, done.stdout + done.stderr
    assert [name for names in left for name in names if not name.startswith("amq.")] == []
