"""pytest-rabbitmq, unchanged, with shims for its server and rabbitmqctl."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compat.brokers import free_port

SUITE = """
import pytest
from pika import BlockingConnection


def test_a_queue_is_there(rabbitmq):
    channel = rabbitmq.channel()
    channel.queue_declare("left-behind")
    channel.exchange_declare("left-behind-too", "fanout")
    channel.basic_publish("", "left-behind", b"hello")
    assert channel.basic_get("left-behind")[2] == b"hello"


def test_nothing_of_it_is_left(rabbitmq, rabbitmq_proc):
    assert "left-behind" not in rabbitmq_proc.list_queues()
    assert "left-behind-too" not in rabbitmq_proc.list_exchanges()
    assert "amq.topic" in rabbitmq_proc.list_exchanges()
"""


@pytest.mark.verify
@pytest.mark.skipif(importlib.util.find_spec("pytest_rabbitmq") is None, reason="pytest-rabbitmq is not installed")
def test_its_fixtures_work_with_the_shims(tmp_path: Path) -> None:
    shims, suite = tmp_path / "shims", tmp_path / "suite"
    subprocess.run([sys.executable, "-m", "amqp_broker", "install-shims", str(shims)], check=True)
    suite.mkdir()
    (suite / "test_it.py").write_text(SUITE, "utf-8")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("RABBITMQ_", "AMQP_BROKER_"))
    }
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(suite), str(suite)),
            *("-c", os.devnull, f"--basetemp={tmp_path / 'temporary'}"),
            *(f"--rabbitmq-server={shims / 'rabbitmq-server'}", f"--rabbitmq-ctl={shims / 'rabbitmqctl'}"),
            f"--rabbitmq-port={free_port()}",
        ],
        env={**environment, "AMQP_BROKER_RUNTIME_DIR": str(tmp_path / "run")},
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
