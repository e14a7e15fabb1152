"""rabbitmqadmin v1, as RabbitMQ serves it, and ours, at the same RabbitMQ: what they print is the same."""

from __future__ import annotations

import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from compat.brokers import RabbitMQ

LINES = [
    "list users name tags",
    "-f tsv list exchanges",
    "-f kvp list exchanges name type",
    "-f long list vhosts name tracing",
    "-f bash list vhosts",
    "-f raw_json list vhosts name",
    "-d 2 list bindings",
    "-S name -R list exchanges",
    "list permissions",
    "list policies",
    "show overview rabbitmq_version",
    "list bogus",
    "declare queue",
    "declare queue x",
    "declare bogus name=x",
    "delete queue name=nothing",
    "-p wrong list users",
    "declare policy name=p pattern=^x definition='{\"bogus\":3}'",
    "bogus",
]


@pytest.fixture(scope="module")
def script(rabbitmq: RabbitMQ, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("admin") / "rabbitmqadmin"
    with urllib.request.urlopen(f"http://127.0.0.1:{rabbitmq.management_port}/cli/rabbitmqadmin") as response:
        path.write_bytes(response.read())
    return path


def run(command: list[str], rabbitmq: RabbitMQ, line: str) -> tuple[str, str, int]:
    words = ["-P", str(rabbitmq.management_port), *shlex.split(line)]
    done = subprocess.run([*command, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    return done.stdout, done.stderr, done.returncode


def ours(rabbitmq: RabbitMQ, line: str) -> tuple[str, str, int]:
    return run([sys.executable, "-m", "amqp_broker", "admin"], rabbitmq, line)


@pytest.mark.parametrize("line", LINES)
def test_v1_is_printed_as_it_prints(rabbitmq: RabbitMQ, script: Path, line: str) -> None:
    assert ours(rabbitmq, line) == run([sys.executable, str(script)], rabbitmq, line)


def test_objects_come_and_go_in_v1s_words_and_in_v2s(rabbitmq: RabbitMQ) -> None:
    done = [
        ours(rabbitmq, line)
        for line in (
            "declare queue name=one durable=true arguments='{\"x-max-length\":3}'",
            "declare queue --name two --type quorum --durable true",
            "queues declare --name three --durable false --auto-delete true",
            "declare binding source=amq.topic destination=one routing_key=a.b",
            "declare user --name carol --password secret --tags monitoring",
            "publish routing_key=one payload=hello",
            "-q get queue=one ackmode=ack_requeue_false",
        )
    ]
    assert [code for _, _, code in done] == [0] * 7
    assert "hello" in done[-1][0]
    listed = ours(rabbitmq, "-f kvp list queues name durable auto_delete")[0]
    assert 'name="two" durable="True" auto_delete="False"' in listed
    assert 'name="three" durable="False" auto_delete="True"' in listed
    assert ours(rabbitmq, "-u carol -p secret list vhosts name")[2] == 0
    assert ours(rabbitmq, "delete queue --name two")[2] == 0
    assert ours(rabbitmq, "delete queue --name two")[2] == 1
    assert ours(rabbitmq, "delete queue --name two --idempotently")[2] == 0
