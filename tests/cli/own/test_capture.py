from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from amqp_broker.management.documents.capture_file import Skipped, read
from compat.waiting import wait_until
from tests.cli.program import TIMEOUT_S, Serving, environment, program, run, serving


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> object:
    with serving(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


def capture(broker: Serving, file: Path, *options: str) -> subprocess.Popen[str]:
    """The program, when it has begun to capture."""
    command = [*program(), "capture", str(file), "--node", str(broker.port), *options]
    process = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, encoding="utf-8")
    wait_until(lambda: (file.exists() and file.stat().st_size > 0) or process.poll() is not None)
    return process


def publish(broker: Serving, *bodies: bytes) -> None:
    with broker.client() as client:
        client.open()
        for body in bodies:
            client.publish("orders", body)
        client.sync()


def captured(file: Path) -> list[bytes]:
    with file.open("rb") as lines:
        return [one.message.body for one in read(lines) if not isinstance(one, Skipped)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_published_messages_are_written_until_a_signal(broker: Serving, tmp_path: Path, number: signal.Signals) -> None:
    file = tmp_path / "run.jsonl"
    process = capture(broker, file)
    publish(broker, b"1", b"2")
    wait_until(lambda: file.read_bytes().count(b"\n") == 3)
    process.send_signal(number)
    _, told = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0
    assert re.fullmatch(rf"capturing vhost '/' to {file}; Ctrl-C ends it\n2 messages captured in \d+\.\d s\n", told)
    assert captured(file) == [b"1", b"2"]


def test_a_capture_may_end_after_a_count(broker: Serving, tmp_path: Path) -> None:
    process = capture(broker, tmp_path / "run.jsonl", "--count", "2", "--exchange", "amq.default")
    publish(broker, b"1", b"2", b"3")
    process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, captured(tmp_path / "run.jsonl")) == (0, [b"1", b"2"])


def test_a_refused_capture_leaves_no_file(broker: Serving, tmp_path: Path) -> None:
    file, node = tmp_path / "run.jsonl", ("--node", str(broker.port))
    done = run("capture", str(file), "--vhost", "nope", *node)
    assert (done.returncode, done.stderr) == (65, "amqp-broker: no vhost 'nope'.\n")
    done = run("capture", str(file), "--exchange", "nope", *node)
    assert (done.returncode, done.stderr) == (65, "amqp-broker: no exchange 'nope' in vhost '/'.\n")
    assert run("capture", str(file), "--url", "http://127.0.0.1:1").returncode == 69
    assert not file.exists()


def test_an_existing_file_is_not_overwritten(broker: Serving, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text("precious", "utf-8")
    done = run("capture", str(file), "--node", str(broker.port))
    assert (done.returncode, done.stderr) == (73, f"amqp-broker: '{file}' already exists.\n")
    assert file.read_text("utf-8") == "precious"
    assert run("capture", str(tmp_path / "no" / "run"), "--node", str(broker.port)).returncode == 73
